"""Task 14: people move at times of the day that are not told in their order."""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from mnemic.data.babi.format import Story
from mnemic.data.babi.tasks.page import QUESTIONS, Inquiry, Page, one_of
from mnemic.data.babi.tasks.world import MOVED, RECENT, TOWNSPEOPLE

TIMES = ("yesterday", "this morning", "this afternoon", "this evening")
PAIR = 2  # sentences between two questions


class Visit(NamedTuple):
    """A person was at a place at a time."""

    person: str
    place: str
    time: int


def time_order(dice: Random) -> Story:
    """Task 14: "Where was Julie before the park?"."""
    page = Page()
    visits: list[Visit] = []
    lines: dict[Visit, int] = {}
    while page.asked < QUESTIONS:
        fresh: list[Visit] = []
        while not fresh or not possible(visits):  # the first question may need more than one pair
            for _ in range(PAIR):
                fresh.append(next_visit(visits, dice))
                visits.append(fresh[-1])
        for visit in mix(fresh, dice):
            lines[visit] = page.tell(describe(visit, dice))
        inquiry = one_of([where_before(visit, visits, lines) for visit in possible(visits)], dice)
        assert inquiry is not None
        page.ask(inquiry)
    return page.story()


def next_visit(visits: Sequence[Visit], dice: Random) -> Visit:
    """Someone goes elsewhere at the time after their last one; no one goes after the evening."""
    last = {visit.person: visit for visit in visits}
    awake = [person for person in TOWNSPEOPLE.people if not is_late(last.get(person))]
    person = dice.choice(awake)
    before = last.get(person)
    here = before.place if before else ""
    place = dice.choice([place for place in TOWNSPEOPLE.places if place != here])
    return Visit(person, place, before.time + 1 if before else 0)


def is_late(last: Visit | None) -> bool:
    """Whether someone's last visit was at the last of the times."""
    return last is not None and last.time == len(TIMES) - 1


def possible(visits: Sequence[Visit]) -> list[Visit]:
    """The recent visits before which the person was told to be somewhere."""
    return [visit for visit in visits[-RECENT:] if visit.time > 0]


def mix(visits: Sequence[Visit], dice: Random) -> list[Visit]:
    """Change the order so that no visit stays where it was (Sattolo 1986): two always swap."""
    mixed = list(visits)
    for last in range(len(mixed) - 1, 0, -1):
        other = dice.randrange(last)
        mixed[last], mixed[other] = mixed[other], mixed[last]
    return mixed


def describe(visit: Visit, dice: Random) -> str:
    """Put a visit into words, with the time before or after."""
    time = TIMES[visit.time]
    went = f"{visit.person} {dice.choice(MOVED)} to the {visit.place}"
    return f"{time.capitalize()} {went}." if dice.random() < 0.5 else f"{went} {time}."


def where_before(visit: Visit, visits: Sequence[Visit], lines: dict[Visit, int]) -> Inquiry:
    """Ask where a person was before a place; of several visits to it the last one is meant."""
    own = {other.time: other for other in visits if other.person == visit.person}
    last = max(time for time, other in own.items() if other.place == visit.place)
    facts = (lines[own[last]], lines[own[last - 1]])
    text = f"Where was {visit.person} before the {visit.place}? "
    return Inquiry(text, own[last - 1].place, facts)
