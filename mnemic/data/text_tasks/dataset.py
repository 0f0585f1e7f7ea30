"""Data sources of text tasks for recipes: one class per kind, each reads a folder.

The keys that all have are those of ``splits.TextFiles``. ``length``, ``overlap`` and ``truncation``
say how texts are cut into windows (see ``mnemic.text.windows``). ``tokenizer`` is trained on the
training texts, or ``stored``.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from mnemic.data.contract import Names
from mnemic.data.text_tasks.batches import TextDataset
from mnemic.data.text_tasks.conll import OUTSIDE_TAG, read_conll
from mnemic.data.text_tasks.encode_windows import encode_labeled, encode_questions, encode_tagged
from mnemic.data.text_tasks.examples import LabeledExample, QuestionExample, TaggedExample, TextError
from mnemic.data.text_tasks.splits import WindowFiles
from mnemic.data.text_tasks.squad import read_squad
from mnemic.data.text_tasks.tables import read_label_first, read_labeled
from mnemic.text import Tokenizer

Labels = Literal["names", "numbers"]
Metric = Literal["accuracy", "f1", "matthews", "pearson", "spearman"]
NUMBER_METRICS = ("pearson", "spearman")


@dataclass(frozen=True, kw_only=True)
class ClassFiles(WindowFiles):
    """Texts with a class or number each, from .tsv, .csv or .jsonl files.

    Tables have a header. ``columns`` names other columns than the usual ones; numbers from 1 are
    for a file without a header, such as CoLA's ``{ text = 4, label = 2 }``. With ``label_first``
    files have no columns: each line is a label, a blank and a text, as in SST-5. ``metric`` selects
    the best weights.
    """

    response: ClassVar[str] = "classes"
    objectives: ClassVar[Names] = ("classes", "numbers")
    reads_segments: ClassVar[bool] = True
    files: ClassVar[str] = "text"
    alternative: ClassVar[str] = "your own .tsv or .jsonl files"
    columns: Mapping[str, Any] = field(default_factory=dict)
    label_first: bool = False
    labels: Labels = "names"
    metric: Metric = "accuracy"

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.labels == "numbers") != (self.metric in NUMBER_METRICS):
            expected = "pearson or spearman" if self.labels == "numbers" else "accuracy, f1 or matthews"
            raise TextError(f"data.metric for labels that are {self.labels} is {expected}")
        if self.label_first and (self.columns or self.paired):
            raise TextError("data.label_first is for lines of one text without columns: leave it out")

    @classmethod
    def fitting_objectives(cls, spec: Mapping[str, Any]) -> Names:
        """Return the kinds of objective for classes, or for numbers."""
        return ("numbers",) if spec.get("labels") == "numbers" else ("classes",)

    def read_file(self, path: Path) -> list[LabeledExample]:
        """Read the texts or pairs of one file."""
        if self.label_first:
            return read_label_first(path)
        return read_labeled(path, self.columns, paired=self.paired)

    def list_texts(self, examples: Sequence[LabeledExample]) -> Iterable[str]:
        """List all texts of the examples, both of a pair."""
        return [text for example in examples for text in (example.text, example.pair) if text is not None]

    def list_labels(self, examples: Sequence[LabeledExample]) -> tuple[str, ...]:
        """List the classes of the training examples; there must be at least two."""
        labels = () if self.labels == "numbers" else tuple(sorted({example.label for example in examples}))
        if len(labels) == 1:
            raise TextError(
                f"all training texts have the label {labels[0]!r}; two are needed, besides what is "
                "held back for validation"
            )
        return labels

    def count_outputs(self, labels: Sequence[str]) -> int:
        """Count the classes; a number is one output."""
        return 1 if self.labels == "numbers" else len(labels)

    def encode(self, examples: Sequence[LabeledExample], tokenizer: Tokenizer, labels: Sequence[str]) -> TextDataset:
        """Encode examples with classes or numbers."""
        kind: Literal["numbers", "classes"] = "numbers" if self.labels == "numbers" else "classes"
        return encode_labeled(examples, tokenizer, self.window_options, labels=labels, kind=kind, metric=self.metric)


@dataclass(frozen=True, kw_only=True)
class PairFiles(ClassFiles):
    """Pairs of texts with a class or number each.

    Their columns are sentence1 and sentence2, or text_a and text_b.
    """

    reads_segments: ClassVar[bool] = False
    input_description: ClassVar[str] = "compares two texts"
    input_fields: ClassVar[tuple[Names, ...]] = (("text_a", "text_b"), ("sentence1", "sentence2"))
    suggestions: ClassVar[Names] = ("evaluate {run}", "predict --model {run} FILE.jsonl")
    paired: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True)
class SquadFiles(WindowFiles):
    """Base of the kinds of files in SQuAD 1.1 or 2.0 format (.json, .json.gz)."""

    response: ClassVar[str] = "spans"
    files: ClassVar[str] = "SQuAD"
    alternative: ClassVar[str] = "your own of the same form"
    input_description: ClassVar[str] = "answers questions about texts"
    input_fields: ClassVar[tuple[Names, ...]] = (("question", "text"),)
    suggestions: ClassVar[Names] = ("evaluate {run}", 'predict --model {run} --question "Who …?" FILE')
    test_file: str = "dev"
    length: int = 384
    overlap: int = 128

    def list_texts(self, examples: Sequence[QuestionExample]) -> Iterable[str]:
        """List all texts and questions of the examples, each once."""
        return dict.fromkeys(text for example in examples for text in (example.text, example.question))


@dataclass(frozen=True, kw_only=True)
class SpanFiles(SquadFiles):
    """Questions with answers in a text, in SQuAD 1.1 or 2.0 format (.json, .json.gz).

    Questions about one text are in one split.
    """

    objectives: ClassVar[Names] = ("spans",)
    reads_segments: ClassVar[bool] = True

    def read_file(self, path: Path) -> list[QuestionExample]:
        """Read the questions of one file."""
        return read_squad(path)

    def list_groups(self, examples: Sequence[QuestionExample]) -> Sequence[str]:
        """List the text of each question."""
        return [example.text for example in examples]

    def encode(self, examples: Sequence[QuestionExample], tokenizer: Tokenizer, labels: Sequence[str]) -> TextDataset:
        """Encode questions with their texts."""
        return encode_questions(examples, tokenizer, self.window_options)


@dataclass(frozen=True, kw_only=True)
class TagFiles(WindowFiles):
    """Words with tags (B-…, I-…, O) in CoNLL columns.

    ``index_column``: each word ends in a digit, as in Weibo NER, which is removed.
    """

    response: ClassVar[str] = "tags"
    objectives: ClassVar[Names] = ("tags",)
    reads_segments: ClassVar[bool] = True
    files: ClassVar[str] = "CoNLL"
    alternative: ClassVar[str] = "your own of the same form"
    index_column: bool = False
    length: int = 128
    overlap: int = 32

    def read_file(self, path: Path) -> list[TaggedExample]:
        """Read the sentences of one file."""
        return read_conll(path, strip_digits=self.index_column)

    def list_texts(self, examples: Sequence[TaggedExample]) -> Iterable[str]:
        """List the text of each example."""
        return [example.text for example in examples]

    def list_labels(self, examples: Sequence[TaggedExample]) -> tuple[str, ...]:
        """List the tags of the examples: ``O`` first, then all others, sorted."""
        tags = {tag for example in examples for tag in example.tags}
        if tags == {OUTSIDE_TAG}:
            raise TextError(
                f"all words of the training texts have the tag {OUTSIDE_TAG}: there is nothing to "
                "learn; names are marked with B-… and I-… in the last column"
            )
        return (OUTSIDE_TAG, *sorted(tags - {OUTSIDE_TAG}))

    def encode(self, examples: Sequence[TaggedExample], tokenizer: Tokenizer, labels: Sequence[str]) -> TextDataset:
        """Encode tagged words."""
        return encode_tagged(examples, tokenizer, self.window_options, labels=labels)
