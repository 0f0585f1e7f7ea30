"""Tasks 9 and 10: people move, but the reader is not always told so in plain words.

Behind each sentence someone moves. Half of the sentences say so, a quarter say where the person is,
and a quarter only where the person no longer is (task 9) or might be (task 10).
"""

from random import Random
from typing import NamedTuple

from mnemic.data.babi.format import Story
from mnemic.data.babi.tasks.page import Inquiry, Page, rounds
from mnemic.data.babi.tasks.world import FAMILY, RECENT, TOWNSPEOPLE, Cast, World, describe

FORMS = ("move", "move", "is", "vague")


class Report(NamedTuple):
    """What the reader was last told of a person."""

    person: str
    place: str  # where the person is; in a denial, where the person no longer is
    perhaps: tuple[str, ...] = ()  # the two places of a doubt
    denied: bool = False
    line: int = 0


def negation(dice: Random) -> Story:
    """Task 9: "Mary is no longer in the kitchen." "Is Mary in the kitchen?"."""
    return report(dice, FAMILY, doubt=False)


def doubt(dice: Random) -> Story:
    """Task 10: "Mary is either in the school or the park." "Is Mary in the park?"."""
    return report(dice, TOWNSPEOPLE, doubt=True)


def report(dice: Random, cast: Cast, *, doubt: bool) -> Story:
    """Tell and ask where people are; the vague sentences are doubts or denials."""
    page, world = Page(), World(cast, dice)
    latest: dict[str, Report] = {}
    recent: list[str] = []  # the persons of all sentences

    def tell() -> None:
        places = dict(world.place)
        event = world.happen(("move",))
        person, place = event.actor, event.what
        known = Report(person, place)
        form = dice.choice(FORMS)
        if form == "move":
            text = describe(event, dice)
        elif form == "is":
            text = f"{person} is in the {place}."
        elif doubt:
            # as in the official files, the second place may be the first one again
            pair = dice.sample([place, dice.choice(cast.places)], 2)
            known = Report(person, place, perhaps=tuple(pair))
            text = f"{person} is either in the {pair[0]} or the {pair[1]}."
        else:
            known = Report(person, places[person], denied=True)
            text = f"{person} is {dice.choice(('no longer', 'not'))} in the {known.place}."
        latest[person] = known._replace(line=page.tell(text))
        recent.append(person)

    return rounds(page, tell, lambda: is_in(latest[dice.choice(recent[-RECENT:])], cast, dice))


def is_in(known: Report, cast: Cast, dice: Random) -> Inquiry:
    """Ask for the true place or another one, each half the time; for a denied place always."""
    elsewhere = [place for place in cast.places if place != known.place]
    truth = known.denied or dice.random() < 0.5
    place = known.place if truth else dice.choice(elsewhere)
    answer = "yes" if truth and not known.denied else "no"
    if place in known.perhaps:
        answer = "maybe"
    return Inquiry(f"Is {known.person} in the {place}? ", answer, (known.line,))
