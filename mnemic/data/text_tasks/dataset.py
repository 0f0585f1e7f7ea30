"""Data sets of texts for a recipe: one class a kind, each a folder with files.

All have in common: ``learnt``, ``held`` and ``tested`` name files of the folder, or how their
names begin; an empty ``tested`` means that there is none. Without ``held`` every tenth example of
``learnt`` is held back for validation if ``validation`` is 0.1, counted evenly, since files are
often sorted; questions about the same text stay together. ``length``, ``overlap`` and
``truncation`` say how texts are cut into windows (see ``mnemic.text.windows``). ``tokenizer`` is
learnt from the training texts, or ``stored``.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from mnemic.data.contract import Part
from mnemic.data.text_tasks.batches import TextSet
from mnemic.data.text_tasks.conll import OUTSIDE, read_conll
from mnemic.data.text_tasks.encode_windows import asked_set, labelled_set, tagged_set
from mnemic.data.text_tasks.examples import Asked, Labelled, Tagged, TextError
from mnemic.data.text_tasks.labelled import read_labelled
from mnemic.data.text_tasks.splits import WORDPIECE, Manner, TextData, room_of, text_data, told
from mnemic.data.text_tasks.squad import read_squad
from mnemic.text import Tokenizer
from mnemic.text.windows import Truncation

Labels = Literal["names", "numbers"]
Metric = Literal["accuracy", "f1", "matthews", "pearson", "spearman"]
OF_NUMBERS = ("pearson", "spearman")


@dataclass(frozen=True, kw_only=True)
class ClassFiles:
    """Texts with classes or ``numbers``: .tsv or .csv with a header, or .jsonl with text and label.

    ``columns`` names others than the usual columns; numbers from 1 are for a file without a
    header, such as CoLA's ``{ text = 4, label = 2 }``. ``metric`` says which weights are best.
    """

    paired: ClassVar[bool] = False
    folder: str
    learnt: str = "train"
    held: str = ""
    tested: str = "test"
    validation: float = 0.1
    columns: Mapping[str, Any] = field(default_factory=dict)
    labels: Labels = "names"
    metric: Metric = "accuracy"
    tokenizer: Mapping[str, Any] = field(default_factory=lambda: WORDPIECE)
    length: int = 256
    overlap: int = 64
    truncation: Truncation = "windows"

    def data(self) -> TextData:
        return text_data(self, labelled(self, paired=self.paired))

    def asked(self, part: Part, words: Tokenizer, labels: Sequence[str]) -> TextSet:
        manner = labelled(self, paired=self.paired)
        return manner.number(told(self, manner, part), words, labels)


@dataclass(frozen=True, kw_only=True)
class PairFiles(ClassFiles):
    """As ``classes``, but of two texts: sentence1 and sentence2, or text_a and text_b."""

    paired: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True)
class SpanFiles:
    """Questions with answers in a text, in SQuAD's form, 1.1 or 2.0: .json, .json.gz."""

    folder: str
    learnt: str = "train"
    held: str = ""
    tested: str = "dev"
    validation: float = 0.1
    tokenizer: Mapping[str, Any] = field(default_factory=lambda: WORDPIECE)
    length: int = 384
    overlap: int = 128
    truncation: Truncation = "windows"

    @property
    def manner(self) -> Manner:
        def number(examples: Sequence[Asked], words: Tokenizer, _: Sequence[str]) -> TextSet:
            return asked_set(examples, words, room_of(self))

        return Manner(read_squad, asked_texts, lambda _: (), number, together=lambda own: own.text)

    def data(self) -> TextData:
        return text_data(self, self.manner)

    def asked(self, part: Part, words: Tokenizer, labels: Sequence[str] = ()) -> TextSet:
        return self.manner.number(told(self, self.manner, part), words, labels)


@dataclass(frozen=True, kw_only=True)
class TagFiles:
    """Words with tags (B-…, I-…, O) in CoNLL columns.

    ``numbered`` words have a digit behind them, as in Weibo NER; it is left out.
    """

    folder: str
    learnt: str = "train"
    held: str = ""
    tested: str = "test"
    validation: float = 0.1
    numbered: bool = False
    tokenizer: Mapping[str, Any] = field(default_factory=lambda: WORDPIECE)
    length: int = 128
    overlap: int = 32
    truncation: Truncation = "windows"

    @property
    def manner(self) -> Manner:
        def number(examples: Sequence[Tagged], words: Tokenizer, labels: Sequence[str]) -> TextSet:
            return tagged_set(examples, words, room_of(self), labels=labels)

        def read(path: Any) -> list[Tagged]:
            return read_conll(path, numbered=self.numbered)

        return Manner(read, lambda examples: [own.text for own in examples], tags_of, number)

    def data(self) -> TextData:
        return text_data(self, self.manner)

    def asked(self, part: Part, words: Tokenizer, labels: Sequence[str]) -> TextSet:
        return self.manner.number(told(self, self.manner, part), words, labels)


def labelled(files: ClassFiles | PairFiles, *, paired: bool) -> Manner:
    """The manner of classes and numbers, of one text or two."""
    numbers = files.labels == "numbers"
    if numbers != (files.metric in OF_NUMBERS):
        fit = "pearson or spearman" if numbers else "accuracy, f1 or matthews"
        raise TextError(f"data.metric for labels that are {files.labels} is {fit}")

    def number(examples: Sequence[Labelled], words: Tokenizer, labels: Sequence[str]) -> TextSet:
        kind: Literal["numbers", "classes"] = "numbers" if numbers else "classes"
        room = room_of(files)
        return labelled_set(examples, words, room, labels=labels, kind=kind, metric=files.metric)

    def labels(examples: Sequence[Labelled]) -> tuple[str, ...]:
        known = () if numbers else tuple(sorted({own.label for own in examples}))
        if len(known) == 1:
            raise TextError(
                f"all training texts have the label {known[0]!r}; two are needed, besides what is "
                "held back for validation"
            )
        return known

    return Manner(
        lambda path: read_labelled(path, files.columns, paired=paired),
        labelled_texts,
        labels,
        number,
        outputs=int(numbers),
    )


def labelled_texts(examples: Sequence[Labelled]) -> Iterable[str]:
    return [text for own in examples for text in (own.text, own.pair) if text is not None]


def asked_texts(examples: Sequence[Asked]) -> Iterable[str]:
    return dict.fromkeys(text for own in examples for text in (own.text, own.question))


def tags_of(examples: Sequence[Tagged]) -> tuple[str, ...]:
    """``O`` first, then all others."""
    tags = {tag for own in examples for tag in own.tags}
    if tags == {OUTSIDE}:
        raise TextError(
            f"all words of the training texts have the tag {OUTSIDE}: there is nothing to learn; "
            "names are marked with B-… and I-… in the last column"
        )
    return (OUTSIDE, *sorted(tags - {OUTSIDE}))
