"""Datasets of long texts for recipes: stories or facts in background text, and documents.

Common keys: ``background`` is a folder or file of novels (none: generated sentences); a tenth of
the novels is held out for validation and a fifth for the test. ``length`` is the number of tokens
per segment, ``segments`` the number of segments of the longest documents: training documents have
1 to that many, validation and test documents all of them. ``train.segments`` changes that per
phase. ``where = "first"``: the facts begin the document, and all background follows them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from mnemic.data.babi.dataset import GeneratedStories, StoryFolder, StorySource
from mnemic.data.babi.folder import TASKS, Size
from mnemic.data.babi.format import StoryExample
from mnemic.data.contract import SPLITS, DataSource, Layout, LoadedData, Names, Split, check_count
from mnemic.data.long_context.background import Background, encode_arrays, encode_novels, read_novels
from mnemic.data.long_context.batches import TOKEN_TARGETS, LongDataset, LongExample, TargetKind
from mnemic.data.long_context.hide import StoryPosition
from mnemic.data.long_context.recall import EXAMPLE_MAKERS, TASK_NAMES, TASK_NUMBERS, RecallTask
from mnemic.data.text_tasks.splits import TOKENIZER_BUILDERS
from mnemic.recipe import ConfigError, build
from mnemic.text import SubwordTokenizer, Tokenizer

FIRST_TASKS = (1, 2, 3, 4, 5)
SMALL_WORDPIECE: Mapping[str, Any] = {"kind": "wordpiece", "vocab": 8000, "coverage": 0.9999}
NUM_VOCABULARY_SENTENCES = 50_000  # of background, to learn a vocabulary from


MAX_TOKENS = 10_000_000  # of one text, which is generated and read as a whole


@dataclass(frozen=True, kw_only=True)
class LongSource(DataSource):
    """Base of the kinds of long texts, with the keys they share."""

    layout: ClassVar[Layout] = "segments"
    objectives: ClassVar[Names] = ("bert-mass", "segment-next-token")
    suggestions: ClassVar[Names] = (
        "evaluate {run}",
        "text read notes.mem --model {run} FILE",
        'text ask notes.mem "Where is Mary?"',
    )
    length: int = 128
    segments: int = 4
    tokenizer: Mapping[str, Any] = field(default_factory=lambda: SMALL_WORDPIECE)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.length < 8 or self.segments < 1:
            values = f"{self.length} and {self.segments}"
            raise ConfigError(f"data.length is at least 8 tokens and data.segments at least 1, not {values}")
        if self.length * self.segments > MAX_TOKENS:
            raise ConfigError(
                f"a long text has at most {MAX_TOKENS:,} tokens: data.length × data.segments is "
                f"{self.length * self.segments:,}"
            )

    def build_tokenizer(self, texts: Sequence[str], noun: str = "long texts") -> SubwordTokenizer:
        """Build the tokenizer; it must have subwords."""
        tokenizer = build(TOKENIZER_BUILDERS, self.tokenizer, texts=texts)
        if not isinstance(tokenizer, SubwordTokenizer):
            raise ConfigError(f"{noun} need subwords: data.tokenizer.kind is wordpiece or stored")
        return tokenizer


class BackgroundSource(LongSource):
    """Base of the kinds that have background text."""

    target: TargetKind = "question"
    where: StoryPosition = "anywhere"

    @property
    def background(self) -> str:
        """Return the folder or file of the background text; empty: it is generated."""
        raise NotImplementedError

    def load(self) -> LoadedData[LongDataset]:
        """Load all splits, with the tokenizer built from the training data."""
        novels = read_novels(self.background)
        examples = {split: self.read_split(split) for split in SPLITS}
        tokenizer = self.build_tokenizer(list_vocabulary_texts(examples["train"], novels["train"]))
        backgrounds = {split: encode_novels(novels[split], tokenizer) for split in SPLITS}
        train, validation, test = (self.encode(examples[split], backgrounds[split], tokenizer) for split in SPLITS)
        return LoadedData(tokenizer, {"vocab": len(tokenizer), "max_length": self.length}, train, validation, test)

    def dataset(self, split: Split, tokenizer: Tokenizer, tasks: Sequence[int] | None = None) -> LongDataset:
        """Encode the questions of a split with a tokenizer."""
        assert isinstance(tokenizer, SubwordTokenizer)
        examples = [example for example in self.read_split(split) if tasks is None or example.task in tasks]
        return self.encode(examples, encode_novels(read_novels(self.background)[split], tokenizer), tokenizer)

    def encode(
        self, examples: Sequence[StoryExample], background: Background, tokenizer: SubwordTokenizer
    ) -> LongDataset:
        """Encode examples as a dataset; each distinct sentence is encoded once."""
        texts = dict.fromkeys(
            text for example in examples for text in (*example.sentences, example.question, example.answer)
        )
        ids_of_text = dict(zip(texts, encode_arrays(texts, tokenizer)))
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
            length=self.length,
            segments=self.segments,
            target=self.target,
            where=self.where,
            seed=self.seed,
        )


@dataclass(frozen=True, kw_only=True)
class LongStories(BackgroundSource):
    """bAbI stories in background text: official files of ``folder``, or generated stories.

    An absent training file (task 3 of the 10k files at hand) is generated; without a folder all
    stories are, ``count`` questions per task. ``distractors`` is the number of distractors per
    sentence of background in training (see ``hide.insert_distractors``).
    """

    names: ClassVar[Mapping[int, str]] = TASKS
    folder: str = ""
    size: Size = "10k"
    tasks: Sequence[int] = FIRST_TASKS
    count: int = 10_000
    background: str = ""
    validation: float = 0.02
    distractors: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.distractors <= 1:
            raise ConfigError(f"data.distractors is a share between 0 and 1, not {self.distractors}")

    @property
    def story_source(self) -> StorySource:
        """Return the source of the stories: the folder, or the generator."""
        options: dict[str, Any] = {"tasks": self.tasks, "validation": self.validation, "seed": self.seed}
        if not self.folder:
            return GeneratedStories(count=self.count, **options)
        return StoryFolder(folder=self.folder, size=self.size, missing="generate", **options)

    def read_split(self, split: Split) -> list[StoryExample]:
        """Read the stories of a split."""
        return self.story_source.read_examples(split)

    def load(self) -> LoadedData[LongDataset]:
        """Load all splits, with the tokenizer built from the training data."""
        generated_tasks = tuple(task for task in self.tasks if self.story_source.is_generated(task))
        data = super().load()
        return data._replace(
            generated_tasks=generated_tasks, train=replace(data.train, distractor_rate=self.distractors)
        )


@dataclass(frozen=True, kw_only=True)
class LongRecall(BackgroundSource):
    """Recall tasks in background text: "keys" asks who has what, "copies" repeats words.

    ``facts`` is the number of keys, or of words that the answer repeats one by one.
    """

    names: ClassVar[Mapping[int, str]] = TASK_NAMES
    task: RecallTask = "keys"
    facts: int = 1
    count: int = 10_000
    background: str = ""
    where: StoryPosition = "anywhere"

    @property
    def tasks(self) -> Sequence[int]:
        """Return the numbers of the tasks."""
        return (TASK_NUMBERS[self.task],)

    def read_split(self, split: Split) -> list[StoryExample]:
        """Generate the examples of a split."""
        check_count("facts", self.facts * self.count)
        count, seed = num_examples_of(self.count, split), 3 * self.seed + SPLITS.index(split)
        return EXAMPLE_MAKERS[self.task](count, self.facts, seed)


@dataclass(frozen=True, kw_only=True)
class LongDocuments(BackgroundSource):
    """Documents for language modeling: predict masked words, or the ``next`` one.

    ``folder`` is a folder or file of texts, split like background (none: generated texts). An epoch
    has ``count`` random spans; half of them are followed by their continuation, for next-sentence
    prediction.
    """

    suggestions: ClassVar[Names] = ("evaluate {run}",)  # its queries are words, not questions
    tasks: ClassVar[Sequence[int]] = (0,)
    folder: str = ""
    count: int = 10_000
    target: TargetKind = "masked"

    @property
    def background(self) -> str:
        """Return the folder of the texts, which serve as background without a story."""
        return self.folder

    @property
    def names(self) -> Mapping[int, str]:
        """Return the name of each task."""
        return {0: f"{self.target} word"}

    def read_split(self, split: Split) -> list[StoryExample]:
        """Repeat an empty example: each is a random span of the texts."""
        check_count("count", self.count)
        return [StoryExample((), "", "", (), 0)] * num_examples_of(self.count, split)

    def load(self) -> LoadedData[LongDataset]:
        """Load all splits, with the tokenizer built from the training data."""
        if self.target not in TOKEN_TARGETS:
            raise ConfigError("documents are asked for words: data.target is 'masked' or 'next'")
        return super().load()


def num_examples_of(num_train: int, split: Split) -> int:
    """Return the number of examples of a split.

    The validation split has a fiftieth and the test split a tenth of the training examples, but at
    least 50.
    """
    return {"train": num_train, "validation": max(num_train // 50, 50), "test": max(num_train // 10, 50)}[split]


def list_vocabulary_texts(examples: Iterable[StoryExample], novels: Sequence[Sequence[str]]) -> list[str]:
    """List the texts that a vocabulary is learned from.

    An example repeats the story of the example before it, so only its last two sentences are used.
    """
    stories = [text for example in examples for text in (*example.sentences[-2:], example.question, example.answer)]
    sentences = [text for novel in novels for text in novel]
    step = max(len(sentences) // NUM_VOCABULARY_SENTENCES, 1)
    return [*stories, *sentences[::step]]
