"""What text files hold, one class a kind; and the error they raise."""

from typing import NamedTuple


class TextError(ValueError):
    """A file of texts is wrong; the message names the file, the line and what was expected."""


class Labelled(NamedTuple):
    """A text, or a pair of texts, and its class or number as the file spells it."""

    text: str
    pair: str | None
    label: str


class Asked(NamedTuple):
    """A question about a text and its right answers; without any the text holds none."""

    question: str
    text: str
    answers: tuple[str, ...]
    start: int  # where the first answer begins in the text; -1 without one
    name: str  # the question's id


class Tagged(NamedTuple):
    """A text, where its words stand, and each word's tag, such as B-person, I-person or O."""

    text: str
    words: tuple[tuple[int, int], ...]
    tags: tuple[str, ...]
