"""Read plain text: pieces are spans of the file as it is, cut between paragraphs."""

from collections.abc import Iterator

from mnemic.text.documents.encoding import open_text, read_line
from mnemic.text.documents.piece import MIN_PIECE_LENGTH, Anchor, DocumentPart, DocumentPiece, Source, make_piece

# After so many characters a piece ends at any line, or any blank.
MAX_PIECE_LENGTH = 4 * MIN_PIECE_LENGTH


def read_plain(source: Source) -> Iterator[DocumentPart]:
    """Read a text file in pieces that end at blank lines.

    A piece without a blank line ends, far beyond the usual length, at the end of any line.
    """
    with open_text(source.path) as file:
        lines: list[str] = []
        size = origin = 0
        first_line = number = 1
        while line := read_line(file, number):
            number += 1
            lines.append(line)
            size += len(line)
            if (size >= MIN_PIECE_LENGTH and not line.strip()) or size >= MAX_PIECE_LENGTH:
                yield from split_pieces("".join(lines), Anchor(0, origin, first_line))
                lines, size, origin, first_line = [], 0, origin + size, number
        yield from split_pieces("".join(lines), Anchor(0, origin, first_line))


def split_pieces(text: str, anchor: Anchor) -> Iterator[DocumentPiece]:
    """Make a piece of a text; split a very long line into several, at blanks."""
    start = 0
    while len(text) - start > 2 * MAX_PIECE_LENGTH:
        end = text.rfind(" ", start + MIN_PIECE_LENGTH, start + MAX_PIECE_LENGTH) + 1 or start + MAX_PIECE_LENGTH
        yield make_piece(text, start, end, anchor)
        start = end
    if text[start:].strip():
        yield make_piece(text, start, len(text), anchor)
