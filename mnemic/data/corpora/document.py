"""A document of a corpus, and the position from which reading can resume."""

from pathlib import Path
from typing import NamedTuple


class CorpusError(ValueError):
    """A corpus is wrong; the message says where, and what was expected."""


class ReadPosition(NamedTuple):
    """How far a corpus has been read."""

    file: int = 0  # number of the file, in the corpus's order
    offset: int = 0  # bytes of that file, decompressed, that have been read
    line: int = 0  # lines of that file that have been read
    num_documents: int = 0  # documents that have been read, of all files


class CorpusDocument(NamedTuple):
    """A text, its file and line, and the position after it."""

    text: str
    path: Path
    line: int  # where the text starts, from 1 on
    next_position: ReadPosition
