"""Datasets of long texts for recipes: stories or facts in background text, and documents.

Common keys: ``background`` is a folder or file of novels (none: generated sentences); a tenth of
the novels is held out for validation and a fifth for the test. ``length`` is the number of tokens
per segment, ``segments`` the number of segments of the longest documents: training documents have
1 to that many, validation and test documents all of them. ``train.segments`` changes that per
phase. ``where = "first"``: the facts begin the document, and all background follows them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from mnemic.data.babi.dataset import GeneratedStories, StoryFolder, read_examples
from mnemic.data.babi.folder import TASKS, Size
from mnemic.data.babi.format import StoryExample
from mnemic.data.contract import SPLITS, Sizes, Split
from mnemic.data.long_context.background import Background, encode_novels, read_novels
from mnemic.data.long_context.batches import TOKEN_TARGETS, LongDataset, LongExample, TargetKind
from mnemic.data.long_context.hide import StoryPosition, check_segment_size
from mnemic.data.long_context.recall import EXAMPLE_MAKERS, TASK_NAMES, TASK_NUMBERS, RecallTask
from mnemic.data.text_tasks.splits import TOKENIZER_BUILDERS
from mnemic.recipe import ConfigError, build
from mnemic.text import SubwordTokenizer, Tokenizer

FIRST_TASKS = (1, 2, 3, 4, 5)
SMALL_WORDPIECE: Mapping[str, Any] = {"kind": "wordpiece", "vocab": 8000, "coverage": 0.9999}
NUM_VOCABULARY_SENTENCES = 50_000  # of background, to learn a vocabulary from


class LongSource(Protocol):
    """A source of long texts; its fields are the common keys of their recipes."""

    @property
    def background(self) -> str: ...

    @property
    def tokenizer(self) -> Mapping[str, Any]: ...

    @property
    def length(self) -> int: ...

    @property
    def segments(self) -> int: ...

    @property
    def seed(self) -> int: ...

    @property
    def target(self) -> TargetKind: ...

    @property
    def where(self) -> StoryPosition: ...

    def read_split(self, split: Split) -> list[StoryExample]: ...


class LongData(NamedTuple):
    """The splits of a long-text dataset, with their tokenizer and the sizes a network needs."""

    tokenizer: SubwordTokenizer
    sizes: Sizes
    train: LongDataset
    validation: LongDataset
    test: LongDataset
    generated_tasks: tuple[int, ...] = ()
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LongStories:
    """bAbI stories in background text: official files of ``folder``, or generated stories.

    An absent training file (task 3 of the 10k files at hand) is generated; without a folder all
    stories are, ``count`` questions per task. ``distractors`` is the number of distractors per
    sentence of background in training (see ``hide.insert_distractors``).
    """

    folder: str = ""
    size: Size = "10k"
    tasks: Sequence[int] = FIRST_TASKS
    count: int = 10_000
    background: str = ""
    length: int = 128
    segments: int = 4
    validation: float = 0.02
    distractors: float = 0.0
    tokenizer: Mapping[str, Any] = field(default_factory=lambda: SMALL_WORDPIECE)
    seed: int = 0
    target: TargetKind = field(default="question", init=False)
    where: StoryPosition = field(default="anywhere", init=False)

    def __post_init__(self) -> None:
        if not 0 <= self.distractors <= 1:
            raise ConfigError(f"data.distractors is a share between 0 and 1, not {self.distractors}")

    @property
    def names(self) -> Mapping[int, str]:
        """Return the name of each task."""
        return TASKS

    @property
    def story_source(self) -> Any:
        """Return the source of the stories: the folder, or the generator."""
        options: dict[str, Any] = {"tasks": self.tasks, "validation": self.validation}
        options["seed"] = self.seed
        if not self.folder:
            return GeneratedStories(count=self.count, **options)
        return StoryFolder(folder=self.folder, size=self.size, missing="generate", **options)

    def read_split(self, split: Split) -> list[StoryExample]:
        """Read the stories of a split."""
        return read_examples(self.story_source, split)

    def load(self) -> LongData:
        """Load all splits, with the tokenizer built from the training data."""
        generated_tasks = tuple(task for task in self.tasks if self.story_source.is_generated(task))
        data = load_long_data(self)
        return data._replace(
            generated_tasks=generated_tasks, train=replace(data.train, distractor_rate=self.distractors)
        )

    def dataset(self, split: Split, tokenizer: Tokenizer, tasks: Sequence[int] | None = None) -> LongDataset:
        """Encode the questions of a split with a tokenizer."""
        return load_long_dataset(self, split, tokenizer, tasks)


@dataclass(frozen=True, kw_only=True)
class LongRecall:
    """Recall tasks in background text: "keys" asks who has what, "copies" repeats words.

    ``facts`` is the number of keys, or of words that the answer repeats one by one.
    """

    task: RecallTask = "keys"
    facts: int = 1
    count: int = 10_000
    background: str = ""
    length: int = 128
    segments: int = 4
    where: StoryPosition = "anywhere"
    tokenizer: Mapping[str, Any] = field(default_factory=lambda: SMALL_WORDPIECE)
    seed: int = 0
    target: TargetKind = field(default="question", init=False)

    @property
    def tasks(self) -> Sequence[int]:
        """Return the numbers of the tasks."""
        return (TASK_NUMBERS[self.task],)

    @property
    def names(self) -> Mapping[int, str]:
        """Return the name of each task."""
        return TASK_NAMES

    def read_split(self, split: Split) -> list[StoryExample]:
        """Generate the examples of a split."""
        count, seed = num_examples_of(self.count, split), 3 * self.seed + SPLITS.index(split)
        return EXAMPLE_MAKERS[self.task](count, self.facts, seed)

    def load(self) -> LongData:
        """Load all splits, with the tokenizer built from the training data."""
        return load_long_data(self)

    def dataset(self, split: Split, tokenizer: Tokenizer, tasks: Sequence[int] | None = None) -> LongDataset:
        """Encode the questions of a split with a tokenizer."""
        return load_long_dataset(self, split, tokenizer, tasks)


@dataclass(frozen=True, kw_only=True)
class LongDocuments:
    """Documents for language modeling: predict masked words, or the ``next`` one.

    ``folder`` is a folder or file of texts, split like background (none: generated texts). An epoch
    has ``count`` random spans; half of them are followed by their continuation, for next-sentence
    prediction.
    """

    folder: str = ""
    count: int = 10_000
    length: int = 128
    segments: int = 4
    tokenizer: Mapping[str, Any] = field(default_factory=lambda: SMALL_WORDPIECE)
    seed: int = 0
    target: TargetKind = "masked"
    where: StoryPosition = field(default="anywhere", init=False)

    @property
    def background(self) -> str:
        """Return the folder of the texts, which serve as background without a story."""
        return self.folder

    @property
    def tasks(self) -> Sequence[int]:
        """Return the numbers of the tasks."""
        return (0,)

    @property
    def names(self) -> Mapping[int, str]:
        """Return the name of each task."""
        return {0: f"{self.target} word"}

    def read_split(self, split: Split) -> list[StoryExample]:
        return [StoryExample((), "", "", (), 0)] * num_examples_of(self.count, split)

    def load(self) -> LongData:
        """Load all splits, with the tokenizer built from the training data."""
        if self.target not in TOKEN_TARGETS:
            raise ConfigError("documents are asked for words: data.target is 'masked' or 'next'")
        return load_long_data(self)

    def dataset(self, split: Split, tokenizer: Tokenizer, tasks: Sequence[int] | None = None) -> LongDataset:
        """Encode the questions of a split with a tokenizer."""
        return load_long_dataset(self, split, tokenizer, tasks)


def num_examples_of(num_train: int, split: Split) -> int:
    """Return the number of examples of a split.

    The validation split has a fiftieth and the test split a tenth of the training examples, but at
    least 50.
    """
    return {"train": num_train, "validation": max(num_train // 50, 50), "test": max(num_train // 10, 50)}[split]


def load_long_data(source: LongSource) -> LongData:
    """Load all splits of a source and build the tokenizer from its training texts."""
    check_segment_size(source.length, source.segments)
    novels = read_novels(source.background)
    examples = {split: source.read_split(split) for split in SPLITS}
    tokenizer = build(
        TOKENIZER_BUILDERS, source.tokenizer, texts=list_vocabulary_texts(examples["train"], novels["train"])
    )
    if not isinstance(tokenizer, SubwordTokenizer):
        raise ConfigError("long texts need subwords: data.tokenizer.kind is wordpiece or stored")
    train, validation, test = (
        encode_examples(source, examples[split], encode_novels(novels[split], tokenizer), tokenizer) for split in SPLITS
    )
    return LongData(tokenizer, {"vocab": len(tokenizer), "max_length": source.length}, train, validation, test)


def load_long_dataset(
    source: LongSource, split: Split, tokenizer: Tokenizer, tasks: Sequence[int] | None = None
) -> LongDataset:
    """Load one split of a source with a given tokenizer."""
    assert isinstance(tokenizer, SubwordTokenizer)
    examples = [example for example in source.read_split(split) if tasks is None or example.task in tasks]
    return encode_examples(source, examples, encode_novels(read_novels(source.background)[split], tokenizer), tokenizer)


def encode_examples(
    source: LongSource, examples: Sequence[StoryExample], background: Background, tokenizer: SubwordTokenizer
) -> LongDataset:
    """Encode examples as a dataset; each distinct sentence is encoded once."""
    texts = dict.fromkeys(
        text for example in examples for text in (*example.sentences, example.question, example.answer)
    )
    ids_of_text = {text: np.array(ids, dtype=np.int32) for text, ids in zip(texts, tokenizer.encode_batch(list(texts)))}
    long_examples = [
        LongExample(
            tuple(ids_of_text[text] for text in example.sentences),
            ids_of_text[example.question],
            ids_of_text[example.answer],
            tuple(dict.fromkeys(example.facts)),
            example.task,
        )
        for example in examples
    ]
    return LongDataset(
        examples=long_examples,
        background=background,
        tokenizer=tokenizer,
        length=source.length,
        segments=source.segments,
        target=source.target,
        where=source.where,
        seed=source.seed,
    )


def list_vocabulary_texts(examples: Iterable[StoryExample], novels: Sequence[Sequence[str]]) -> list[str]:
    """List the texts that a vocabulary is learned from.

    An example repeats the story of the example before it, so only its last two sentences are used.
    """
    stories = [text for example in examples for text in (*example.sentences[-2:], example.question, example.answer)]
    sentences = [text for novel in novels for text in novel]
    step = max(len(sentences) // NUM_VOCABULARY_SENTENCES, 1)
    return [*stories, *sentences[::step]]
