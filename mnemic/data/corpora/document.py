"""A document of a corpus, and the place in the files behind which reading goes on."""

from pathlib import Path
from typing import NamedTuple


class CorpusError(ValueError):
    """A file is not what it should be; the message says where and what would be right."""


class Place(NamedTuple):
    """How far a corpus has been read."""

    file: int = 0  # number of the file, in the corpus's order
    offset: int = 0  # bytes of that file, unpacked, that have been read
    line: int = 0  # lines of that file that have been read
    number: int = 0  # documents that have been read, of all files


class Document(NamedTuple):
    """One text, where it stands, and the place behind it."""

    text: str
    path: Path
    line: int  # where it begins, from 1 on
    after: Place

    @property
    def size(self) -> int:
        return len(self.text)
