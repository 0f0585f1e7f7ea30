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

from mnemic.text.documents.boxes import Box

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")  # NUL, and lone surrogates
MIN_PIECE_LENGTH = 16_384  # characters; a piece may end at the next paragraph after it
MAX_PIECE_LENGTH = 8 * MIN_PIECE_LENGTH  # of any piece that leaves the sandbox


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
    boxes: tuple[Box, ...] = ()  # of its lines, from the first on; empty: OCR has not read it

    def origin_of(self, position: int) -> int:
        """Return the position in the original of the piece's character at ``position``."""
        anchor = self.anchor_of(position)
        return anchor.origin + position - anchor.position

    def line_of(self, position: int) -> int:
        """Return the original's line number of the piece's character at ``position``."""
        anchor = self.anchor_of(position)
        return anchor.line and anchor.line + self.text.count("\n", anchor.position, position)

    def boxes_from(self, position: int) -> tuple[Box, ...]:
        """Return the boxes of the lines from that of the character at ``position`` on."""
        return self.boxes[max(self.line_of(position) - self.line_of(0), 0) :] if self.boxes else ()

    def anchor_of(self, position: int) -> Anchor:
        """Return the last anchor at or before ``position``."""
        return self.anchors[bisect_right(self.anchors, (position, float("inf"))) - 1]


def make_piece(text: str, start: int, end: int, anchor: Anchor, page: int | None = None) -> DocumentPiece:
    """Make a piece of ``text[start:end]``; ``anchor`` is that of the text in the original."""
    line = anchor.line + text.count("\n", 0, start)
    return DocumentPiece(text[start:end], (Anchor(0, anchor.origin + start, line),), page)


def split_long_piece(piece: DocumentPiece) -> Iterator[DocumentPiece]:
    """Split a piece into some of at most ``MAX_PIECE_LENGTH``, between units, lines or words."""
    start, size = 0, len(piece.text)
    while size - start > MAX_PIECE_LENGTH:
        end = find_split(piece, start + MIN_PIECE_LENGTH, start + MAX_PIECE_LENGTH)
        yield slice_piece(piece, start, end)
        start = end
    yield slice_piece(piece, start, size) if start else piece


def find_split(piece: DocumentPiece, first: int, last: int) -> int:
    """Find the best position from ``first`` to ``last`` to split a piece at."""
    if piece.cuts and (index := bisect_right(piece.cuts, last)) and piece.cuts[index - 1] >= first:
        return piece.cuts[index - 1]
    for mark in ("\n\n", "\n", " "):
        if (position := piece.text.rfind(mark, first, last)) >= 0:
            return position + len(mark)
    return last


def slice_piece(piece: DocumentPiece, start: int, end: int) -> DocumentPiece:
    """Return the piece of ``text[start:end]``, with its anchors, cuts and boxes."""
    first, last = bisect_right(piece.anchors, (start, float("inf"))), bisect_right(piece.anchors, (end, -1))
    inner = (anchor._replace(position=anchor.position - start) for anchor in piece.anchors[first:last])
    anchors = (Anchor(0, piece.origin_of(start), piece.line_of(start)), *inner)
    cuts = piece.cuts
    if cuts is not None:
        inside = [cut - start for cut in cuts[bisect_right(cuts, start) : bisect_right(cuts, end)]]
        cuts = (*inside, end - start) if inside[-1:] != [end - start] else tuple(inside)
    num_lines = piece.line_of(end - 1) - piece.line_of(start) + 1
    return DocumentPiece(piece.text[start:end], anchors, piece.page, cuts, piece.boxes_from(start)[:num_lines])


def replace_unstorable(text: str) -> str:
    """Replace characters that no text file can hold by U+FFFD, keeping the length."""
    return _UNSTORABLE.sub("\ufffd", text)


class Note(NamedTuple):
    """A remark on a file that was read: a page without text, an attachment."""

    text: str


class Title(NamedTuple):
    """The title that a file gives itself."""

    text: str


class Member(NamedTuple):
    """The beginning of a document inside the file, such as an attachment.

    The parts that follow belong to it, up to the next member. An empty name goes back to the file
    itself; the place of a member is ``FILE!/NAME``.
    """

    name: str


class MemberContent(NamedTuple):
    """A file inside the file, which the sandbox gives to its own reader."""

    name: str
    content: bytes


class Source(NamedTuple):
    """A file to read: what to open, its name, and what else its reader needs.

    Only ``path`` may be opened. It is often that of a descriptor, such as ``/proc/self/fd/5``; the
    suffix is that of ``name``.
    """

    path: Path
    name: str
    password: str | None = None
    depth: int = 0  # of members in members; 0: a file of its own

    @property
    def suffix(self) -> str:
        """The suffix of the name, in lower case."""
        return Path(self.name).suffix.lower()


DocumentPart = DocumentPiece | Note | Title | Member
FileReader = Callable[[Source], Iterator[DocumentPart | MemberContent]]  # reads files of one kind
