"""Story datasets for recipes: the official bAbI files, or generated stories."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

import torch
from torch import Tensor

from mnemic.data.babi.augment import TaskWordGroups, WordGroups, augment_by_task, augment_examples
from mnemic.data.babi.batches import StoryDataset, build_tokenizer, encode_examples, split_multiword_answers
from mnemic.data.babi.folder import TASKS, FileSplit, Size, find_story_folder, find_task_file, load_task
from mnemic.data.babi.format import StoryError, StoryExample, extract_examples
from mnemic.data.babi.generate import generate_stories
from mnemic.data.contract import Sizes, Split
from mnemic.text import WordTokenizer

ALL_TASKS = tuple(TASKS)
NUM_TRAIN_QUESTIONS: Mapping[Size, int] = {"1k": 1000, "10k": 10000}  # per task
NUM_TEST_QUESTIONS = 1000  # per task, in the official files and in generated datasets


class StorySource(Protocol):
    """A source of stories; its fields are the keys of a recipe's ``[data]``."""

    @property
    def tasks(self) -> Sequence[int]: ...

    @property
    def validation(self) -> float: ...  # share of each task's training questions, from the end

    @property
    def sentences(self) -> int: ...  # at most so many last sentences before a question

    @property
    def unseen(self) -> int: ...  # number of ids for words outside the vocabulary

    @property
    def augment(self) -> int: ...  # augmented copies per training question

    @property
    def interchangeable(self) -> WordGroups | TaskWordGroups: ...  # interchangeable words for these copies

    @property
    def seed(self) -> int: ...

    def read_split(self, task: int, split: FileSplit) -> list[StoryExample]: ...

    def is_generated(self, task: int) -> bool: ...  # whether the training questions are generated


@dataclass(frozen=True, kw_only=True)
class StoryFolder:
    """The official bAbI files of a folder.

    ``missing="generate"`` generates training files that are absent. ``trained_on="generated"``
    generates all of them, with as many questions as the official ones, and tests on the official
    test files. Generated stories depend only on ``seed``.
    """

    folder: str
    size: Size = "1k"
    tasks: Sequence[int] = ALL_TASKS
    sentences: int = 50
    unseen: int = 0  # number of ids for words outside the vocabulary; 0: drop such words
    validation: float = 0.1
    augment: int = 0  # augmented copies per training question, with swapped words
    interchangeable: WordGroups | TaskWordGroups = ()  # groups of interchangeable words, or such per task
    missing: Literal["error", "generate"] = "error"
    trained_on: Literal["official", "generated"] = "official"
    seed: int = 0

    @property
    def names(self) -> Mapping[int, str]:
        """Return the name of each task."""
        return TASKS

    @property
    def root(self) -> Path:
        """Find the folder that holds the story files."""
        return find_story_folder(Path(self.folder).expanduser(), self.size)

    def read_split(self, task: int, split: FileSplit) -> list[StoryExample]:
        """Read, or generate, the training or test questions of a task."""
        if split == "train" and self.is_generated(task):
            return generate_examples(task, NUM_TRAIN_QUESTIONS[self.size], self.seed)
        return load_task(self.root, task, split)

    def is_generated(self, task: int) -> bool:
        """Report whether the training questions of a task are generated."""
        if self.trained_on == "generated":
            return True
        return self.missing == "generate" and not has_training_file(self.root, task)

    def load(self) -> "StoryData":
        """Load all splits, with the tokenizer built from the training data."""
        return load_story_data(self)

    def dataset(self, split: Split, tokenizer: WordTokenizer, tasks: Sequence[int] | None = None) -> StoryDataset:
        """Encode the questions of a split with a tokenizer."""
        return encode_examples(
            read_examples(self, split, tasks), tokenizer, max_sentences=self.sentences, num_unseen=self.unseen
        )


