"""Task 18: which object fits inside which."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from random import Random
from typing import NamedTuple

from mnemic.data.babi.tasks.story_builder import NUM_QUESTIONS, CandidateQuestion, StoryBuilder

SMALL = ("chocolate", "box of chocolates")  # always the smallest two, in this order
LARGE = ("box", "chest", "container", "suitcase")  # in a new order per story
NUM_SENTENCES = 5  # per round, until a question can be asked


class Fit(NamedTuple):
    """A sentence that says that ``small`` fits inside ``large``."""

    small: str
    large: str
    line: int


def write_sizes_story(story: StoryBuilder, generator: Random) -> None:
    """Write a story for task 18: "Does the chest fit in the box?".

    The answer follows from two sentences that share a third object.
    """
    pairs = list(combinations((*SMALL, *generator.sample(LARGE, len(LARGE))), 2))
    fits: list[Fit] = []
    while not (chains := list(find_chains(fits))):
        for _ in range(NUM_SENTENCES):
            small, large = generator.choice(pairs)
            text = f"The {small} fits inside the {large}."
            if generator.random() < 0.5:
                text = f"The {large} is bigger than the {small}."
            fits.append(Fit(small, large, story.add_sentence(text)))
    for _ in range(NUM_QUESTIONS):
        story.add_question(*ask_chain_ends(*generator.choice(chains), generator))


def find_chains(fits: Sequence[Fit]) -> Iterator[tuple[Fit, Fit]]:
    """Pair each sentence with the first other one that continues its chain of sizes.

    Two sentences form a chain if the object they share is the larger one in one sentence and the
    smaller one in the other.
    """
    for first in fits:
        for shared in (first.small, first.large):
            related = (fit for fit in fits if fit is not first and shared in {fit.small, fit.large})
            second = next(related, None)
            if second is not None and (first.small == shared) != (second.small == shared):
                yield first, second


def ask_chain_ends(first: Fit, second: Fit, generator: Random) -> CandidateQuestion:
    """Ask whether one end of a chain of two sentences fits inside the other end."""
    is_true = first.small == second.large
    inner, outer = (second.small, first.large) if is_true else (second.large, first.small)
    text = f"Does the {inner} fit in the {outer}?"
    if generator.random() < 0.5:
        text = f"Is the {outer} bigger than the {inner}?"
    return CandidateQuestion(text, "yes" if is_true else "no", (first.line, second.line))
