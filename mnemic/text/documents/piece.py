"""What a file is read as: pieces of text that know where in the original they stand.

A *piece* is a stretch of running text, at most a few pages; a reader of a kind of file yields them
in order, and now and then a note on what could not be read. An *anchor* says that from some place
of the piece on, its characters are those of the original from some other place on.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")  # zeros, and halves of characters
PIECE = 16_384  # characters from which a piece may end, at the next paragraph


class DocumentError(ValueError):
    """A file cannot be read; the message says why."""


class Anchor(NamedTuple):
    """From ``place`` in the piece's text on, the original is quoted from ``origin`` on."""

    place: int
    origin: int
    line: int  # of the original, from 1, at origin; 0: it has no lines


class Piece(NamedTuple):
    """A stretch of text. Anchors are in order; the first is at place 0."""

    text: str
    anchors: tuple[Anchor, ...]
    page: int | None = None  # from 1; of a book that has no pages, its part
    cuts: tuple[int, ...] | None = None  # where units such as rows end; None: sentences are found

    def origin(self, place: int) -> int:
        """Where in the original the character at ``place`` stands."""
        anchor = self.anchor(place)
        return anchor.origin + place - anchor.place

    def line(self, place: int) -> int:
        """The line of the original in which the character at ``place`` stands."""
        anchor = self.anchor(place)
        return anchor.line and anchor.line + self.text.count("\n", anchor.place, place)

    def anchor(self, place: int) -> Anchor:
        return self.anchors[bisect_right(self.anchors, (place, float("inf"))) - 1]


def storable(text: str) -> str:
    """The text with a mark, of the same length, for what no file of text can hold."""
    return _UNSTORABLE.sub("\ufffd", text)


class Note(NamedTuple):
    """What must be said about a file that was read: a page without text, an attachment."""

    text: str


class Title(NamedTuple):
    """What a file calls itself."""

    text: str


Part = Piece | Note | Title


class Reader(Protocol):
    """How files of one kind are read."""

    def __call__(self, path: Path) -> Iterator[Part]: ...
