"""Generate stories for all twenty bAbI tasks, with answers and supporting facts."""

from collections.abc import Callable, Iterator
from random import Random
from typing import TypeAlias

from mnemic.data.babi.format import Story, StoryError, StoryQuestion
from mnemic.data.babi.tasks import carrying, colours, compass, fears, hearsay, motives, moving, shapes, sizes, times

StoryMaker: TypeAlias = Callable[[Random], Story]

STORY_MAKERS: dict[int, StoryMaker] = {
    1: moving.make_single_fact_story,
    2: carrying.make_two_facts_story,
    3: carrying.make_three_facts_story,
    4: compass.make_two_arguments_story,
    5: carrying.make_three_arguments_story,
    6: carrying.make_yes_no_story,
    7: carrying.make_counting_story,
    8: carrying.make_lists_story,
    9: hearsay.make_negation_story,
    10: hearsay.make_indefinite_story,
    11: moving.make_coreference_story,
    12: moving.make_conjunction_story,
    13: moving.make_compound_coreference_story,
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


def sample_stories(maker: StoryMaker, num_questions: int, generator: Random) -> Iterator[Story]:
    """Yield stories until they have ``num_questions`` questions in total."""
    num_remaining = num_questions
    while num_remaining > 0:
        story = truncate_story(maker(generator), num_remaining)
        num_remaining -= sum(isinstance(line, StoryQuestion) for line in story)
        yield story


def truncate_story(story: Story, max_questions: int) -> Story:
    """Truncate a story after at most ``max_questions`` questions."""
    ends = [position for position, line in enumerate(story, start=1) if isinstance(line, StoryQuestion)]
    return story[: ends[min(max_questions, len(ends)) - 1]]
