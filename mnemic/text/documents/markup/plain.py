"""Plain text: pieces are stretches of the file as it is, cut between paragraphs."""

from collections.abc import Iterator
from pathlib import Path

from mnemic.text.documents.encoding import next_line, open_text
from mnemic.text.documents.piece import PIECE, Anchor, Part, Piece

LONGEST = 4 * PIECE  # characters after which a piece ends at any line, or any blank


def read_plain(path: Path) -> Iterator[Part]:
    """Pieces end at a blank line; far beyond that, at the end of any line."""
    with open_text(path) as file:
        held: list[str] = []
        size = origin = 0
        first = number = 1
        while line := next_line(file, number):
            number += 1
            held.append(line)
            size += len(line)
            if (size >= PIECE and not line.strip()) or size >= LONGEST:
                yield from pieces("".join(held), Anchor(0, origin, first))
                held, size, origin, first = [], 0, origin + size, number
        yield from pieces("".join(held), Anchor(0, origin, first))


def pieces(text: str, anchor: Anchor) -> Iterator[Piece]:
    """A text as one piece; a very long line as several, cut at blanks."""
    start = 0
    while len(text) - start > 2 * LONGEST:
        end = text.rfind(" ", start + PIECE, start + LONGEST) + 1 or start + LONGEST
        yield stretch(text, start, end, anchor)
        start = end
    if text[start:].strip():
        yield stretch(text, start, len(text), anchor)


def stretch(text: str, start: int, end: int, anchor: Anchor) -> Piece:
    line = anchor.line + text.count("\n", 0, start)
    return Piece(text[start:end], (Anchor(0, anchor.origin + start, line),))
