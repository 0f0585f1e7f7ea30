"""The pieces of text that a file is read into.

A *piece* is a span of running text, at most a few pages; the reader of each kind of file yields
them in order, and now and then a note on something that could not be read. An *anchor* maps a
position in the piece to the position of the same characters in the original.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")  # NUL, and lone surrogates
MIN_PIECE_LENGTH = 16_384  # characters; a piece may end at the next paragraph after it


class DocumentError(ValueError):
    """A file cannot be read; the message says why."""


class Anchor(NamedTuple):
    """A mapping from a position in a piece to a position in the original file.

    It holds for the characters from ``position`` on, up to the next anchor.
    """

    position: int
    origin: int
    line: int  # of the original, from 1, at origin; 0 if it has no lines


class DocumentPiece(NamedTuple):
    """A span of a file's text, with anchors into the original.

    The anchors are in order; the first is at position 0.
    """

    text: str
    anchors: tuple[Anchor, ...]
    page: int | None = None  # from 1; in a book without pages, the number of its part
    cuts: tuple[int, ...] | None = None  # ends of units such as rows; None: split by sentence

    def origin_of(self, position: int) -> int:
        """Return the position in the original of the piece's character at ``position``."""
        anchor = self.anchor_of(position)
        return anchor.origin + position - anchor.position

    def line_of(self, position: int) -> int:
        """Return the original's line number of the piece's character at ``position``."""
        anchor = self.anchor_of(position)
        return anchor.line and anchor.line + self.text.count("\n", anchor.position, position)

    def anchor_of(self, position: int) -> Anchor:
        """Return the last anchor at or before ``position``."""
        return self.anchors[bisect_right(self.anchors, (position, float("inf"))) - 1]


def make_piece(text: str, start: int, end: int, anchor: Anchor, page: int | None = None) -> DocumentPiece:
    """Make a piece of ``text[start:end]``; ``anchor`` is that of the text in the original."""
    line = anchor.line + text.count("\n", 0, start)
    return DocumentPiece(text[start:end], (Anchor(0, anchor.origin + start, line),), page)


def replace_unstorable(text: str) -> str:
    """Replace characters that no text file can hold by U+FFFD, keeping the length."""
    return _UNSTORABLE.sub("\ufffd", text)


class Note(NamedTuple):
    """A remark on a file that was read: a page without text, an attachment."""

    text: str


class Title(NamedTuple):
    """The title that a file gives itself."""

    text: str


DocumentPart = DocumentPiece | Note | Title
FileReader = Callable[[Path], Iterator[DocumentPart]]  # reads files of one kind
