"""Story datasets for recipes: the official bAbI files, or generated stories."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Literal

from mnemic.data.babi.augment import TaskWordGroups, WordGroups, augment_by_task, augment_examples
from mnemic.data.babi.batches import StoryDataset, build_tokenizer, encode_examples, split_multiword_answers
from mnemic.data.babi.folder import TASKS, FileSplit, Size, file_name_of, find_story_folder, load_task
from mnemic.data.babi.format import StoryError, StoryExample, extract_examples
from mnemic.data.babi.generate import generate_stories
from mnemic.data.contract import (
    SPLITS,
    DataSource,
    Layout,
    LoadedData,
    Names,
    Sizes,
    Split,
    check_count,
    check_minimum,
    check_share,
)
from mnemic.text import WordTokenizer

ALL_TASKS = tuple(TASKS)
NUM_TRAIN_QUESTIONS: Mapping[Size, int] = {"1k": 1000, "10k": 10000}  # per task
NUM_TEST_QUESTIONS = 1000  # per task, in the official files and in generated datasets


@dataclass(frozen=True, kw_only=True)
class StorySource(DataSource):
    """Base of both kinds of stories, with the keys they share."""

    layout: ClassVar[Layout] = "stories"
    reads_stories: ClassVar[bool] = True
    objectives: ClassVar[Names] = ("answer", "answer+facts", "answer+gates", "answer+steps", "ranking")
    suggestions: ClassVar[Names] = ("evaluate {run}", 'story ask --model {run} --story FILE "Where is Mary?"')
    names: ClassVar[Mapping[int, str]] = TASKS
    tasks: Sequence[int] = ALL_TASKS
    sentences: int = 50  # at most so many last sentences before a question
    unseen: int = 0  # number of ids for words outside the vocabulary; 0: drop such words
    validation: float = 0.1  # share of each task's training questions, from the end
    augment: int = 0  # augmented copies per training question, with swapped words
    interchangeable: WordGroups | TaskWordGroups = ()  # groups of interchangeable words, or such per task
    seed: int = 0

    def read_task(self, task: int, split: FileSplit) -> list[StoryExample]:
        """Read, or generate, the training or test questions of a task."""
        raise NotImplementedError

    def is_generated(self, task: int) -> bool:
        """Report whether the training questions of a task are generated."""
        return True

    def load(self) -> LoadedData[StoryDataset]:
        """Load all splits, and build the tokenizer from training and validation."""
        if not self.tasks or len(set(self.tasks)) < len(self.tasks):
            raise StoryError(f"data.tasks names at least one task, each once, not {self.tasks}")
        check_minimum("sentences", self.sentences, 1)
        check_minimum("unseen", self.unseen, 0)
        examples = {split: self.read_examples(split) for split in SPLITS}
        tokenizer = build_tokenizer([*examples["train"], *examples["validation"]])
        train, validation, test = (self.encode(examples[split], tokenizer) for split in SPLITS)
        max_words = max(dataset.texts.shape[1] for dataset in (train, validation, test))
        # One more word than the longest text, for a slot's time.
        sizes: Sizes = {"vocab": len(tokenizer), "max_length": max_words + 1}
        if self.unseen:
            sizes["unseen"] = self.unseen
        if multiword_answers := split_multiword_answers(tokenizer):
            sizes["spelled"] = multiword_answers
        generated_tasks = tuple(task for task in self.tasks if self.is_generated(task))
        return LoadedData(tokenizer, sizes, train, validation, test, generated_tasks)

    def dataset(self, split: Split, tokenizer: WordTokenizer, tasks: Sequence[int] | None = None) -> StoryDataset:
        """Encode the questions of a split with a tokenizer."""
        return self.encode(self.read_examples(split, tasks), tokenizer)

    def encode(self, examples: Sequence[StoryExample], tokenizer: WordTokenizer) -> StoryDataset:
        """Encode examples as a dataset."""
        return encode_examples(examples, tokenizer, max_sentences=self.sentences, num_unseen=self.unseen)

    def read_examples(self, split: Split, tasks: Sequence[int] | None = None) -> list[StoryExample]:
        """Read the examples of a split, augmented if it is the training split.

        Only the files that this split needs are read.
        """
        check_share("validation", self.validation)
        examples: list[StoryExample] = []
        for task in self.tasks if tasks is None else tasks:
            task_examples = self.read_task(task, "test" if split == "test" else "train")
            cut = len(task_examples) - round(self.validation * len(task_examples))
            examples += {"test": task_examples, "train": task_examples[:cut], "validation": task_examples[cut:]}[split]
        if split == "train" and (self.augment or self.interchangeable):
            check_count("augment", len(examples) * (1 + self.augment))
            if isinstance(self.interchangeable, Mapping):
                return augment_by_task(examples, self.interchangeable, self.augment, seed=self.seed)
            examples = augment_examples(examples, self.interchangeable, self.augment, seed=self.seed)
        return examples


@dataclass(frozen=True, kw_only=True)
class StoryFolder(StorySource):
    """The official bAbI files of a folder.

    ``missing="generate"`` generates training files that are absent. ``trained_on="generated"``
    generates all of them, with as many questions as the official ones, and tests on the official
    test files. Generated stories depend only on ``seed``.
    """

    files: ClassVar[str] = "story"
    alternative: ClassVar[str] = "generated stories with --set data.kind=generated-babi"
    folder: str
    size: Size = "1k"
    missing: Literal["error", "generate"] = "error"
    trained_on: Literal["official", "generated"] = "official"

    @property
    def root(self) -> Path:
        """Find the folder that holds the story files."""
        return find_story_folder(self.path, self.size)

    def read_task(self, task: int, split: FileSplit) -> list[StoryExample]:
        """Read, or generate, the training or test questions of a task."""
        if split == "train" and self.is_generated(task):
            return generate_examples(task, NUM_TRAIN_QUESTIONS[self.size], self.seed)
        return load_task(self.root, task, split)

    def is_generated(self, task: int) -> bool:
        """Report whether the training questions of a task are generated."""
        if self.trained_on == "generated" or self.missing == "error":
            return self.trained_on == "generated"
        return not (self.root / file_name_of(task, "train")).is_file()


@dataclass(frozen=True, kw_only=True)
class GeneratedStories(StorySource):
    """Generated stories, ``count`` training questions per task; no files needed."""

    file_kind: ClassVar[str] = "babi"
    shared_keys: ClassVar[Names] = ("tasks", "sentences", "validation")
    count: int = 1000

    def read_task(self, task: int, split: FileSplit) -> list[StoryExample]:
        """Generate the training or test questions of a task."""
        check_count("count", self.count * len(self.tasks))
        if split == "test":
            return generate_examples(task, NUM_TEST_QUESTIONS, self.seed + 1)
        return generate_examples(task, self.count, self.seed)


def generate_examples(task: int, count: int, seed: int) -> list[StoryExample]:
    """Generate ``count`` questions of a task; the same seed gives the same questions."""
    return list(generate_once(task, count, seed))


@lru_cache(maxsize=8)  # the training and validation splits are cut from the same questions
def generate_once(task: int, count: int, seed: int) -> tuple[StoryExample, ...]:
    """Generate questions of a task, or return the cached ones."""
    stories = generate_stories(task, count, seed=seed)
    return tuple(example for story in stories for example in extract_examples(story, task))
