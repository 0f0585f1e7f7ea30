"""Task 18: what fits inside what."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from random import Random
from typing import NamedTuple

from mnemic.data.babi.format import Story
from mnemic.data.babi.tasks.page import QUESTIONS, Inquiry, Page

SMALL = ("chocolate", "box of chocolates")  # always the smallest two, in this order
LARGE = ("box", "chest", "container", "suitcase")  # in a new order each story
SENTENCES = 5  # told at a time, until something can be concluded


class Fit(NamedTuple):
    """``small`` fits inside ``large``."""

    small: str
    large: str
    line: int


def sizes(dice: Random) -> Story:
    """Task 18: "Does the chest fit in the box?", concluded by way of a third thing."""
    pairs = list(combinations((*SMALL, *dice.sample(LARGE, len(LARGE))), 2))
    page = Page()
    told: list[Fit] = []
    while not (chains := list(chained(told))):
        for _ in range(SENTENCES):
            small, large = dice.choice(pairs)
            text = f"The {small} fits inside the {large}."
            if dice.random() < 0.5:
                text = f"The {large} is bigger than the {small}."
            told.append(Fit(small, large, page.tell(text)))
    for _ in range(QUESTIONS):
        page.ask(compare_ends(*dice.choice(chains), dice))
    return page.story()


def chained(told: Sequence[Fit]) -> Iterator[tuple[Fit, Fit]]:
    """Pair each sentence with the first other one about either of its things, if they chain up.

    They chain up if the thing they share is the larger of one and the smaller of the other.
    """
    for start in told:
        for shared in (start.small, start.large):
            about = (fit for fit in told if fit is not start and shared in {fit.small, fit.large})
            other = next(about, None)
            if other is not None and (start.small == shared) != (other.small == shared):
                yield start, other


def compare_ends(start: Fit, other: Fit, dice: Random) -> Inquiry:
    """Ask whether the thing at the far end of ``other`` fits in the one of ``start``."""
    truth = start.small == other.large
    inner, outer = (other.small, start.large) if truth else (other.large, start.small)
    text = f"Does the {inner} fit in the {outer}?"
    if dice.random() < 0.5:
        text = f"Is the {outer} bigger than the {inner}?"
    return Inquiry(text, "yes" if truth else "no", (start.line, other.line))
