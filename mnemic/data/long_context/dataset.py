"""Data sets of long texts for a recipe: stories and facts among background; documents.

All have in common: ``background`` is a folder or file of novels (none: made-up sentences), a tenth
of which is held back for validation and a fifth for the test, whole novels each. ``length`` is how
many tokens a segment has, ``segments`` how many the longest documents have: those of training have
1 to so many, those of validation and test all. ``train.segments`` changes that phase by phase.
``where = "first"``: the facts begin the document, and all background follows them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from mnemic.data.babi.dataset import GeneratedStories, StoryFolder, questions
from mnemic.data.babi.folder import TASKS, Size
from mnemic.data.babi.format import Example
from mnemic.data.contract import PARTS, Part, Sizes
from mnemic.data.long_context.background import Background, number, read_novels
from mnemic.data.long_context.batches import WORDS, Asked, Asks, LongSet
from mnemic.data.long_context.hide import Where, check_length
from mnemic.data.long_context.recall import NAMES, NUMBERS, RECALLS, Recall
from mnemic.data.text_tasks.splits import VOCABULARIES
from mnemic.recipe import ConfigError, build
from mnemic.text import Subwords, Tokenizer

FIRST = (1, 2, 3, 4, 5)
SMALL: Mapping[str, Any] = {"kind": "wordpiece", "vocab": 8000, "coverage": 0.9999}
SAMPLE = 50_000  # sentences of background that a vocabulary is learnt from


class Source(Protocol):
    """What a recipe says of every kind of long texts."""

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
    def asks(self) -> Asks: ...

    @property
    def where(self) -> Where: ...

    def told(self, part: Part) -> list[Example]: ...


class LongData(NamedTuple):
    """Everything training and evaluation need to know of a data set."""

    words: Subwords
    sizes: Sizes
    train: LongSet
    validation: LongSet
    test: LongSet
    made: tuple[int, ...] = ()
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LongStories:
    """bAbI stories among background: the official files of ``folder``, or the generator's.

    A training file that is not there (task 3 of the 10k files at hand) comes from the generator;
    without a folder all do, ``count`` questions a task. ``misses``: in training, so many for each
    sentence of background almost belong to the story (``hide.near_misses``).
    """

    folder: str = ""
    size: Size = "10k"
    tasks: Sequence[int] = FIRST
    count: int = 10_000
    background: str = ""
    length: int = 128
    segments: int = 4
    validation: float = 0.02
    misses: float = 0.0
    tokenizer: Mapping[str, Any] = field(default_factory=lambda: SMALL)
    seed: int = 0
    asks: Asks = field(default="question", init=False)
    where: Where = field(default="anywhere", init=False)

    def __post_init__(self) -> None:
        if not 0 <= self.misses <= 1:
            raise ConfigError(f"data.misses is a share between 0 and 1, not {self.misses}")

    @property
    def names(self) -> Mapping[int, str]:
        return TASKS

    @property
    def source(self) -> Any:
        kept: dict[str, Any] = {"tasks": self.tasks, "validation": self.validation}
        kept["seed"] = self.seed
        if not self.folder:
            return GeneratedStories(count=self.count, **kept)
        return StoryFolder(folder=self.folder, size=self.size, missing="generate", **kept)

    def told(self, part: Part) -> list[Example]:
        return questions(self.source, part)

    def data(self) -> LongData:
        made = tuple(task for task in self.tasks if self.source.is_made(task))
        found = long_data(self)
        return found._replace(made=made, train=replace(found.train, misses=self.misses))

    def asked(self, part: Part, words: Tokenizer, tasks: Sequence[int] | None = None) -> LongSet:
        return long_set(self, part, words, tasks)


@dataclass(frozen=True, kw_only=True)
class LongRecall:
    """Facts among background: ``task`` "keys" asks who has what, "copies" for a row of words.

    ``facts`` are how many keys there are, or how many words, to be said again one by one.
    """

    task: Recall = "keys"
    facts: int = 1
    count: int = 10_000
    background: str = ""
    length: int = 128
    segments: int = 4
    where: Where = "anywhere"
    tokenizer: Mapping[str, Any] = field(default_factory=lambda: SMALL)
    seed: int = 0
    asks: Asks = field(default="question", init=False)

    @property
    def tasks(self) -> Sequence[int]:
        return (NUMBERS[self.task],)

    @property
    def names(self) -> Mapping[int, str]:
        return NAMES

    def told(self, part: Part) -> list[Example]:
        count, seed = counted(self.count, part), 3 * self.seed + PARTS.index(part)
        return RECALLS[self.task](count, self.facts, seed)

    def data(self) -> LongData:
        return long_data(self)

    def asked(self, part: Part, words: Tokenizer, tasks: Sequence[int] | None = None) -> LongSet:
        return long_set(self, part, words, tasks)


@dataclass(frozen=True, kw_only=True)
class Documents:
    """Texts themselves, to learn their words: masked ones, or the ``next`` one.

    ``folder`` or file of texts, parted as background is (none: made-up ones). An epoch has
    ``count`` stretches, drawn anew each time; behind each stands, in half of all cases, how it goes
    on, for next-sentence prediction.
    """

    folder: str = ""
    count: int = 10_000
    length: int = 128
    segments: int = 4
    tokenizer: Mapping[str, Any] = field(default_factory=lambda: SMALL)
    seed: int = 0
    asks: Asks = "masked"
    where: Where = field(default="anywhere", init=False)

    @property
    def background(self) -> str:
        return self.folder

    @property
    def tasks(self) -> Sequence[int]:
        return (0,)

    @property
    def names(self) -> Mapping[int, str]:
        return {0: f"{self.asks} word"}

    def told(self, part: Part) -> list[Example]:
        return [Example((), "", "", (), 0)] * counted(self.count, part)

    def data(self) -> LongData:
        if self.asks not in WORDS:
            raise ConfigError("documents are asked for words: data.asks is 'masked' or 'next'")
        return long_data(self)

    def asked(self, part: Part, words: Tokenizer, tasks: Sequence[int] | None = None) -> LongSet:
        return long_set(self, part, words, tasks)


def counted(count: int, part: Part) -> int:
    """How many examples a part has: a fiftieth and a tenth of the training set, at least 50."""
    return {"train": count, "validation": max(count // 50, 50), "test": max(count // 10, 50)}[part]


def long_data(source: Source) -> LongData:
    """Read everything; words are those of what may be learnt from."""
    check_length(source.length, source.segments)
    novels = read_novels(source.background)
    told = {part: source.told(part) for part in PARTS}
    words = build(VOCABULARIES, source.tokenizer, texts=texts_of(told["train"], novels["train"]))
    if not isinstance(words, Subwords):
        raise ConfigError("long texts need subwords: data.tokenizer.kind is wordpiece or stored")
    train, held, test = (
        numbered(source, told[part], number(novels[part], words), words) for part in PARTS
    )
    return LongData(words, {"vocab": len(words), "longest": source.length}, train, held, test)


def long_set(
    source: Source, part: Part, words: Tokenizer, tasks: Sequence[int] | None = None
) -> LongSet:
    """One part, in words that are already known."""
    assert isinstance(words, Subwords)
    own = [one for one in source.told(part) if tasks is None or one.task in tasks]
    return numbered(source, own, number(read_novels(source.background)[part], words), words)


def numbered(
    source: Source, told: Sequence[Example], background: Background, words: Subwords
) -> LongSet:
    """Examples in tokens; every different sentence is encoded once."""
    texts = dict.fromkeys(
        text for own in told for text in (*own.sentences, own.question, own.answer)
    )
    known = {
        text: np.array(ids, dtype=np.int32)
        for text, ids in zip(texts, words.encode_all(list(texts)))
    }
    examples = [
        Asked(
            tuple(known[text] for text in own.sentences),
            known[own.question],
            known[own.answer],
            tuple(dict.fromkeys(own.facts)),
            own.task,
        )
        for own in told
    ]
    return LongSet(
        examples=examples,
        background=background,
        tokenizer=words,
        length=source.length,
        segments=source.segments,
        asks=source.asks,
        where=source.where,
        seed=source.seed,
    )


def texts_of(told: Iterable[Example], novels: Sequence[Sequence[str]]) -> list[str]:
    """What a vocabulary is learnt from; a story's words count as often as they are told."""
    stories = [text for own in told for text in (*own.sentences[-2:], own.question, own.answer)]
    sentences = [text for novel in novels for text in novel]
    step = max(len(sentences) // SAMPLE, 1)
    return [*stories, *sentences[::step]]
