"""Tasks 2, 3, 5, 6, 7 and 8: people move about and carry things.

The tasks share one world and differ in what may happen and in what is asked. Each question is about
a recent event: all that could be asked about each of the last five is listed, and one is drawn.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeAlias

from mnemic.data.babi.format import Story
from mnemic.data.babi.tasks.page import Inquiry, Page, one_of, rounds
from mnemic.data.babi.tasks.world import (
    FAMILY,
    FRIENDS,
    RECENT,
    THERE,
    Cast,
    Event,
    World,
    describe,
    moves_of,
)

ALONE = ("move", "take", "drop")
TOGETHER = (*ALONE, "give")
NUMBERS = ("none", "one", "two", "three")

Asker: TypeAlias = Callable[[Sequence[Event], Event], Inquiry | None]  # history, recent event


def two_facts(dice: Random) -> Story:
    """Task 2: "Where is the milk?"."""
    return carry(dice, FAMILY, ALONE, where_is_thing)


def three_facts(dice: Random) -> Story:
    """Task 3: "Where was the milk before the kitchen?"."""
    return carry(
        dice,
        FAMILY,
        ALONE,
        lambda history, event: where_was_thing(history, event, dice),
        take_there=THERE,
    )


def three_arguments(dice: Random) -> Story:
    """Task 5: "Who gave the milk to Fred?" and four other forms."""
    return carry(dice, FRIENDS, TOGETHER, lambda history, event: who_gave(history, event, dice))


def yes_no(dice: Random) -> Story:
    """Task 6: "Is Mary in the kitchen?"."""
    return carry(dice, FAMILY, ALONE, lambda history, event: is_there(history, event, dice))


def counting(dice: Random) -> Story:
    """Task 7: "How many objects is Mary carrying?"."""
    return carry(dice, FAMILY, TOGETHER, how_many)


def lists(dice: Random) -> Story:
    """Task 8: "What is Mary carrying?"."""
    return carry(dice, FAMILY, ALONE, what_carried)


def carry(
    dice: Random, cast: Cast, kinds: Sequence[str], asker: Asker, *, take_there: float = 1.0
) -> Story:
    """Tell a story of events of these kinds and ask what ``asker`` finds in the recent ones."""
    page, world = Page(), World(cast, dice)
    history: list[Event] = []

    def tell() -> None:
        event = world.happen(kinds)
        line = page.tell(describe(event, dice, take_there=take_there))
        history.append(event._replace(line=line))

    def inquire() -> Inquiry | None:
        found = (asker(history, event) for event in history[-RECENT:])
        return one_of([inquiry for inquiry in found if inquiry is not None], dice)

    return rounds(page, tell, inquire)


def where_is_thing(history: Sequence[Event], event: Event) -> Inquiry | None:
    """A thing was dropped by someone whose place was told, or carried on since it was taken."""
    if event.kind == "move":
        return None
    handled = handlings(history, event.what)[-1]
    moves = moves_of(history, handled.actor)
    if handled.kind == "drop":
        moves = [move for move in moves if move.line < handled.line]
    else:
        moves = [move for move in moves if move.line > handled.line]
    if not moves:
        return None
    facts = (handled.line, moves[-1].line)
    return Inquiry(f"Where is the {event.what}? ", moves[-1].what, facts)


def where_was_thing(history: Sequence[Event], event: Event, dice: Random) -> Inquiry | None:
    """A thing was carried to one place after another by whoever holds it or dropped it last.

    Any place it was carried to may be named; of several arrivals there the last one is meant.
    """
    if event.kind == "move":
        return None
    *_, handled = handled_twice = handlings(history, event.what)[-2:]
    taken = handled_twice[0] if handled.kind == "drop" else handled
    end = handled.line if handled.kind == "drop" else history[-1].line + 1
    moves = [move for move in moves_of(history, handled.actor) if taken.line < move.line < end]
    arrival = {move.what: index for index, move in enumerate(moves)}
    later = [arrival[move.what] for move in moves if arrival[move.what] > 0]
    if not later:
        return None
    index = dice.choice(later)
    last, before = moves[index], moves[index - 1]
    text = f"Where was the {event.what} before the {last.what}? "
    return Inquiry(text, before.what, (handled.line, last.line, before.line))


def who_gave(history: Sequence[Event], event: Event, dice: Random) -> Inquiry | None:
    """The last time a thing that was given of late was given, in one of the forms."""
    if event.kind != "give":
        return None
    gift = handlings(history, event.what, kinds=("give",))[-1]
    giver, thing, receiver = gift.actor, gift.what, gift.to
    forms = [
        (f"Who gave the {thing}? ", giver),
        (f"Who gave the {thing} to {receiver}? ", giver),
        (f"Who received the {thing}? ", receiver),
        (f"Who did {giver} give the {thing} to? ", receiver),
    ]
    gifts = [e for e in history if (e.kind, e.actor, e.to) == ("give", giver, receiver)]
    if gifts[-1] == gift:  # otherwise "what" has two answers, as happens in the official files
        forms += [(f"What did {giver} give to {receiver}? ", thing)] * 2
    return Inquiry(*dice.choice(forms), facts=(gift.line,))


def is_there(history: Sequence[Event], event: Event, dice: Random) -> Inquiry | None:
    """Is someone who moved of late in a place: as often yes as no."""
    if event.kind != "move":
        return None
    move = moves_of(history, event.actor)[-1]
    elsewhere = [place for place in FAMILY.places if place != move.what]
    truth = dice.random() < 0.5
    place = move.what if truth else dice.choice(elsewhere)
    answer = "yes" if truth else "no"
    return Inquiry(f"Is {event.actor} in the {place}? ", answer, (move.line,))


def how_many(history: Sequence[Event], event: Event) -> Inquiry | None:
    """How much someone carries who handled something of late; all they handled are the facts."""
    if event.kind == "move":
        return None
    person = event.actor
    facts = [e for e in history if e.kind != "move" and person in {e.actor, e.to}]
    number = sum(1 if receives(e, person) else -1 for e in facts)
    text = f"How many objects is {person} carrying? "
    return Inquiry(text, NUMBERS[number], tuple(e.line for e in facts))


def what_carried(history: Sequence[Event], event: Event) -> Inquiry | None:
    """What someone carries who handled something of late, in the order of first handling."""
    if event.kind == "move":
        return None
    person = event.actor
    own = [e for e in history if e.actor == person and e.kind != "move"]
    things = {thing: handlings(own, thing) for thing in dict.fromkeys(e.what for e in own)}
    carried = [thing for thing, events in things.items() if receives(events[-1], person)]
    facts = tuple(e.line for events in things.values() for e in events)
    return Inquiry(f"What is {person} carrying? ", ",".join(carried) or "nothing", facts)


def handlings(
    history: Sequence[Event], thing: str, kinds: Sequence[str] = ("take", "drop", "give")
) -> list[Event]:
    """What happened to a thing, earliest first."""
    return [event for event in history if event.what == thing and event.kind in kinds]


def receives(event: Event, person: str) -> bool:
    """Whether an event puts a thing into a person's hands."""
    return event.to == person or (event.kind == "take" and event.actor == person)
