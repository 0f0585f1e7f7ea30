"""Data sources of texts that are answered with texts: generated dates, or files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from mnemic.data.contract import Layout, Names, Split, check_count
from mnemic.data.seq2seq.batches import AnswerStart, Seq2SeqDataset, make_seq2seq_dataset
from mnemic.data.seq2seq.dates import generate_dates
from mnemic.data.text_tasks.examples import LabeledExample, TextError
from mnemic.data.text_tasks.splits import TextFiles, TextSource
from mnemic.data.text_tasks.tables import read_labeled
from mnemic.recipe import ConfigError
from mnemic.text import SubwordTokenizer, Tokenizer

BYTE_BPE: Mapping[str, Any] = {"kind": "byte-bpe", "vocab": 400}
SelectBy = Literal["exact", "perplexity"]


class Seq2SeqSource(TextSource):
    """Base of both kinds: train one tokenizer for texts and answers.

    ``start`` is the token that a decoder begins with: "cls", "sep" (BART) or "pad" (T5). Each
    validation of training computes the metric that selects the best weights, ``select_by``; an
    evaluation computes all of them, and ``scores`` as in ``mnemic.evaluate.text_scores``.
    """

    layout: ClassVar[Layout] = "sequences"
    response: ClassVar[str] = "seq2seq"
    objectives: ClassVar[Names] = ("next-token",)
    scores: ClassVar[Names] = ()
    start: AnswerStart = "cls"
    select_by: SelectBy = "exact"

    def list_scores(self) -> Names:
        """List the scores of generated texts that an evaluation computes."""
        return self.scores

    def list_texts(self, examples: Sequence[Any]) -> list[str]:
        """List the texts and answers of the examples."""
        return [text for example in examples for text in (example.text, example.label)]

    def encode(self, examples: Sequence[Any], tokenizer: Tokenizer, labels: Sequence[str]) -> Seq2SeqDataset:
        """Encode pairs of texts."""
        dataset = make_seq2seq_dataset(examples, require_subwords(tokenizer), self.length, self.start)
        return replace(dataset, metric=self.select_by, scores=self.list_scores())


@dataclass(frozen=True, kw_only=True)
class GeneratedDates(Seq2SeqSource):
    """Generated dates: "the third of march nineteen eighty four" → 1984-03-03.

    ``count``, ``validation_size`` and ``test_size`` are the pairs of training, validation and test;
    no day is in two splits. A text has at most ``length`` tokens.
    """

    file_kind: ClassVar[str] = "seq2seq"
    shared_keys: ClassVar[Names] = ("tokenizer", "length", "start")
    start: AnswerStart = "cls"
    count: int = 20_000
    validation_size: int = 500
    test_size: int = 2_000
    seed: int = 0
    tokenizer: Mapping[str, Any] = field(default_factory=lambda: BYTE_BPE)
    length: int = 64

    def __post_init__(self) -> None:
        if min(self.count, self.validation_size, self.test_size) < 1:
            values = f"count = {self.count}, validation_size = {self.validation_size}, test_size = {self.test_size}"
            raise ConfigError(f"each split of the dates has at least one pair, not {values}")
        for name in ("count", "validation_size", "test_size"):
            check_count(name, getattr(self, name))

    def read_split(self, split: Split) -> list[LabeledExample]:
        """Generate the pairs of one split."""
        counts = {"train": self.count, "validation": self.validation_size, "test": self.test_size}
        dates = generate_dates(split, counts[split], seed=self.seed)
        return [LabeledExample(phrase, None, day) for phrase, day in dates]


@dataclass(frozen=True, kw_only=True)
class Seq2SeqFiles(Seq2SeqSource, TextFiles):
    """Texts with answer texts, from .tsv files with a header or .jsonl files.

    They have the columns ``text`` and ``label`` (the answer); ``columns`` names others, as for
    ``classes``. A text of more than ``length`` tokens is an error: it is never truncated.
    ``metrics`` are scores of generated texts that an evaluation computes, such as ["bleu"].
    """

    files: ClassVar[str] = "text"
    alternative: ClassVar[str] = "dates that are made with --set data.kind=dates"
    columns: Mapping[str, Any] = field(default_factory=dict)
    metrics: list[str] = field(default_factory=list)
    select_by: SelectBy = "exact"
    start: AnswerStart = "cls"
    tokenizer: Mapping[str, Any] = field(default_factory=lambda: {**BYTE_BPE, "vocab": 8000})

    def list_scores(self) -> Names:
        """List the scores that the recipe names."""
        return tuple(self.metrics)

    def read_file(self, path: Path) -> list[LabeledExample]:
        """Read the pairs of one file."""
        return read_labeled(path, self.columns, paired=False)


def require_subwords(tokenizer: Tokenizer) -> SubwordTokenizer:
    """Return a subword tokenizer, or raise: others have no start and end tokens.

    They also drop punctuation.
    """
    if not isinstance(tokenizer, SubwordTokenizer):
        raise TextError(
            f"texts cannot be generated with a tokenizer of kind {tokenizer.kind!r}; set "
            "data.tokenizer.kind to byte-bpe, bpe, unigram or wordpiece"
        )
    return tokenizer
