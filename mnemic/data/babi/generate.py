"""Stories made to order: all twenty bAbI tasks from dice, with answers and supporting facts."""

from collections.abc import Callable, Iterator
from random import Random
from typing import TypeAlias

from mnemic.data.babi.format import Question, Story, StoryError
from mnemic.data.babi.tasks import (
    carrying,
    colours,
    compass,
    fears,
    hearsay,
    motives,
    moving,
    shapes,
    sizes,
    times,
)

Maker: TypeAlias = Callable[[Random], Story]

TASK_MAKERS: dict[int, Maker] = {
    1: moving.single_fact,
    2: carrying.two_facts,
    3: carrying.three_facts,
    4: compass.two_arguments,
    5: carrying.three_arguments,
    6: carrying.yes_no,
    7: carrying.counting,
    8: carrying.lists,
    9: hearsay.negation,
    10: hearsay.doubt,
    11: moving.coreference,
    12: moving.conjunction,
    13: moving.compound_coreference,
    14: times.time_order,
    15: fears.deduction,
    16: colours.induction,
    17: shapes.positions,
    18: sizes.sizes,
    19: compass.path_finding,
    20: motives.motivations,
}


def generate(task: int, count: int, *, seed: int) -> Iterator[Story]:
    """Yield stories of a task with ``count`` questions in all, the same ones for the same seed.

    Fewer questions of the same seed are the first of more. The last story ends with the last
    question, so it may be shorter than the others.
    """
    if task not in TASK_MAKERS:
        raise StoryError(f"there is no task {task}; the tasks are 1 to {max(TASK_MAKERS)}")
    if count < 1:
        raise StoryError(f"expected a count of at least 1 question, got {count}")
    return stories(TASK_MAKERS[task], count, Random(f"stories {task} {seed}"))


def stories(maker: Maker, count: int, dice: Random) -> Iterator[Story]:
    """Yield a maker's stories until ``count`` questions are asked."""
    left = count
    while left > 0:
        story = first_questions(maker(dice), left)
        left -= sum(isinstance(line, Question) for line in story)
        yield story


def first_questions(story: Story, count: int) -> Story:
    """A story up to its ``count``-th question, or all of it if it has no more."""
    ends = [place for place, line in enumerate(story, start=1) if isinstance(line, Question)]
    return story[: ends[min(count, len(ends)) - 1]]
