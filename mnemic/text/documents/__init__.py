"""Files to passages with provenance: where in which file each sentence stands.

``Parser().read(path, kind)`` reads a file, in a process of its own, into pieces; ``passages`` makes
passages of whole sentences out of them. ``readers.READERS`` has the kinds, one file a kind.
"""

from mnemic.text.documents.find_files import Closed, Found, find_files, may_be_file
from mnemic.text.documents.kinds import SUFFIXES, kind_of
from mnemic.text.documents.passages import TOKENS, Measure, Passage, Sentence, passages
from mnemic.text.documents.piece import Anchor, DocumentError, Note, Part, Piece, Title, storable
from mnemic.text.documents.sandbox import USUAL, Limits, Parser

__all__ = [
    "SUFFIXES",
    "TOKENS",
    "USUAL",
    "Anchor",
    "Closed",
    "DocumentError",
    "Found",
    "Limits",
    "Measure",
    "Note",
    "Parser",
    "Part",
    "Passage",
    "Piece",
    "Sentence",
    "Title",
    "find_files",
    "kind_of",
    "may_be_file",
    "passages",
    "storable",
]
