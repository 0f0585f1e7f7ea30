"""Read files into passages whose sentences know their position in the file.

``DocumentParser().read(path, kind)`` reads a file in a separate process into pieces;
``split_passages`` groups their sentences into passages. ``registry.READERS`` lists the readers, one
per kind of file.
"""

from mnemic.text.documents.boxes import Box
from mnemic.text.documents.find_files import FileListing, SkippedFile, find_files, may_be_file
from mnemic.text.documents.kinds import KIND_NAMES, SUFFIXES, find_kind, kind_of
from mnemic.text.documents.limits import DEFAULT_LIMITS, Limits
from mnemic.text.documents.open_file import OpenFile
from mnemic.text.documents.passages import Passage, Sentence, split_passages
from mnemic.text.documents.piece import (
    Anchor,
    DocumentError,
    DocumentPart,
    DocumentPiece,
    Member,
    MemberContent,
    Note,
    Source,
    Title,
    replace_unstorable,
)
from mnemic.text.documents.sandbox import DocumentParser
