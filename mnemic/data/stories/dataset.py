"""Data sets of stories for a recipe: from the official files, or made by the generator."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import torch

from mnemic.data.stories.folder import TASKS, Size, folder_of, load, path_of
from mnemic.data.stories.format import Example, StoryError, examples
from mnemic.data.stories.tensors import Stories, tensors, vocabulary
from mnemic.text import Words

ALL = tuple(TASKS)
COUNTS: Mapping[Size, int] = {"1k": 1000, "10k": 10000}  # training questions a task
TEST = 1000  # test questions a task, in the official files as in generated sets


class StoryData(NamedTuple):
    """Everything training and evaluation need to know of a data set."""

    words: Words
    sizes: dict[str, int]  # facts the network is built from
    train: Stories
    validation: Stories
    test: Stories
    made: tuple[int, ...]  # tasks whose training stories came from the generator


def story_folder(
    folder: str,
    slots: int,
    *,
    size: Size = "1k",
    tasks: Sequence[int] = ALL,
    validation: float = 0.1,
    missing: Literal["error", "generate"] = "error",
    trained_on: Literal["official", "generated"] = "official",
    seed: int = 0,
) -> StoryData:
    """The official bAbI files. ``missing="generate"`` makes training files that are not there.

    ``trained_on="generated"`` makes all of them, as many questions as the official ones have, and
    tests on the official test files. Generated training stories depend on ``seed`` alone.
    """
    root = folder_of(Path(folder).expanduser(), size)
    train: dict[int, list[Example]] = {}
    made = []
    for task in tasks:
        absent = missing == "generate" and not has(root, task)
        if trained_on == "generated" or absent:
            train[task] = make(task, COUNTS[size], seed)
            made.append(task)
        else:
            train[task] = load(root, task, "train")
    test = {task: load(root, task, "test") for task in tasks}
    return assemble_sets(train, test, slots, validation, made)


def generated_stories(
    slots: int,
    *,
    count: int = 1000,
    tasks: Sequence[int] = ALL,
    validation: float = 0.1,
    seed: int = 0,
) -> StoryData:
    """Stories from the generator alone, ``count`` training questions a task; no files needed."""
    train = {task: make(task, count, seed) for task in tasks}
    test = {task: make(task, TEST, seed + 1) for task in tasks}
    return assemble_sets(train, test, slots, validation, tasks)


def make(task: int, count: int, seed: int) -> list[Example]:
    """Generated questions of one task."""
    from mnemic.data.stories.generate import generate

    stories = generate(task, count, seed=seed)
    return [example for story in stories for example in examples(story, task)]


def has(root: Path, task: int) -> bool:
    try:
        return path_of(root, task, "train").is_file()
    except StoryError:
        return False


def assemble_sets(
    train: Mapping[int, Sequence[Example]],
    test: Mapping[int, Sequence[Example]],
    slots: int,
    validation: float,
    made: Sequence[int],
) -> StoryData:
    """Number the words and hold back the last ``validation`` share of each task's training set."""
    if not 0 <= validation < 1:
        raise StoryError(f"data.validation is a share from 0 to below 1, not {validation}")
    kept: list[Example] = []
    held: list[Example] = []
    for own in train.values():
        cut = len(own) - round(validation * len(own))
        kept += own[:cut]
        held += own[cut:]
    words = vocabulary([*kept, *held])
    tested = [example for own in test.values() for example in own]
    first, second, third = (tensors(part, words, slots=slots) for part in (kept, held, tested))
    longest = max(own.texts.shape[1] for own in (first, second, third))
    sizes = {"vocab": len(words), "longest": longest + 1}  # one more place, for the time of a slot
    return StoryData(words, sizes, first, second, third, tuple(made))


def rows_of(stories: Stories, tasks: Sequence[int]) -> torch.Tensor:
    """The rows of some tasks' questions."""
    return torch.isin(stories.task, torch.tensor(list(tasks))).nonzero().squeeze(1)
