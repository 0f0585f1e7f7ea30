"""Rewrite a source as plain text: words without marks, with anchors into it."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

from mnemic.text.documents.piece import MIN_PIECE_LENGTH, Anchor, DocumentPiece
from mnemic.text.documents.units import detect_language, find_sentence_ends, find_unit_ends, split_long_span
from mnemic.text.sentences import Span

START = Anchor(0, 0, 1)

# Lines: line breaks may end units. Flow: they are blanks. Unit: the block is one unit.
Layout = Literal["lines", "flow", "unit"]
LAYOUTS: Mapping[Layout, Callable[[str], Sequence[int]]] = {
    "lines": find_unit_ends,
    "flow": lambda text: find_sentence_ends(text, Span(0, len(text)), detect_language(text)),
    "unit": lambda text: (len(text),),
}


class TextRewriter:
    """Build a text from spans of a source and from words of our own.

    Within a unit, the text has as many line breaks between two words as the source: so the line of
    any word is that of its unit plus the line breaks between them.
    """

    def __init__(self, source: str, anchor: Anchor = START) -> None:
        self.source = source
        self.anchor = anchor  # of the source in the file
        self.line_ends = find_line_ends(source)
        self.parts: list[str] = []
        self.size = 0
        self.anchors: list[Anchor] = []
        self.cuts: list[int] = []
        self.block_ends: list[int] = []
        self.block_start = 0  # index into ``parts``
        self.copied_to = -1  # where the last span of the source ended

    def copy(self, start: int, end: int) -> None:
        """Append ``source[start:end]``."""
        if start >= end:
            return
        if start != self.copied_to:
            self.add_anchor(start)
        self.append_text(self.source[start:end])
        self.copied_to = end

    def insert(self, text: str, position: int) -> None:
        """Append words that stand for what is at a position of the source."""
        if text:
            self.add_anchor(position)
            self.append_text(text)
            self.copied_to = -1

    def add_anchor(self, position: int) -> None:
        """Anchor the end of the text at a position of the source."""
        self.anchors.append(Anchor(self.size, self.anchor.origin + position, self.line_of(position)))

    def line_of(self, position: int) -> int:
        """Return the line in the file of a position of the source."""
        return self.anchor.line + bisect_left(self.line_ends, position)

    def append_text(self, text: str) -> None:
        self.parts.append(text)
        self.size += len(text)

    def block_text(self) -> str:
        """Return the text since the last block ended."""
        return "".join(self.parts[self.block_start :])

    def add_space(self, blanks: str) -> None:
        """Append white space that is not in the source; none before the first words."""
        if self.size and blanks:
            self.append_text(blanks)
            self.copied_to = -1

    def end_block(self, layout: Layout) -> None:
        """End a block and find its units, if there are words in it."""
        text = self.block_text()
        if text.strip():
            first = self.size - len(text)
            for start, end in split_long_span(text, Span(0, len(text)), MIN_PIECE_LENGTH):
                self.cuts += [first + start + cut for cut in LAYOUTS[layout](text[start:end])]
                self.block_ends.append(first + end)
            self.block_start = len(self.parts)

    def make_pieces(self, page: int | None = None) -> Iterator[DocumentPiece]:
        """Yield the text in pieces of whole blocks."""
        self.end_block("lines")
        if self.block_ends:
            self.block_ends[-1] = self.size  # blank lines at the end
            yield from split_pieces_at("".join(self.parts), self.anchors, self.cuts, self.block_ends, page)


def find_line_ends(text: str) -> list[int]:
    """Return the positions of all line breaks."""
    positions, position = [], text.find("\n")
    while position >= 0:
        positions.append(position)
        position = text.find("\n", position + 1)
    return positions


def split_pieces_at(
    text: str,
    anchors: list[Anchor],
    cuts: Sequence[int],
    ends: Sequence[int],
    page: int | None,
    min_length: int = MIN_PIECE_LENGTH,
) -> Iterator[DocumentPiece]:
    """Split a text, its anchors and cuts into pieces, at some of ``ends``."""
    start, first = 0, 0
    for end in ends:
        if end - start >= min_length or end == ends[-1]:
            last = bisect_right(cuts, end)
            inner = [cut - start for cut in cuts[first:last] if cut > start]
            inner[-1:] = [end - start]  # with the blank lines after it
            yield DocumentPiece(text[start:end], slice_anchors(text, anchors, start, end), page, tuple(inner))
            start, first = end, last


def slice_anchors(text: str, anchors: Sequence[Anchor], start: int, end: int) -> tuple[Anchor, ...]:
    """Return the anchors of ``text[start:end]``, relative to its start, the first at 0."""
    first = max(bisect_right(anchors, (start, float("inf"))) - 1, 0)
    last = bisect_right(anchors, (end, -1))
    inner = anchors[first:last]
    shift = max(start - inner[0].position, 0)
    line = inner[0].line and inner[0].line + text.count("\n", inner[0].position, start)
    head = Anchor(0, inner[0].origin + shift, line)
    return (head, *(anchor._replace(position=anchor.position - start) for anchor in inner[1:]))
