"""Tasks 1, 11, 12 and 13: people move about, alone or in pairs, and one is looked for."""

from collections.abc import Sequence
from random import Random

from mnemic.data.babi.format import Story
from mnemic.data.babi.tasks.page import Inquiry, Page, rounds
from mnemic.data.babi.tasks.world import FAMILY, MOVED, RECENT, Event, World, moves_of

THEN = ("Then", "Afterwards", "After that", "Following that")
PRONOUNS = {"John": "he", "Daniel": "he", "Mary": "she", "Sandra": "she"}


def single_fact(dice: Random) -> Story:
    """Task 1: one person moves; "Where is Mary?"."""
    return where_is(dice, people=1, coreference=False)


def coreference(dice: Random) -> Story:
    """Task 11: one person moves, then "she" moves on; "Where is Mary?"."""
    return where_is(dice, people=1, coreference=True)


def conjunction(dice: Random) -> Story:
    """Task 12: two people move together; "Where is Mary?"."""
    return where_is(dice, people=2, coreference=False)


def compound_coreference(dice: Random) -> Story:
    """Task 13: two people move together, then "they" move on; "Where is Mary?"."""
    return where_is(dice, people=2, coreference=True)


def where_is(dice: Random, *, people: int, coreference: bool) -> Story:
    """Let groups of ``people`` move; with ``coreference`` each second sentence has a pronoun."""
    page, world = Page(), World(FAMILY, dice)
    history: list[Event] = []
    group: list[str] = []

    def tell() -> None:
        nonlocal group
        told = len(page.lines) - page.asked
        if coreference and told % 2:
            place = move_on(world, group)
            who = f"{dice.choice(THEN)} {'they' if people > 1 else PRONOUNS[group[0]]}"
        else:
            group, place = world.move_together(people)
            who = " and ".join(group)
        line = page.tell(f"{who} {dice.choice(MOVED)} to the {place}.")
        history.extend(Event("move", person, place, line=line) for person in group)

    return rounds(page, tell, lambda: look_for(history, dice, facts=1 + coreference))


def move_on(world: World, group: Sequence[str]) -> str:
    """Let a group that stands together go to another place."""
    here = world.place[group[0]]
    place = world.dice.choice([place for place in world.cast.places if place != here])
    world.place.update(dict.fromkeys(group, place))
    return place


def look_for(history: Sequence[Event], dice: Random, *, facts: int) -> Inquiry:
    """Ask where a person is who moved of late; the last ``facts`` moves prove it."""
    person = dice.choice(history[-RECENT:]).actor
    moves = moves_of(history, person)[-facts:]
    return Inquiry(f"Where is {person}? ", moves[-1].what, tuple(move.line for move in moves))
