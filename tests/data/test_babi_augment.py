"""Training stories told again with other names: an exchange changes words, never what is true."""

import pytest
from story_solver import solve

from mnemic.data.babi.augment import augment_by_task, augment_examples
from mnemic.data.babi.dataset import GeneratedStories, generate_examples
from mnemic.data.babi.format import StoryError, StoryExample

PEOPLE = ["mary", "john", "sandra", "daniel"]
PLACES = ["bathroom", "bedroom", "garden", "hallway", "kitchen", "office"]
THINGS = ["apple", "football", "milk"]
ALIKE = {2: [PEOPLE, PLACES, THINGS], 3: [PEOPLE, PLACES, THINGS], 19: [PLACES]}


@pytest.mark.parametrize("task", ALIKE)
def test_what_is_retold_has_the_answer_that_a_reader_finds(task: int) -> None:
    told = generate_examples(task, 40, seed=1)
    again = augment_examples(told, ALIKE[task], 3, seed=0)
    assert again[:40] == told
    assert len(again) == 160
    assert all(solve(task, own.sentences, own.question) == own.answer for own in again)
    assert [own.facts for own in again[40:80]] == [own.facts for own in told]
    changed = [own.sentences != old.sentences for own, old in zip(again[40:], told * 3)]
    assert sum(changed) > 110


def test_an_exchange_is_one_to_one_and_differs_from_story_to_story() -> None:
    story = ("Mary went to John.", "mary, the Maryland of john")
    example = StoryExample(story, "Where is Mary?", "john,mary", (0,), 1)
    again = augment_examples([example], [["mary", "john"]], 20, seed=0)[1:]
    other = ("John went to Mary.", "john, the Maryland of mary")
    swapped = StoryExample(other, "Where is John?", "mary,john", (0,), 1)
    assert set(again) == {example, swapped}
    assert again == augment_examples([example], [["mary", "john"]], 20, seed=0)[1:]


def test_training_alone_is_retold() -> None:
    plain = GeneratedStories(count=20, tasks=[2]).load()
    more = GeneratedStories(count=20, tasks=[2], augment=4, interchangeable=[PLACES]).load()
    assert (len(plain.train), len(more.train)) == (18, 90)
    assert len(more.validation) == len(plain.validation)
    assert len(more.test) == len(plain.test)


def test_each_task_has_names_of_its_own() -> None:
    alike = {str(task): ALIKE[task] for task in (2, 19)}
    alone = {task: GeneratedStories(count=20, tasks=[task]) for task in (1, 2, 19)}
    data = GeneratedStories(count=20, tasks=[19, 1, 2], augment=4, interchangeable=alike).load()
    assert data.train.task.tolist() == [1] * 18 + [2] * 90 + [19] * 90
    told = [own for source in alone.values() for own in source.read_task(source.tasks[0], "train")[:18]]
    again = augment_by_task(told, alike, 4, seed=0)
    for task in (2, 19):
        own = [example for example in told if example.task == task]
        expected = augment_examples(own, ALIKE[task], 4, seed=0)
        assert [example for example in again if example.task == task] == expected
    with pytest.raises(StoryError, match=r"groups for task '3', which is not in data\.tasks"):
        augment_by_task(told, {"3": ALIKE[3]}, 1, seed=0)


@pytest.mark.parametrize(
    ("alike", "times", "words"),
    [
        ([], 2, "data.interchangeable says which"),
        ([["mary", "john"], ["John", "daniel"]], 1, "has 'john' twice"),
        ([["mary"]], 1, "at least two words"),
        ([["mary", "zorro"]], 1, "has 'zorro', a word that no training story has"),
        ([["mary", "john"]], -1, "at least 0, not -1"),
    ],
)
def test_slips_are_told(alike: list[list[str]], times: int, words: str) -> None:
    with pytest.raises(StoryError, match=words):
        augment_examples(generate_examples(1, 30, seed=0), alike, times, seed=0)
