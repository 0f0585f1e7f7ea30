"""Examples of text files, one class per kind, and the error of bad files."""

from collections.abc import Sequence
from typing import NamedTuple


class TextError(ValueError):
    """A text file is wrong; the message says where, and what was expected."""


class LabeledExample(NamedTuple):
    """A text, or a pair of texts, and its label as the file spells it."""

    text: str
    pair: str | None
    label: str


class QuestionExample(NamedTuple):
    """A question about a text, and its right answers, if there are any.

    Several answers are alternatives, unless ``needs_all``: then all of them are asked for. If it is
    not ``is_extractive``, the text as a whole is the answer: it is to be found, not to be read.
    """

    question: str
    text: str
    answers: tuple[str, ...]
    start: int  # of the first answer in the text; -1 without an answer
    question_id: str
    title: str = ""  # of the article that the text is from
    domain: str = ""  # that metrics are computed by
    needs_all: bool = False
    answer_starts: tuple[int, ...] = ()  # of all answers; () where only the first is located
    is_extractive: bool = True

    @property
    def references(self) -> tuple[str, ...]:
        """Return the answers to compare a span with; those of a list as one text."""
        return (" ".join(self.answers),) if self.needs_all else self.answers

    def split_answers(self) -> "list[QuestionExample]":
        """Return one example per answer if all are asked for, else this one."""
        if not self.needs_all or len(self.answers) < 2:
            return [self]
        pairs = zip(self.answers, self.answer_starts)
        return [self._replace(answers=(text,), start=start, needs_all=False) for text, start in pairs]

    def find_answer(self, spans: Sequence[tuple[int, int]]) -> list[int]:
        """Find the spans of the text that overlap the first answer; none without an answer."""
        if self.start < 0:
            return []
        answer_end = self.start + len(self.answers[0])
        return [index for index, (start, end) in enumerate(spans) if start < answer_end and end > self.start]


class AnsweredPair(NamedTuple):
    """Two texts that belong together; ``answers`` are what a wrong text must not hold."""

    first: str
    second: str
    answers: tuple[str, ...] = ()


class TaggedExample(NamedTuple):
    """A text, the spans of its words, and each word's tag (B-person, I-person, O)."""

    text: str
    word_spans: tuple[tuple[int, int], ...]
    tags: tuple[str, ...]
