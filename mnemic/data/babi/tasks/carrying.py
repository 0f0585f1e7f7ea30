"""Tasks 2, 3, 5, 6, 7 and 8: people move around and carry objects.

The tasks share one world and differ in the possible events and questions. Each question is about a
recent event: one is drawn from all questions that the last five events allow.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeAlias

from mnemic.data.babi.format import Story
from mnemic.data.babi.tasks.page import CandidateQuestion, StoryBuilder, choose_question, fill_story
from mnemic.data.babi.tasks.world import FAMILY, NUM_RECENT_EVENTS, Cast, World, WorldEvent, describe_event, moves_of

KINDS_ALONE = ("move", "take", "drop")
KINDS_TOGETHER = (*KINDS_ALONE, "give")
NUMBER_WORDS = ("none", "one", "two", "three")

History: TypeAlias = Sequence[WorldEvent]
AskAbout: TypeAlias = Callable[[History, WorldEvent, Random], CandidateQuestion | None]  # of a recent event


def make_carrying_story(
    generator: Random, *, cast: Cast, kinds: Sequence[str], ask_about: AskAbout, there_probability: float = 1.0
) -> Story:
    """Generate a story of events of these kinds, with questions from ``ask_about``.

    ``there_probability`` is how often a sentence about taking an object ends in "there".
    """
    builder, world = StoryBuilder(), World(cast, generator)
    history: list[WorldEvent] = []

    def add_event() -> None:
        """Draw an event, and add a sentence about it."""
        event = world.draw_event(kinds)
        line = builder.add_sentence(describe_event(event, generator, there_probability=there_probability))
        history.append(event._replace(line=line))

    def draw_question() -> CandidateQuestion | None:
        """Draw a question about a recent event."""
        candidates = (ask_about(history, event, generator) for event in history[-NUM_RECENT_EVENTS:])
        return choose_question([candidate for candidate in candidates if candidate is not None], generator)

    return fill_story(builder, add_event, draw_question)


def ask_where_object_is(history: History, event: WorldEvent, _: Random) -> CandidateQuestion | None:
    """Ask where an object is, if the story says where its last holder went.

    The object was dropped by someone whose location is known, or its holder moved after taking it.
    """
    if event.kind == "move":
        return None
    last_event = list_object_events(history, event.target)[-1]
    moves = moves_of(history, last_event.actor)
    if last_event.kind == "drop":
        moves = [move for move in moves if move.line < last_event.line]
    else:
        moves = [move for move in moves if move.line > last_event.line]
    if not moves:
        return None
    facts = (last_event.line, moves[-1].line)
    return CandidateQuestion(f"Where is the {event.target}? ", moves[-1].target, facts)


def ask_where_object_was(history: History, event: WorldEvent, generator: Random) -> CandidateQuestion | None:
    """Ask where an object was before a location, if its last holder carried it there.

    Any location it was carried to may be named; of several arrivals there the last one counts.
    """
    if event.kind == "move":
        return None
    *_, last_event = last_two = list_object_events(history, event.target)[-2:]
    start_event = last_two[0] if last_event.kind == "drop" else last_event
    end_line = last_event.line if last_event.kind == "drop" else history[-1].line + 1
    moves = [move for move in moves_of(history, last_event.actor) if start_event.line < move.line < end_line]
    arrival = {move.target: index for index, move in enumerate(moves)}
    later_arrivals = [arrival[move.target] for move in moves if arrival[move.target] > 0]
    if not later_arrivals:
        return None
    index = generator.choice(later_arrivals)
    last_move, previous_move = moves[index], moves[index - 1]
    text = f"Where was the {event.target} before the {last_move.target}? "
    return CandidateQuestion(text, previous_move.target, (last_event.line, last_move.line, previous_move.line))


def ask_who_gave(history: History, event: WorldEvent, generator: Random) -> CandidateQuestion | None:
    """Ask about the last gift of an object that was given recently."""
    if event.kind != "give":
        return None
    gift = list_object_events(history, event.target, kinds=("give",))[-1]
    giver, object_name, receiver = gift.actor, gift.target, gift.receiver
    forms = [
        (f"Who gave the {object_name}? ", giver),
        (f"Who gave the {object_name} to {receiver}? ", giver),
        (f"Who received the {object_name}? ", receiver),
        (f"Who did {giver} give the {object_name} to? ", receiver),
    ]
    gifts = [
        past_event
        for past_event in history
        if (past_event.kind, past_event.actor, past_event.receiver) == ("give", giver, receiver)
    ]
    if gifts[-1] == gift:  # otherwise "what" has two answers, as in some official files
        forms += [(f"What did {giver} give to {receiver}? ", object_name)] * 2
    return CandidateQuestion(*generator.choice(forms), facts=(gift.line,))


def ask_is_person_there(history: History, event: WorldEvent, generator: Random) -> CandidateQuestion | None:
    """Ask whether a recently moved person is at a location; half the answers are "yes"."""
    if event.kind != "move":
        return None
    move = moves_of(history, event.actor)[-1]
    elsewhere = [location for location in FAMILY.locations if location != move.target]
    is_true = generator.random() < 0.5
    location = move.target if is_true else generator.choice(elsewhere)
    answer = "yes" if is_true else "no"
    return CandidateQuestion(f"Is {event.actor} in the {location}? ", answer, (move.line,))


def ask_how_many(history: History, event: WorldEvent, _: Random) -> CandidateQuestion | None:
    """Ask how many objects a person carries who recently handled one.

    The facts are all events in which the person took, dropped, gave or received an object.
    """
    if event.kind == "move":
        return None
    person = event.actor
    facts = [
        past_event
        for past_event in history
        if past_event.kind != "move" and person in {past_event.actor, past_event.receiver}
    ]
    number = sum(1 if is_received_by(past_event, person) else -1 for past_event in facts)
    text = f"How many objects is {person} carrying? "
    return CandidateQuestion(text, NUMBER_WORDS[number], tuple(past_event.line for past_event in facts))


def ask_what_is_carried(history: History, event: WorldEvent, _: Random) -> CandidateQuestion | None:
    """Ask which objects a person carries who recently handled one.

    The answer lists them in the order in which the person first handled them.
    """
    if event.kind == "move":
        return None
    person = event.actor
    person_events = [past_event for past_event in history if past_event.actor == person and past_event.kind != "move"]
    events_by_object = {
        object_name: list_object_events(person_events, object_name)
        for object_name in dict.fromkeys(past_event.target for past_event in person_events)
    }
    objects = [object_name for object_name, events in events_by_object.items() if is_received_by(events[-1], person)]
    facts = tuple(past_event.line for events in events_by_object.values() for past_event in events)
    return CandidateQuestion(f"What is {person} carrying? ", ",".join(objects) or "nothing", facts)


def list_object_events(
    history: History, object_name: str, kinds: Sequence[str] = ("take", "drop", "give")
) -> list[WorldEvent]:
    """List the events of an object, earliest first."""
    return [event for event in history if event.target == object_name and event.kind in kinds]


def is_received_by(event: WorldEvent, person: str) -> bool:
    """Report whether an event gives an object to a person."""
    return event.receiver == person or (event.kind == "take" and event.actor == person)
