"""Augmentation of stories: swapping names changes words, never the answer's truth."""

import pytest
from story_solver import solve

from mnemic.data.babi.augment import augment_by_task, augment_examples
from mnemic.data.babi.dataset import GeneratedStories, generate_examples
from mnemic.data.babi.format import StoryError, StoryExample

PEOPLE = ["mary", "john", "sandra", "daniel"]
PLACES = ["bathroom", "bedroom", "garden", "hallway", "kitchen", "office"]
THINGS = ["apple", "football", "milk"]
INTERCHANGEABLE = {2: [PEOPLE, PLACES, THINGS], 3: [PEOPLE, PLACES, THINGS], 19: [PLACES]}


@pytest.mark.parametrize("task", INTERCHANGEABLE)
def test_what_is_retold_has_the_answer_that_a_reader_finds(task: int) -> None:
    examples = generate_examples(task, 40, seed=1)
    augmented = augment_examples(examples, INTERCHANGEABLE[task], 3, seed=0)
    assert augmented[:40] == examples
    assert len(augmented) == 160
    assert all(solve(task, example.sentences, example.question) == example.answer for example in augmented)
    assert [example.facts for example in augmented[40:80]] == [example.facts for example in examples]
    changed = [example.sentences != original.sentences for example, original in zip(augmented[40:], examples * 3)]
    assert sum(changed) > 110


def test_an_exchange_is_one_to_one_and_differs_from_story_to_story() -> None:
    story = ("Mary went to John.", "mary, the Maryland of john")
    example = StoryExample(story, "Where is Mary?", "john,mary", (0,), 1)
    augmented = augment_examples([example], [["mary", "john"]], 20, seed=0)[1:]
    swapped_story = ("John went to Mary.", "john, the Maryland of mary")
    swapped = StoryExample(swapped_story, "Where is John?", "mary,john", (0,), 1)
    assert set(augmented) == {example, swapped}
    assert augmented == augment_examples([example], [["mary", "john"]], 20, seed=0)[1:]


def test_training_alone_is_retold() -> None:
    plain = GeneratedStories(count=20, tasks=[2]).load()
    augmented = GeneratedStories(count=20, tasks=[2], augment=4, interchangeable=[PLACES]).load()
    assert (len(plain.train), len(augmented.train)) == (18, 90)
    assert len(augmented.validation) == len(plain.validation)
    assert len(augmented.test) == len(plain.test)


def test_each_task_has_names_of_its_own() -> None:
    groups = {str(task): INTERCHANGEABLE[task] for task in (2, 19)}
    sources = {task: GeneratedStories(count=20, tasks=[task]) for task in (1, 2, 19)}
    data = GeneratedStories(count=20, tasks=[19, 1, 2], augment=4, interchangeable=groups).load()
    assert data.train.task.tolist() == [1] * 18 + [2] * 90 + [19] * 90
    examples = [example for source in sources.values() for example in source.read_task(source.tasks[0], "train")[:18]]
    augmented = augment_by_task(examples, groups, 4, seed=0)
    for task in (2, 19):
        task_examples = [example for example in examples if example.task == task]
        expected = augment_examples(task_examples, INTERCHANGEABLE[task], 4, seed=0)
        assert [example for example in augmented if example.task == task] == expected
    with pytest.raises(StoryError, match=r"groups for task '3', which is not in data\.tasks"):
        augment_by_task(examples, {"3": INTERCHANGEABLE[3]}, 1, seed=0)


@pytest.mark.parametrize(
    ("groups", "times", "message"),
    [
        ([], 2, "data.interchangeable says which"),
        ([["mary", "john"], ["John", "daniel"]], 1, "has 'john' twice"),
        ([["mary"]], 1, "at least two words"),
        ([["mary", "zorro"]], 1, "has 'zorro', a word that no training story has"),
        ([["mary", "john"]], -1, "at least 0, not -1"),
    ],
)
def test_slips_are_told(groups: list[list[str]], times: int, message: str) -> None:
    with pytest.raises(StoryError, match=message):
        augment_examples(generate_examples(1, 30, seed=0), groups, times, seed=0)
