"""Data sources of text tasks for recipes: one class per kind, each reads a folder.

All have these keys: ``learnt``, ``held`` and ``tested`` are the training, validation and test file
of the folder, or how their names start; an empty ``tested`` means no test file. Without ``held``
the share ``validation`` of the training examples is held out, at random with a fixed seed;
questions about one text stay together. ``length``, ``overlap`` and ``truncation`` say how texts
are cut into windows (see ``mnemic.text.windows``). ``tokenizer`` is trained on the training texts,
or ``stored``.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from mnemic.data.contract import Split
from mnemic.data.text_tasks.batches import TextDataset
from mnemic.data.text_tasks.conll import OUTSIDE_TAG, read_conll
from mnemic.data.text_tasks.encode_windows import encode_labeled, encode_questions, encode_tagged
from mnemic.data.text_tasks.examples import LabeledExample, QuestionExample, TaggedExample, TextError
from mnemic.data.text_tasks.labelled import read_labeled
from mnemic.data.text_tasks.splits import WORDPIECE, TextData, TextTask, load_text_data, make_window_options, read_split
from mnemic.data.text_tasks.squad import read_squad
from mnemic.text import Tokenizer
from mnemic.text.windows import Truncation

Labels = Literal["names", "numbers"]
Metric = Literal["accuracy", "f1", "matthews", "pearson", "spearman"]
NUMBER_METRICS = ("pearson", "spearman")


@dataclass(frozen=True, kw_only=True)
class ClassFiles:
    """Texts with a class or number each, from .tsv, .csv or .jsonl files.

    Tables have a header. ``columns`` names other columns than the usual ones; numbers from 1 are
    for a file without a header, such as CoLA's ``{ text = 4, label = 2 }``. ``metric`` selects the
    best weights.
    """

    paired: ClassVar[bool] = False
    folder: str
    train_file: str = "train"
    validation_file: str = ""
    test_file: str = "test"
    validation: float = 0.1
    columns: Mapping[str, Any] = field(default_factory=dict)
    labels: Labels = "names"
    metric: Metric = "accuracy"
    tokenizer: Mapping[str, Any] = field(default_factory=lambda: WORDPIECE)
    length: int = 256
    overlap: int = 64
    truncation: Truncation = "windows"

    def load(self) -> TextData:
        """Read the training and validation split, and train the tokenizer."""
        return load_text_data(self, make_labeled_task(self, paired=self.paired))

    def dataset(self, split: Split, tokenizer: Tokenizer, labels: Sequence[str]) -> TextDataset:
        """Read one split and encode it with an existing tokenizer and labels."""
        task = make_labeled_task(self, paired=self.paired)
        return task.encode(read_split(self, task, split), tokenizer, labels)


@dataclass(frozen=True, kw_only=True)
class PairFiles(ClassFiles):
    """Pairs of texts with a class or number each.

    Their columns are sentence1 and sentence2, or text_a and text_b.
    """

    paired: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True)
class SpanFiles:
    """Questions with answers in a text, in SQuAD 1.1 or 2.0 format (.json, .json.gz)."""

    folder: str
    train_file: str = "train"
    validation_file: str = ""
    test_file: str = "dev"
    validation: float = 0.1
    tokenizer: Mapping[str, Any] = field(default_factory=lambda: WORDPIECE)
    length: int = 384
    overlap: int = 128
    truncation: Truncation = "windows"

    @property
    def task(self) -> TextTask:
        """How these files are read and encoded."""

        def encode(examples: Sequence[QuestionExample], tokenizer: Tokenizer, _: Sequence[str]) -> TextDataset:
            return encode_questions(examples, tokenizer, make_window_options(self))

        return TextTask(read_squad, list_question_texts, lambda _: (), encode, group_key=lambda example: example.text)

    def load(self) -> TextData:
        """Read the training and validation split, and train the tokenizer."""
        return load_text_data(self, self.task)

    def dataset(self, split: Split, tokenizer: Tokenizer, labels: Sequence[str] = ()) -> TextDataset:
        """Read one split and encode it with an existing tokenizer."""
        return self.task.encode(read_split(self, self.task, split), tokenizer, labels)


@dataclass(frozen=True, kw_only=True)
class TagFiles:
    """Words with tags (B-…, I-…, O) in CoNLL columns.

    ``numbered``: each word ends in a digit, as in Weibo NER, which is removed.
    """

    folder: str
    train_file: str = "train"
    validation_file: str = ""
    test_file: str = "test"
    validation: float = 0.1
    index_column: bool = False
    tokenizer: Mapping[str, Any] = field(default_factory=lambda: WORDPIECE)
    length: int = 128
    overlap: int = 32
    truncation: Truncation = "windows"

    @property
    def task(self) -> TextTask:
        """How these files are read and encoded."""

        def encode(examples: Sequence[TaggedExample], tokenizer: Tokenizer, labels: Sequence[str]) -> TextDataset:
            return encode_tagged(examples, tokenizer, make_window_options(self), labels=labels)

        def read_file(path: Any) -> list[TaggedExample]:
            return read_conll(path, strip_digits=self.index_column)

        return TextTask(read_file, lambda examples: [example.text for example in examples], list_tags, encode)

    def load(self) -> TextData:
        """Read the training and validation split, and train the tokenizer."""
        return load_text_data(self, self.task)

    def dataset(self, split: Split, tokenizer: Tokenizer, labels: Sequence[str]) -> TextDataset:
        """Read one split and encode it with an existing tokenizer and labels."""
        return self.task.encode(read_split(self, self.task, split), tokenizer, labels)


def make_labeled_task(files: ClassFiles | PairFiles, *, paired: bool) -> TextTask:
    """Define how texts or pairs with classes or numbers are read and encoded."""
    is_numeric = files.labels == "numbers"
    if is_numeric != (files.metric in NUMBER_METRICS):
        expected = "pearson or spearman" if is_numeric else "accuracy, f1 or matthews"
        raise TextError(f"data.metric for labels that are {files.labels} is {expected}")

    def encode(examples: Sequence[LabeledExample], tokenizer: Tokenizer, labels: Sequence[str]) -> TextDataset:
        """Encode examples with classes or numbers."""
        kind: Literal["numbers", "classes"] = "numbers" if is_numeric else "classes"
        options = make_window_options(files)
        return encode_labeled(examples, tokenizer, options, labels=labels, kind=kind, metric=files.metric)

    def list_labels(examples: Sequence[LabeledExample]) -> tuple[str, ...]:
        """List the classes of the training examples; there must be at least two."""
        labels = () if is_numeric else tuple(sorted({example.label for example in examples}))
        if len(labels) == 1:
            raise TextError(
                f"all training texts have the label {labels[0]!r}; two are needed, besides what is "
                "held back for validation"
            )
        return labels

    return TextTask(
        lambda path: read_labeled(path, files.columns, paired=paired),
        list_labeled_texts,
        list_labels,
        encode,
        num_outputs=int(is_numeric),
    )


def list_labeled_texts(examples: Sequence[LabeledExample]) -> Iterable[str]:
    """List all texts of the examples, both of a pair."""
    return [text for example in examples for text in (example.text, example.pair) if text is not None]


def list_question_texts(examples: Sequence[QuestionExample]) -> Iterable[str]:
    """List all texts and questions of the examples, each once."""
    return dict.fromkeys(text for example in examples for text in (example.text, example.question))


def list_tags(examples: Sequence[TaggedExample]) -> tuple[str, ...]:
    """List the tags of the examples: ``O`` first, then all others, sorted."""
    tags = {tag for example in examples for tag in example.tags}
    if tags == {OUTSIDE_TAG}:
        raise TextError(
            f"all words of the training texts have the tag {OUTSIDE_TAG}: there is nothing to "
            "learn; names are marked with B-… and I-… in the last column"
        )
    return (OUTSIDE_TAG, *sorted(tags - {OUTSIDE_TAG}))
