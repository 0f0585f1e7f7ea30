"""Generate stories for all twenty bAbI tasks, with answers and supporting facts."""

from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import TypeAlias

from mnemic.data.babi.format import Story, StoryError, StoryQuestion
from mnemic.data.babi.tasks import animals, carrying, motivations, moving, negation, positions, sizes, time_order
from mnemic.data.babi.tasks.story_builder import StoryBuilder
from mnemic.data.babi.tasks.world import FAMILY, FRIENDS, THERE_PROBABILITY, TOWNSPEOPLE

StoryMaker: TypeAlias = Callable[[StoryBuilder, Random], None]

CARRY_ALONE = partial(carrying.write_carrying_story, cast=FAMILY, kinds=carrying.KINDS_ALONE)
CARRY_TOGETHER = partial(carrying.write_carrying_story, kinds=carrying.KINDS_TOGETHER)

STORY_MAKERS: dict[int, StoryMaker] = {
    1: partial(moving.write_moving_story, group_size=1, coreference=False),  # "Where is Mary?"
    2: partial(CARRY_ALONE, ask_about=carrying.ask_where_object_is),
    3: partial(CARRY_ALONE, ask_about=carrying.ask_where_object_was, there_probability=THERE_PROBABILITY),
    4: positions.write_two_arguments_story,
    5: partial(CARRY_TOGETHER, cast=FRIENDS, ask_about=carrying.ask_who_gave, topics=("give",)),
    6: partial(CARRY_ALONE, ask_about=carrying.ask_is_person_there, topics=("move",)),
    7: partial(CARRY_TOGETHER, cast=FAMILY, ask_about=carrying.ask_how_many),
    8: partial(CARRY_ALONE, ask_about=carrying.ask_what_is_carried),
    9: partial(negation.write_report_story, cast=FAMILY, indefinite=False),  # "Mary is no longer in the kitchen."
    10: partial(negation.write_report_story, cast=TOWNSPEOPLE, indefinite=True),  # "… either in the school or the park"
    11: partial(moving.write_moving_story, group_size=1, coreference=True),  # then "she" moves on
    12: partial(moving.write_moving_story, group_size=2, coreference=False),  # two people move together
    13: partial(moving.write_moving_story, group_size=2, coreference=True),  # then "they" move on
    14: time_order.write_time_order_story,
    15: animals.write_deduction_story,
    16: animals.write_induction_story,
    17: positions.write_shapes_story,
    18: sizes.write_sizes_story,
    19: positions.write_path_finding_story,
    20: motivations.write_motivations_story,
}


def generate_stories(task: int, num_questions: int, *, seed: int) -> Iterator[Story]:
    """Generate stories of a task with ``num_questions`` questions in total.

    The same seed gives the same stories; fewer questions are a prefix of more. The last story ends
    with the last question, so it may be shorter than the others.
    """
    if task not in STORY_MAKERS:
        raise StoryError(f"there is no task {task}; the tasks are 1 to {max(STORY_MAKERS)}")
    if num_questions < 1:
        raise StoryError(f"expected a count of at least 1 question, got {num_questions}")
    return sample_stories(STORY_MAKERS[task], num_questions, Random(f"stories {task} {seed}"))


def sample_stories(write_story: StoryMaker, num_remaining: int, generator: Random) -> Iterator[Story]:
    """Yield stories until they have ``num_remaining`` questions in total."""
    while num_remaining > 0:
        builder = StoryBuilder()
        write_story(builder, generator)
        ends = [number for number, line in enumerate(builder.lines, start=1) if isinstance(line, StoryQuestion)]
        yield tuple(builder.lines[: ends[:num_remaining][-1]])
        num_remaining -= len(ends)