@dataclass(frozen=True, kw_only=True)
class GeneratedStories:
    """Generated stories, ``count`` training questions per task; no files needed."""

    count: int = 1000
    tasks: Sequence[int] = ALL_TASKS
    sentences: int = 50
    unseen: int = 0  # number of ids for words outside the vocabulary; 0: drop such words
    validation: float = 0.1
    augment: int = 0  # augmented copies per training question, with swapped words
    interchangeable: WordGroups | TaskWordGroups = ()  # groups of interchangeable words, or such per task
    seed: int = 0

    @property
    def names(self) -> Mapping[int, str]:
        """Return the name of each task."""
        return TASKS

    def read_split(self, task: int, split: FileSplit) -> list[StoryExample]:
        """Generate the training or test questions of a task."""
        if split == "test":
            return generate_examples(task, NUM_TEST_QUESTIONS, self.seed + 1)
        return generate_examples(task, self.count, self.seed)

    def is_generated(self, task: int) -> bool:
        return True

    def load(self) -> "StoryData":
        """Load all splits, with the tokenizer built from the training data."""
        return load_story_data(self)

    def dataset(self, split: Split, tokenizer: WordTokenizer, tasks: Sequence[int] | None = None) -> StoryDataset:
        """Encode the questions of a split with a tokenizer."""
        return encode_examples(
            read_examples(self, split, tasks), tokenizer, max_sentences=self.sentences, num_unseen=self.unseen
        )


class StoryData(NamedTuple):
    """The splits of a story dataset, with their tokenizer and the sizes a network needs."""

    tokenizer: WordTokenizer
    sizes: Sizes
    train: StoryDataset
    validation: StoryDataset
    test: StoryDataset
    generated_tasks: tuple[int, ...]  # tasks with generated training stories
    labels: tuple[str, ...] = ()


def load_story_data(source: StorySource) -> StoryData:
    """Load all splits of a source and build the tokenizer from training and validation."""
    if not source.tasks or len(set(source.tasks)) < len(source.tasks):
        raise StoryError(f"data.tasks names at least one task, each once, not {source.tasks}")
    if source.sentences < 1:
        raise StoryError(f"data.sentences is at least 1, not {source.sentences}")
    if source.unseen < 0:
        raise StoryError(f"data.unseen is at least 0, not {source.unseen}")
    train_examples, validation_examples, test_examples = (
        read_examples(source, split) for split in ("train", "validation", "test")
    )
    tokenizer = build_tokenizer([*train_examples, *validation_examples])
    train, validation, test = (
        encode_examples(examples, tokenizer, max_sentences=source.sentences, num_unseen=source.unseen)
        for examples in (train_examples, validation_examples, test_examples)
    )
    max_words = max(dataset.texts.shape[1] for dataset in (train, validation, test))
    # One more word than the longest text, for a slot's time.
    sizes: Sizes = {"vocab": len(tokenizer), "max_length": max_words + 1}
    if source.unseen:
        sizes["unseen"] = source.unseen
    if multiword_answers := split_multiword_answers(tokenizer):
        sizes["spelled"] = multiword_answers
    generated_tasks = tuple(task for task in source.tasks if source.is_generated(task))
    return StoryData(tokenizer, sizes, train, validation, test, generated_tasks)


def read_examples(source: StorySource, split: Split, tasks: Sequence[int] | None = None) -> list[StoryExample]:
    """Read the examples of a split, augmented if it is the training split.

    Only the files that this split needs are read.
    """
    if not 0 <= source.validation < 1:
        raise StoryError(f"data.validation is a share from 0 to below 1, not {source.validation}")
    examples: list[StoryExample] = []
    for task in source.tasks if tasks is None else tasks:
        task_examples = source.read_split(task, "test" if split == "test" else "train")
        cut = len(task_examples) - round(source.validation * len(task_examples))
        examples += {"test": task_examples, "train": task_examples[:cut], "validation": task_examples[cut:]}[split]
    if split == "train" and (source.augment or source.interchangeable):
        if isinstance(source.interchangeable, Mapping):
            return augment_by_task(examples, source.interchangeable, source.augment, seed=source.seed)
        examples = augment_examples(examples, source.interchangeable, source.augment, seed=source.seed)
    return examples


def generate_examples(task: int, count: int, seed: int) -> list[StoryExample]:
    """Generate ``count`` questions of a task; the same seed gives the same questions."""
    return list(generate_once(task, count, seed))


@lru_cache(maxsize=8)  # the training and validation splits are cut from the same questions
def generate_once(task: int, count: int, seed: int) -> tuple[StoryExample, ...]:
    """Generate questions of a task, or return the cached ones."""
    stories = generate_stories(task, count, seed=seed)
    return tuple(example for story in stories for example in extract_examples(story, task))


def has_training_file(root: Path, task: int) -> bool:
    """Report whether the folder holds the training file of a task."""
    try:
        return find_task_file(root, task, "train").is_file()
    except StoryError:
        return False


def rows_of_tasks(dataset: StoryDataset, tasks: Sequence[int]) -> Tensor:
    """List the rows of the questions that belong to some tasks."""
    return torch.isin(dataset.task, torch.tensor(list(tasks))).nonzero().squeeze(1)
