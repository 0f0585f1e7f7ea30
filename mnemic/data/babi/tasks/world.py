"""The simulated world: people move between locations and take, drop and give objects.

All people and objects have a location from the start, which the story does not mention. The next
event is drawn by rejection sampling: draw until it is possible, so the probability of each kind of
event depends on the state of the world. Only gifts are not sampled: the first object in the cast's
order that can change hands goes to the first person in the cast's order who can take it.
"""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

NUM_RECENT_EVENTS = 5  # a question is about one of the last five events


class Cast(NamedTuple):
    """The people, locations and objects of a story; gifts follow their order."""

    people: tuple[str, ...]
    locations: tuple[str, ...]
    objects: tuple[str, ...] = ("apple", "football", "milk")


HOUSE = ("bathroom", "bedroom", "garden", "hallway", "kitchen", "office")
TOWN = ("bedroom", "cinema", "kitchen", "office", "park", "school")

FAMILY = Cast(("John", "Mary", "Sandra", "Daniel"), HOUSE)
FRIENDS = Cast(("Mary", "Fred", "Bill", "Jeff"), HOUSE)
TOWNSPEOPLE = Cast(("Bill", "Fred", "Julie", "Mary"), TOWN)

MOVE_VERBS = ("went", "went back", "moved", "journeyed", "travelled")
TAKE_VERBS = ("took", "got", "grabbed", "picked up")
DROP_VERBS = ("dropped", "left", "discarded", "put down")
GIVE_VERBS = ("gave", "handed", "passed")
THERE_PROBABILITY = 0.2  # of an optional "there" at the end of a sentence


class WorldEvent(NamedTuple):
    """An action of one person, and the line of the story that describes it."""

    kind: str  # "move", "take", "drop" or "give"
    actor: str
    target: str  # the new location of a move, otherwise the object
    receiver: str = ""  # of a gift
    line: int = 0


class World:
    """The locations of people and objects, from which the next event is drawn."""

    def __init__(self, cast: Cast, generator: Random) -> None:
        self.cast = cast
        self.generator = generator
        self.locations = {name: generator.choice(cast.locations) for name in cast.people + cast.objects}
        self.holders: dict[str, str] = {}

    def draw_event(self, kinds: Sequence[str]) -> WorldEvent:
        """Draw a possible event of one of these kinds, apply it and return it."""
        while True:
            kind, actor = self.generator.choice(kinds), self.generator.choice(self.cast.people)
            event = self.find_gift() if kind == "give" else self.try_event(kind, actor)
            if event is not None:
                self.apply_event(event)
                return event

    def move_together(self, group_size: int) -> tuple[list[str], str]:
        """Move a random group to a location that is new to each of them."""
        while True:
            group = self.generator.sample(self.cast.people, group_size)
            location = self.generator.choice(self.cast.locations)
            if all(self.locations[person] != location for person in group):
                self.locations.update(dict.fromkeys(group, location))
                return group, location

    def try_event(self, kind: str, actor: str) -> WorldEvent | None:
        """Draw a move, take or drop of the actor; None if it is impossible."""
        if kind == "move":
            location = self.generator.choice(self.cast.locations)
            return WorldEvent(kind, actor, location) if location != self.locations[actor] else None
        if kind == "take":
            free_objects = [name for name in self.cast.objects if name not in self.holders]
            objects = [name for name in free_objects if self.locations[name] == self.locations[actor]]
        else:
            objects = [name for name in self.cast.objects if self.holders.get(name) == actor]
        return WorldEvent(kind, actor, self.generator.choice(objects)) if objects else None

    def find_gift(self) -> WorldEvent | None:
        """Return the first possible gift in the cast's order, or None."""
        for object_name in self.cast.objects:
            actor = self.holders.get(object_name)
            for receiver in self.cast.people:
                if actor and receiver != actor and self.locations[receiver] == self.locations[actor]:
                    return WorldEvent("give", actor, object_name, receiver)
        return None

    def apply_event(self, event: WorldEvent) -> None:
        """Update locations and holders after an event."""
        if event.kind == "move":
            self.locations[event.actor] = event.target
        elif event.kind == "drop":
            del self.holders[event.target]
            self.locations[event.target] = self.locations[event.actor]
        else:
            self.holders[event.target] = event.receiver or event.actor


def describe_event(event: WorldEvent, generator: Random, *, there_probability: float = 1.0) -> str:
    """Describe an event in a sentence.

    ``there_probability`` is how often a sentence about taking an object ends in "there".
    """
    if event.kind == "move":
        return f"{event.actor} {generator.choice(MOVE_VERBS)} to the {event.target}."
    if event.kind == "give":
        return f"{event.actor} {generator.choice(GIVE_VERBS)} the {event.target} to {event.receiver}."
    verb = generator.choice(TAKE_VERBS if event.kind == "take" else DROP_VERBS)
    probability = there_probability if event.kind == "take" else THERE_PROBABILITY
    suffix = " there" if generator.random() < probability else ""
    return f"{event.actor} {verb} the {event.target}{suffix}."


def moves_of(history: Sequence[WorldEvent], person: str) -> list[WorldEvent]:
    """List a person's moves, earliest first."""
    return [event for event in history if event.kind == "move" and event.actor == person]
