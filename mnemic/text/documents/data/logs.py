"""Read logs: a line is a unit, with the indented lines after it."""

from collections.abc import Iterator

from mnemic.text.documents.encoding import open_text, read_line
from mnemic.text.documents.piece import MIN_PIECE_LENGTH, Anchor, DocumentPart, DocumentPiece, Source

MAX_UNIT_LENGTH = 4_000  # characters of a line with those that belong to it


def read_log(source: Source) -> Iterator[DocumentPart]:
    """Read a log in pieces of whole lines."""
    with open_text(source.path) as file:
        parts, cuts, size, origin, first_line, number = list[str](), list[int](), 0, 0, 1, 1
        while line := read_line(file, number):
            is_continued = line[0] in " \t" and cuts and size - ([0, *cuts][-2]) < MAX_UNIT_LENGTH
            if size >= MIN_PIECE_LENGTH and not is_continued:
                yield DocumentPiece("".join(parts), (Anchor(0, origin, first_line),), cuts=tuple(cuts))
                parts, cuts, size, origin, first_line = [], [], 0, origin + size, number
            parts.append(line)
            size += len(line)
            cuts[len(cuts) - bool(is_continued) :] = [size]
            number += 1
    if "".join(parts).strip():
        yield DocumentPiece("".join(parts), (Anchor(0, origin, first_line),), cuts=tuple(cuts))
