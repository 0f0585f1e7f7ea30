"""Generate stories for all twenty bAbI tasks, with answers and supporting facts."""

from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import TypeAlias

from mnemic.data.babi.format import Story, StoryError, StoryQuestion
from mnemic.data.babi.tasks import carrying, colours, compass, fears, hearsay, motives, moving, shapes, sizes, times
from mnemic.data.babi.tasks.world import FAMILY, FRIENDS, THERE_PROBABILITY, TOWNSPEOPLE

StoryMaker: TypeAlias = Callable[[Random], Story]

CARRY_ALONE = partial(carrying.make_carrying_story, cast=FAMILY, kinds=carrying.KINDS_ALONE)
CARRY_TOGETHER = partial(carrying.make_carrying_story, kinds=carrying.KINDS_TOGETHER)

STORY_MAKERS: dict[int, StoryMaker] = {
    1: partial(moving.make_moving_story, group_size=1, coreference=False),  # "Where is Mary?"
    2: partial(CARRY_ALONE, ask_about=carrying.ask_where_object_is),
    3: partial(CARRY_ALONE, ask_about=carrying.ask_where_object_was, there_probability=THERE_PROBABILITY),
    4: compass.make_two_arguments_story,
    5: partial(CARRY_TOGETHER, cast=FRIENDS, ask_about=carrying.ask_who_gave),
    6: partial(CARRY_ALONE, ask_about=carrying.ask_is_person_there),
    7: partial(CARRY_TOGETHER, cast=FAMILY, ask_about=carrying.ask_how_many),
    8: partial(CARRY_ALONE, ask_about=carrying.ask_what_is_carried),
    9: partial(hearsay.make_report_story, cast=FAMILY, indefinite=False),  # "Mary is no longer in the kitchen."
    10: partial(hearsay.make_report_story, cast=TOWNSPEOPLE, indefinite=True),  # "… either in the school or the park."
    11: partial(moving.make_moving_story, group_size=1, coreference=True),  # then "she" moves on
    12: partial(moving.make_moving_story, group_size=2, coreference=False),  # two people move together
    13: partial(moving.make_moving_story, group_size=2, coreference=True),  # then "they" move on
    14: times.make_time_order_story,
    15: fears.make_deduction_story,
    16: colours.make_induction_story,
    17: shapes.make_positions_story,
    18: sizes.make_sizes_story,
    19: compass.make_path_finding_story,
    20: motives.make_motivations_story,
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


def sample_stories(maker: StoryMaker, num_remaining: int, generator: Random) -> Iterator[Story]:
    """Yield stories until they have ``num_remaining`` questions in total."""
    while num_remaining > 0:
        story = truncate_story(maker(generator), num_remaining)
        num_remaining -= sum(isinstance(line, StoryQuestion) for line in story)
        yield story


def truncate_story(story: Story, max_questions: int) -> Story:
    """Truncate a story after at most ``max_questions`` questions."""
    ends = [position for position, line in enumerate(story, start=1) if isinstance(line, StoryQuestion)]
    return story[: ends[min(max_questions, len(ends)) - 1]]
