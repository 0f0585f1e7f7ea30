"""Data sources of texts that are answered with texts: generated dates, or files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from mnemic.data.contract import Split
from mnemic.data.seq2seq.batches import Seq2SeqDataset, make_seq2seq_dataset
from mnemic.data.seq2seq.dates import generate_dates
from mnemic.data.text_tasks.examples import LabeledExample, TextError
from mnemic.data.text_tasks.labelled import read_labeled
from mnemic.data.text_tasks.splits import TOKENIZER_BUILDERS, TRAINING_SPLITS, TextTask, read_split
from mnemic.recipe import ConfigError, build
from mnemic.text import SubwordTokenizer, Tokenizer
from mnemic.text.windows import Truncation

BYTE_BPE: Mapping[str, Any] = {"kind": "byte-bpe", "vocab": 400}


class Seq2SeqData(NamedTuple):
    """Loaded data of pairs of texts."""

    tokenizer: SubwordTokenizer
    sizes: dict[str, int]
    train: Seq2SeqDataset
    validation: Seq2SeqDataset
    generated_tasks: tuple[int, ...] = ()
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class GeneratedDates:
    """Generated dates: "the third of march nineteen eighty four" → 1984-03-03.

    ``count``, ``validation_size`` and ``test_size`` are the pairs of training, validation and test; no day is in
    two splits. A text has at most ``length`` tokens.
    """

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

    def load(self) -> Seq2SeqData:
        """Read the training and validation split, and train the tokenizer."""
        return encode_splits({split: self.read_split(split) for split in TRAINING_SPLITS}, self.tokenizer, self.length)

    def dataset(self, split: Split, tokenizer: Tokenizer, labels: Sequence[str] = ()) -> Seq2SeqDataset:
        """Read one split and encode it with an existing tokenizer."""
        return make_seq2seq_dataset(self.read_split(split), require_subwords(tokenizer), self.length)

    def read_split(self, split: Split) -> list[LabeledExample]:
        """Generate the pairs of one split."""
        counts = {"train": self.count, "validation": self.validation_size, "test": self.test_size}
        return [
            LabeledExample(phrase, None, day) for phrase, day in generate_dates(split, counts[split], seed=self.seed)
        ]


@dataclass(frozen=True, kw_only=True)
class Seq2SeqFiles:
    """Texts with answer texts, from .tsv files with a header or .jsonl files.

    They have the columns ``text`` and ``label`` (the answer); ``columns`` names others, as for
    ``classes``. A text of more than ``length`` tokens is an error: it is never truncated.
    """

    overlap: ClassVar[int] = 0
    truncation: ClassVar[Truncation] = "error"
    folder: str
    train_file: str = "train"
    validation_file: str = ""
    test_file: str = "test"
    validation: float = 0.1
    columns: Mapping[str, Any] = field(default_factory=dict)
    tokenizer: Mapping[str, Any] = field(default_factory=lambda: {**BYTE_BPE, "vocab": 8000})
    length: int = 256

    def load(self) -> Seq2SeqData:
        """Read the training and validation split, and train the tokenizer."""
        return encode_splits({split: self.read_split(split) for split in TRAINING_SPLITS}, self.tokenizer, self.length)

    def dataset(self, split: Split, tokenizer: Tokenizer, labels: Sequence[str] = ()) -> Seq2SeqDataset:
        """Read one split and encode it with an existing tokenizer."""
        return make_seq2seq_dataset(self.read_split(split), require_subwords(tokenizer), self.length)

    def read_split(self, split: Split) -> list[LabeledExample]:
        """Read the pairs of one split."""

        def read_file(path: Path) -> list[LabeledExample]:
            return read_labeled(path, self.columns, paired=False)

        def encode(examples: Sequence[LabeledExample], tokenizer: Tokenizer, _: Sequence[str]) -> Seq2SeqDataset:
            return make_seq2seq_dataset(examples, require_subwords(tokenizer), self.length)

        return read_split(self, TextTask(read_file, list_texts, lambda _: (), encode), split)


def encode_splits(
    splits: Mapping[Split, Sequence[LabeledExample]], tokenizer: Mapping[str, Any], max_tokens: int
) -> Seq2SeqData:
    """Train one tokenizer for both sides on the training pairs, and encode all splits."""
    subword_tokenizer = require_subwords(build(TOKENIZER_BUILDERS, tokenizer, texts=list_texts(splits["train"])))
    train, validation = (
        make_seq2seq_dataset(splits[split], subword_tokenizer, max_tokens) for split in TRAINING_SPLITS
    )
    return Seq2SeqData(
        subword_tokenizer, {"vocab": len(subword_tokenizer), "max_length": max_tokens}, train, validation
    )


def list_texts(examples: Sequence[LabeledExample]) -> list[str]:
    """List the texts and answers of the examples."""
    return [text for example in examples for text in (example.text, example.label)]


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
