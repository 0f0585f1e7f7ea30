"""Tasks 2, 3, 5, 6, 7 and 8: people move around and carry objects.

The tasks share one world and differ in the possible events and questions. Each question is about a
recent event: one is drawn from all questions that the last five events allow.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeAlias

from mnemic.data.babi.tasks.story_builder import CandidateQuestion, StoryBuilder
from mnemic.data.babi.tasks.world import FAMILY, NUM_RECENT_EVENTS, Cast, World, WorldEvent, describe_event, moves_of

KINDS_ALONE = ("move", "take", "drop")
KINDS_TOGETHER = (*KINDS_ALONE, "give")
OBJECT_KINDS = ("take", "drop", "give")
NUMBER_WORDS = ("none", "one", "two", "three")

History: TypeAlias = Sequence[WorldEvent]
AskAbout: TypeAlias = Callable[[History, WorldEvent, Random], CandidateQuestion | None]  # of a recent event


def write_carrying_story(
    story: StoryBuilder,
    generator: Random,
    *,
    cast: Cast,
    kinds: Sequence[str],
    ask_about: AskAbout,
    topics: Sequence[str] = OBJECT_KINDS,
    there_probability: float = 1.0,
) -> None:
    """Write a story of events of these kinds, with questions about those of kind ``topics``.

    ``there_probability`` is how often a sentence about taking an object ends in "there".
    """
    world = World(cast, generator)
    history: list[WorldEvent] = []

    def add_event() -> None:
        """Draw an event, and add a sentence about it."""
        event = world.draw_event(kinds)
        line = story.add_sentence(describe_event(event, generator, there_probability=there_probability))
        history.append(event._replace(line=line))

    def draw_question() -> CandidateQuestion | None:
        """Draw a question about a recent event."""
        recent_events = [event for event in history[-NUM_RECENT_EVENTS:] if event.kind in topics]
        questions = [ask_about(history, event, generator) for event in recent_events]
        candidates = [question for question in questions if question is not None]
        return generator.choice(candidates) if candidates else None

    story.fill(add_event, draw_question)


def ask_where_object_is(history: History, recent: WorldEvent, _: Random) -> CandidateQuestion | None:
    """Ask where an object is, if the story says where its last holder went.

    The object was dropped by someone whose location is known, or its holder moved after taking it.
    """
    last_event = list_object_events(history, recent.target)[-1]
    is_dropped = last_event.kind == "drop"
    moves = [move for move in moves_of(history, last_event.actor) if (move.line < last_event.line) == is_dropped]
    if not moves:
        return None
    return CandidateQuestion(f"Where is the {recent.target}? ", moves[-1].target, (last_event.line, moves[-1].line))


def ask_where_object_was(history: History, recent: WorldEvent, generator: Random) -> CandidateQuestion | None:
    """Ask where an object was before a location, if its last holder carried it there.

    Any location it was carried to may be named; of several arrivals there the last one counts.
    """
    *_, last_event = last_two = list_object_events(history, recent.target)[-2:]
    start_event = last_two[0] if last_event.kind == "drop" else last_event
    end_line = last_event.line if last_event.kind == "drop" else history[-1].line + 1
    moves = [move for move in moves_of(history, last_event.actor) if start_event.line < move.line < end_line]
    arrival = {move.target: index for index, move in enumerate(moves)}
    later_arrivals = [arrival[move.target] for move in moves if arrival[move.target] > 0]
    if not later_arrivals:
        return None
    index = generator.choice(later_arrivals)
    last_move, previous_move = moves[index], moves[index - 1]
    text = f"Where was the {recent.target} before the {last_move.target}? "
    return CandidateQuestion(text, previous_move.target, (last_event.line, last_move.line, previous_move.line))


def ask_who_gave(history: History, recent: WorldEvent, generator: Random) -> CandidateQuestion:
    """Ask about the last gift of an object that was given recently."""
    gift = [event for event in list_object_events(history, recent.target) if event.kind == "give"][-1]
    giver, object_name, receiver = gift.actor, gift.target, gift.receiver
    forms = [
        (f"Who gave the {object_name}? ", giver),
        (f"Who gave the {object_name} to {receiver}? ", giver),
        (f"Who received the {object_name}? ", receiver),
        (f"Who did {giver} give the {object_name} to? ", receiver),
    ]
    gifts = [event for event in history if (event.kind, event.actor, event.receiver) == ("give", giver, receiver)]
    if gifts[-1] == gift:  # otherwise "what" has two answers, as in some official files
        forms += [(f"What did {giver} give to {receiver}? ", object_name)] * 2
    return CandidateQuestion(*generator.choice(forms), facts=(gift.line,))


def ask_is_person_there(history: History, recent: WorldEvent, generator: Random) -> CandidateQuestion:
    """Ask whether a recently moved person is at a location; half the answers are "yes"."""
    move = moves_of(history, recent.actor)[-1]
    elsewhere = [location for location in FAMILY.locations if location != move.target]
    is_true = generator.random() < 0.5
    location = move.target if is_true else generator.choice(elsewhere)
    return CandidateQuestion(f"Is {recent.actor} in the {location}? ", "yes" if is_true else "no", (move.line,))


def ask_how_many(history: History, recent: WorldEvent, _: Random) -> CandidateQuestion:
    """Ask how many objects a person carries who recently handled one.

    The facts are all events in which the person took, dropped, gave or received an object.
    """
    person = recent.actor
    facts = [event for event in history if event.kind != "move" and person in {event.actor, event.receiver}]
    number = sum(1 if is_received_by(event, person) else -1 for event in facts)
    text = f"How many objects is {person} carrying? "
    return CandidateQuestion(text, NUMBER_WORDS[number], tuple(event.line for event in facts))


def ask_what_is_carried(history: History, recent: WorldEvent, _: Random) -> CandidateQuestion:
    """Ask which objects a person carries who recently handled one.

    The answer lists them in the order in which the person first handled them.
    """
    person = recent.actor
    events_by_object: dict[str, list[WorldEvent]] = {}
    for event in history:
        if event.actor == person and event.kind != "move":
            events_by_object.setdefault(event.target, []).append(event)
    objects = [object_name for object_name, events in events_by_object.items() if is_received_by(events[-1], person)]
    facts = tuple(event.line for events in events_by_object.values() for event in events)
    return CandidateQuestion(f"What is {person} carrying? ", ",".join(objects) or "nothing", facts)


def list_object_events(history: History, object_name: str) -> list[WorldEvent]:
    """List the events of an object, earliest first."""
    return [event for event in history if event.target == object_name and event.kind != "move"]


def is_received_by(event: WorldEvent, person: str) -> bool:
    """Report whether an event gives an object to a person."""
    return event.receiver == person or (event.kind == "take" and event.actor == person)
