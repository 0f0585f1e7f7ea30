"""The limits of reading one file, and what keeps its text within them."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mnemic.text.documents.kinds import PICTURE_KINDS
from mnemic.text.documents.piece import (
    DocumentError,
    DocumentPart,
    DocumentPiece,
    Member,
    Note,
    Title,
    split_long_piece,
)

MAX_TITLE_LENGTH = 300  # characters
MAX_NOTE_LENGTH = 500
MAX_NOTES = 5  # of one file; the others are counted
MAX_MEMBERS = 1000  # documents inside one file
READ_BYTES_PER_S = 10_000  # slower than this, after the first minute, a file is not read
PICTURE_BYTES_PER_S = 1_000  # the same, for kinds whose pages may be pictures with text
TOO_MUCH_TEXT = "far more text came out of it than a file of its size has; this may be a bomb"


class Limits(NamedTuple):
    """The time, memory and text that reading files may use."""

    timeout_s: float = 60.0  # for each piece of it
    max_memory_bytes: int = 2_000_000_000
    max_characters: int = 4_000_000  # of text, plus these for each byte of the file:
    characters_per_byte: int = 10
    max_spare_characters: int = 400_000_000  # that all files together may have beyond those for their bytes

    def max_text(self, num_bytes: int) -> int:
        """Return the number of characters that a file of this size may have."""
        return self.max_characters + self.characters_per_byte * num_bytes

    def max_seconds(self, num_bytes: int, kind: str = "") -> float:
        """Return the time that a file of this kind and size may take in all."""
        return self.timeout_s + num_bytes / (PICTURE_BYTES_PER_S if kind in PICTURE_KINDS else READ_BYTES_PER_S)


DEFAULT_LIMITS = Limits()


def bound_parts(parts: Iterable[DocumentPart], max_characters: int) -> Iterator[DocumentPart]:
    """Yield the parts of a file in bounded sizes; ``DocumentError`` for too much text.

    Long pieces are split, long titles and notes are cut, and many notes are counted.
    """
    num_notes = num_members = 0
    for document_part in parts:
        max_characters -= len(document_part[0])
        if max_characters < 0:
            raise DocumentError(TOO_MUCH_TEXT)
        if isinstance(document_part, DocumentPiece):
            yield from split_long_piece(document_part)
        elif isinstance(document_part, Title):
            yield Title(document_part.text[:MAX_TITLE_LENGTH])
        elif isinstance(document_part, Member):
            num_members += 1
            if num_members > 2 * MAX_MEMBERS:  # each is left again
                raise DocumentError(f"more than {MAX_MEMBERS:,} files are inside it")
            yield document_part
        elif num_notes < MAX_NOTES:
            num_notes += 1
            yield Note(document_part.text[:MAX_NOTE_LENGTH])
        else:
            num_notes += 1
    if num_notes > MAX_NOTES:
        yield Note(f"{num_notes - MAX_NOTES} more remarks of this sort")
