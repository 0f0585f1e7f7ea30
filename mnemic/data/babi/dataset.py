"""Data sets of stories for a recipe: from the official files, or made by the generator."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

import torch
from torch import Tensor

from mnemic.data.babi.augment import Alike, ByTask, retold, retold_by_task
from mnemic.data.babi.batches import Stories, spelled, tensors, vocabulary
from mnemic.data.babi.folder import TASKS, Size, Split, folder_of, load, path_of
from mnemic.data.babi.format import Example, StoryError, examples
from mnemic.data.babi.generate import generate
from mnemic.data.contract import Part, Sizes
from mnemic.text import Words

ALL = tuple(TASKS)
COUNTS: Mapping[Size, int] = {"1k": 1000, "10k": 10000}  # training questions a task
TEST = 1000  # test questions a task, in the official files as in generated sets


class Source(Protocol):
    """Where questions come from; its fields are what a recipe's ``[data]`` may say."""

    @property
    def tasks(self) -> Sequence[int]: ...

    @property
    def validation(self) -> float: ...  # the last share of each task's training questions

    @property
    def sentences(self) -> int: ...  # how many before a question are kept

    @property
    def unseen(self) -> int: ...  # ids for words that training never met

    @property
    def retold(self) -> int: ...  # how often each training question comes again, renamed

    @property
    def alike(self) -> Alike | ByTask: ...  # which words may then stand for each other

    @property
    def seed(self) -> int: ...

    def told(self, task: int, split: Split) -> list[Example]: ...

    def is_made(self, task: int) -> bool: ...  # its training questions come from the generator


@dataclass(frozen=True, kw_only=True)
class StoryFolder:
    """The official bAbI files. ``missing="generate"`` makes training files that are not there.

    ``trained_on="generated"`` makes all of them, as many questions as the official ones have, and
    tests on the official test files. Generated stories depend on ``seed`` alone.
    """

    folder: str
    size: Size = "1k"
    tasks: Sequence[int] = ALL
    sentences: int = 50
    unseen: int = 0  # ids for words that training never met; 0: such words are left out
    validation: float = 0.1
    retold: int = 0  # how often each training question comes again, with words exchanged
    alike: Alike | ByTask = ()  # groups of words that may then stand for each other, or by task
    missing: Literal["error", "generate"] = "error"
    trained_on: Literal["official", "generated"] = "official"
    seed: int = 0

    @property
    def names(self) -> Mapping[int, str]:
        return TASKS

    @property
    def root(self) -> Path:
        return folder_of(Path(self.folder).expanduser(), self.size)

    def told(self, task: int, split: Split) -> list[Example]:
        if split == "train" and self.is_made(task):
            return make(task, COUNTS[self.size], self.seed)
        return load(self.root, task, split)

    def is_made(self, task: int) -> bool:
        if self.trained_on == "generated":
            return True
        return self.missing == "generate" and not has(self.root, task)

    def data(self) -> "StoryData":
        return story_data(self)

    def asked(self, part: Part, words: Words, tasks: Sequence[int] | None = None) -> Stories:
        return tensors(
            questions(self, part, tasks), words, sentences=self.sentences, unseen=self.unseen
        )


@dataclass(frozen=True, kw_only=True)
class GeneratedStories:
    """Stories from the generator alone, ``count`` training questions a task; no files needed."""

    count: int = 1000
    tasks: Sequence[int] = ALL
    sentences: int = 50
    unseen: int = 0  # ids for words that training never met; 0: such words are left out
    validation: float = 0.1
    retold: int = 0  # how often each training question comes again, with words exchanged
    alike: Alike | ByTask = ()  # groups of words that may then stand for each other, or by task
    seed: int = 0

    @property
    def names(self) -> Mapping[int, str]:
        return TASKS

    def told(self, task: int, split: Split) -> list[Example]:
        if split == "test":
            return make(task, TEST, self.seed + 1)
        return make(task, self.count, self.seed)

    def is_made(self, task: int) -> bool:
        return True

    def data(self) -> "StoryData":
        return story_data(self)

    def asked(self, part: Part, words: Words, tasks: Sequence[int] | None = None) -> Stories:
        return tensors(
            questions(self, part, tasks), words, sentences=self.sentences, unseen=self.unseen
        )


class StoryData(NamedTuple):
    """Everything training and evaluation need to know of a data set."""

    words: Words
    sizes: Sizes  # facts the network is built from
    train: Stories
    validation: Stories
    test: Stories
    made: tuple[int, ...]  # tasks whose training stories came from the generator
    labels: tuple[str, ...] = ()


def story_data(source: Source) -> StoryData:
    """Read all questions of a source and number their words."""
    if not source.tasks or len(set(source.tasks)) < len(source.tasks):
        raise StoryError(f"data.tasks names at least one task, each once, not {source.tasks}")
    if source.sentences < 1:
        raise StoryError(f"data.sentences is at least 1, not {source.sentences}")
    if source.unseen < 0:
        raise StoryError(f"data.unseen is at least 0, not {source.unseen}")
    train, validation, test = (questions(source, part) for part in ("train", "validation", "test"))
    words = vocabulary([*train, *validation])
    first, second, third = (
        tensors(own, words, sentences=source.sentences, unseen=source.unseen)
        for own in (train, validation, test)
    )
    longest = max(own.texts.shape[1] for own in (first, second, third))
    sizes: Sizes = {"vocab": len(words), "longest": longest + 1}  # one more, for a slot's time
    if source.unseen:
        sizes["unseen"] = source.unseen
    if several := spelled(words):
        sizes["spelled"] = several
    made = tuple(task for task in source.tasks if source.is_made(task))
    return StoryData(words, sizes, first, second, third, made)


def questions(source: Source, part: Part, tasks: Sequence[int] | None = None) -> list[Example]:
    """The questions of a part, of all tasks or some; only the files that it needs are read."""
    if not 0 <= source.validation < 1:
        raise StoryError(f"data.validation is a share from 0 to below 1, not {source.validation}")
    found: list[Example] = []
    for task in source.tasks if tasks is None else tasks:
        own = source.told(task, "test" if part == "test" else "train")
        cut = len(own) - round(source.validation * len(own))
        found += {"test": own, "train": own[:cut], "validation": own[cut:]}[part]
    if part == "train" and (source.retold or source.alike):
        if isinstance(source.alike, Mapping):
            return retold_by_task(found, source.alike, source.retold, seed=source.seed)
        found = retold(found, source.alike, source.retold, seed=source.seed)
    return found


def make(task: int, count: int, seed: int) -> list[Example]:
    """Generated questions of one task."""
    return list(drawn(task, count, seed))


@lru_cache(maxsize=8)  # training and validation are parts of one draw
def drawn(task: int, count: int, seed: int) -> tuple[Example, ...]:
    stories = generate(task, count, seed=seed)
    return tuple(example for story in stories for example in examples(story, task))


def has(root: Path, task: int) -> bool:
    try:
        return path_of(root, task, "train").is_file()
    except StoryError:
        return False


def rows_of(stories: Stories, tasks: Sequence[int]) -> Tensor:
    """The rows of some tasks' questions: a pool to draw from."""
    return torch.isin(stories.task, torch.tensor(list(tasks))).nonzero().squeeze(1)
