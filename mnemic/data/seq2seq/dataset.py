"""Data sets of texts that are answered with texts: dates that are made, or files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from mnemic.data.contract import Part
from mnemic.data.seq2seq.batches import SequenceSet, sequence_set
from mnemic.data.seq2seq.dates import pairs
from mnemic.data.text_tasks.examples import Labelled, TextError
from mnemic.data.text_tasks.labelled import read_labelled
from mnemic.data.text_tasks.splits import LEARNT, VOCABULARIES, Manner, told
from mnemic.recipe import ConfigError, build
from mnemic.text import Subwords, Tokenizer
from mnemic.text.windows import Truncation

BYTES: Mapping[str, Any] = {"kind": "byte-bpe", "vocab": 400}


class SequenceData(NamedTuple):
    """Everything training needs to know of pairs of texts."""

    words: Subwords
    sizes: dict[str, int]
    train: SequenceSet
    validation: SequenceSet
    made: tuple[int, ...] = ()
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class GeneratedDates:
    """Dates in words and in digits: "the third of march nineteen eighty four" → 1984-03-03.

    ``count``, ``held`` and ``tested`` are the pairs of each part; no day is in two of them. A text
    has at most ``length`` tokens.
    """

    count: int = 20_000
    held: int = 500
    tested: int = 2_000
    seed: int = 0
    tokenizer: Mapping[str, Any] = field(default_factory=lambda: BYTES)
    length: int = 64

    def __post_init__(self) -> None:
        if min(self.count, self.held, self.tested) < 1:
            came = f"count = {self.count}, held = {self.held}, tested = {self.tested}"
            raise ConfigError(f"each part of the dates has at least one pair, not {came}")

    def data(self) -> SequenceData:
        return sequence_data(
            {part: self.told(part) for part in LEARNT}, self.tokenizer, self.length
        )

    def asked(self, part: Part, words: Tokenizer, labels: Sequence[str] = ()) -> SequenceSet:
        return sequence_set(self.told(part), subwords(words), self.length)

    def told(self, part: Part) -> list[Labelled]:
        counts = {"train": self.count, "validation": self.held, "test": self.tested}
        return [Labelled(own, None, day) for own, day in pairs(part, counts[part], seed=self.seed)]


@dataclass(frozen=True, kw_only=True)
class SequenceFiles:
    """Texts with answers: .tsv with a header, or .jsonl, with ``text`` and ``label`` (the answer).

    ``columns`` names others than the usual columns, as for ``classes``. A text of more than
    ``length`` tokens is an error: it is never cut.
    """

    overlap: ClassVar[int] = 0
    truncation: ClassVar[Truncation] = "error"
    folder: str
    learnt: str = "train"
    held: str = ""
    tested: str = "test"
    validation: float = 0.1
    columns: Mapping[str, Any] = field(default_factory=dict)
    tokenizer: Mapping[str, Any] = field(default_factory=lambda: {**BYTES, "vocab": 8000})
    length: int = 256

    def data(self) -> SequenceData:
        return sequence_data(
            {part: self.told(part) for part in LEARNT}, self.tokenizer, self.length
        )

    def asked(self, part: Part, words: Tokenizer, labels: Sequence[str] = ()) -> SequenceSet:
        return sequence_set(self.told(part), subwords(words), self.length)

    def told(self, part: Part) -> list[Labelled]:
        def read(path: Path) -> list[Labelled]:
            return read_labelled(path, self.columns, paired=False)

        def number(examples: Sequence[Labelled], words: Tokenizer, _: Sequence[str]) -> SequenceSet:
            return sequence_set(examples, subwords(words), self.length)

        return told(self, Manner(read, both, lambda _: (), number), part)


def sequence_data(
    read: Mapping[Part, Sequence[Labelled]], tokenizer: Mapping[str, Any], length: int
) -> SequenceData:
    """Learn one vocabulary for both sides, from the training pairs, and number all parts."""
    words = subwords(build(VOCABULARIES, tokenizer, texts=both(read["train"])))
    train, held = (sequence_set(read[part], words, length) for part in LEARNT)
    return SequenceData(words, {"vocab": len(words), "longest": length}, train, held)


def both(examples: Sequence[Labelled]) -> list[str]:
    return [text for own in examples for text in (own.text, own.label)]


def subwords(words: Tokenizer) -> Subwords:
    """Only these have tokens that begin and end a text, and keep punctuation."""
    if not isinstance(words, Subwords):
        raise TextError(
            f"texts cannot be said in a vocabulary of kind {words.kind!r}; set data.tokenizer.kind "
            "to byte-bpe, bpe, unigram or wordpiece"
        )
    return words
