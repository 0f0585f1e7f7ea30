"""The simulated world: people who move between places and take, drop and give things.

Everyone and everything has a place from the start, which the reader does not know. The next event
is drawn blindly and drawn again while it is impossible, so the chance of each kind of event is what
the state of the world leaves of it. Giving alone is never drawn blindly: the first thing in the
cast's order that can change hands goes to the first person in the cast's order who can take it.
"""

from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

RECENT = 5  # a question is about someone or something in the last five events


class Cast(NamedTuple):
    """Who and what takes part; the order of people and things is that of giving."""

    people: tuple[str, ...]
    places: tuple[str, ...]
    things: tuple[str, ...] = ("apple", "football", "milk")


HOUSE = ("bathroom", "bedroom", "garden", "hallway", "kitchen", "office")
TOWN = ("bedroom", "cinema", "kitchen", "office", "park", "school")

FAMILY = Cast(("John", "Mary", "Sandra", "Daniel"), HOUSE)
FRIENDS = Cast(("Mary", "Fred", "Bill", "Jeff"), HOUSE)
TOWNSPEOPLE = Cast(("Bill", "Fred", "Julie", "Mary"), TOWN)

MOVED = ("went", "went back", "moved", "journeyed", "travelled")
TOOK = ("took", "got", "grabbed", "picked up")
DROPPED = ("dropped", "left", "discarded", "put down")
GAVE = ("gave", "handed", "passed")
THERE = 0.2  # share of sentences that end in "there" where they need not


class Event(NamedTuple):
    """Something that happened to one person, and the line that tells it."""

    kind: str  # "move", "take", "drop" or "give"
    actor: str
    what: str  # the place moved to, otherwise the thing
    to: str = ""  # who is given the thing
    line: int = 0


class World:
    """Where everyone and everything is, and what can happen next."""

    def __init__(self, cast: Cast, dice: Random) -> None:
        self.cast = cast
        self.dice = dice
        self.place = {name: dice.choice(cast.places) for name in cast.people + cast.things}
        self.holder: dict[str, str] = {}

    def happen(self, kinds: Sequence[str]) -> Event:
        """Let a possible event of one of these kinds happen, and return it."""
        while True:
            kind, actor = self.dice.choice(kinds), self.dice.choice(self.cast.people)
            event = self.give() if kind == "give" else self.attempt(kind, actor)
            if event is not None:
                self.apply(event)
                return event

    def move_together(self, people: int) -> tuple[list[str], str]:
        """Let some people go to a place that is new to each of them."""
        while True:
            group = self.dice.sample(self.cast.people, people)
            place = self.dice.choice(self.cast.places)
            if all(self.place[person] != place for person in group):
                self.place.update(dict.fromkeys(group, place))
                return group, place

    def attempt(self, kind: str, actor: str) -> Event | None:
        """Draw what the actor moves to, takes or drops; None if that is impossible."""
        if kind == "move":
            place = self.dice.choice(self.cast.places)
            return Event(kind, actor, place) if place != self.place[actor] else None
        within = self.within_reach(actor) if kind == "take" else self.held_by(actor)
        things = list(within)
        return Event(kind, actor, self.dice.choice(things)) if things else None

    def within_reach(self, actor: str) -> Iterator[str]:
        for thing in self.cast.things:
            if thing not in self.holder and self.place[thing] == self.place[actor]:
                yield thing

    def held_by(self, actor: str) -> Iterator[str]:
        return (thing for thing in self.cast.things if self.holder.get(thing) == actor)

    def give(self) -> Event | None:
        """The first possible gift in the cast's order, or None."""
        for thing in self.cast.things:
            actor = self.holder.get(thing)
            for person in self.cast.people:
                if actor and person != actor and self.place[person] == self.place[actor]:
                    return Event("give", actor, thing, person)
        return None

    def apply(self, event: Event) -> None:
        """Change the world by an event."""
        if event.kind == "move":
            self.place[event.actor] = event.what
        elif event.kind == "drop":
            del self.holder[event.what]
            self.place[event.what] = self.place[event.actor]
        else:
            self.holder[event.what] = event.to or event.actor


def describe(event: Event, dice: Random, *, take_there: float = 1.0) -> str:
    """Put an event into words; ``take_there`` is how often taking says "there"."""
    if event.kind == "move":
        return f"{event.actor} {dice.choice(MOVED)} to the {event.what}."
    if event.kind == "give":
        return f"{event.actor} {dice.choice(GAVE)} the {event.what} to {event.to}."
    verb = dice.choice(TOOK if event.kind == "take" else DROPPED)
    share = take_there if event.kind == "take" else THERE
    there = " there" if dice.random() < share else ""
    return f"{event.actor} {verb} the {event.what}{there}."


def moves_of(history: Sequence[Event], person: str) -> list[Event]:
    """A person's moves, earliest first."""
    return [event for event in history if event.kind == "move" and event.actor == person]
