"""The documents of a file as they are read: passages, titles and notes.

A file is one document, and those inside it, its *members*, are documents of their own.
"""

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path, PurePath
from typing import NamedTuple

from mnemic.store.contract import MEMBER_SEPARATOR, Draft, EmbeddedPassages, FileRecord
from mnemic.store.retrieve.embedders import Embedder
from mnemic.store.retrieve.languages import embed_known_passages
from mnemic.text.documents import (
    DocumentPart,
    DocumentPiece,
    Member,
    Note,
    Passage,
    Title,
    kind_of,
    may_be_file,
    split_passages,
)
from mnemic.text.documents.passages import TokenCounter
from mnemic.text.documents.piece import Anchor

BATCH_SIZE = 64  # passages per call of the embedder
SETTLED_NS = 2_000_000_000  # after this time, another change gives a file another timestamp


class PieceContent(NamedTuple):
    """The passages of one piece of a file."""

    member: str  # the document inside the file; empty: the file itself
    passages: list[Passage]
    position: int  # of the piece in the file, from 1
    num_characters: int


class FileMetadata:
    """The titles and notes of a file and of its members."""

    def __init__(self, path: Path, digest: str) -> None:
        self.path, self.digest = path, digest
        self.titles: dict[str, str] = {}
        self.notes: dict[str, list[str]] = {}

    def add(self, member: str, entry: Note | Title) -> None:
        """Add a note, or the first title, of a member or of the file itself."""
        if isinstance(entry, Title):
            self.titles.setdefault(member, entry.text)
        else:
            self.notes.setdefault(member, []).append(entry.text)

    def make_draft(self, member: str, previous: int | None) -> Draft:
        """Make the draft of a member, or of the file itself."""
        member_path = path_of_member(self.path, member)
        kind = kind_of(Path(member) if member else self.path)
        title = self.titles.get(member) or PurePath(member or self.path).stem
        notes = tuple(self.notes.get(member, ()))
        return Draft(digest_of(self.digest, member), kind, title, notes, previous, member_path)

    def list_notes(self) -> tuple[str, ...]:
        """Return all notes; those of a member begin with its name."""
        return tuple(f"{member}: {note}" if member else note for member, notes in self.notes.items() for note in notes)


def read_contents(
    parts: Iterable[DocumentPart], count_tokens: TokenCounter, metadata: FileMetadata, first: int = 0
) -> Iterator[PieceContent]:
    """Split the pieces of a file into passages; add titles and notes to ``metadata``.

    The pieces up to number ``first`` were read before; of them only the length is yielded. A file
    that only has documents inside it, such as a .gz file, has their names as its text.
    """
    member, position, names = "", 0, dict[str, str]()
    members_with_text: dict[str, None] = {}  # in order; "" is the file itself
    for document_part in parts:
        if isinstance(document_part, Member):
            member = name_member(document_part.name, member, names)
        elif isinstance(document_part, DocumentPiece):
            position += 1
            if document_part.text.strip():
                members_with_text[member] = None
            passages = list(split_passages([document_part], count_tokens)) if position > first else []
            yield PieceContent(member, passages, position, len(document_part.text))
        else:
            metadata.add(member, document_part)
    if members_with_text and "" not in members_with_text and position >= first:
        listing = DocumentPiece("\n".join(members_with_text), (Anchor(0, 0, line=0),))
        yield PieceContent("", list(split_passages([listing], count_tokens)), position + 1, 0)


def name_member(name: str, current: str, names: dict[str, str]) -> str:
    """Return a member's name, with a number if another member has the same one.

    Coming back from a document inside it, a member keeps its name.
    """
    if not name:
        return ""
    is_return = name in names and current.startswith(f"{name}{MEMBER_SEPARATOR}")
    if not is_return:
        used_names, unique, number = set(names.values()), name, 2
        while unique in used_names:
            path = PurePath(name)
            unique, number = str(path.with_name(f"{path.stem} ({number}){path.suffix}")), number + 1
        if name in names:
            names[f"{name}\0{len(names)}"] = names[name]  # stays used
        names[name] = unique
    return names[name]


def path_of_member(path: Path | str, member: str) -> str:
    """Return the path of a file, or of a document inside it."""
    return f"{path}{MEMBER_SEPARATOR}{member}" if member else str(path)


def digest_of(digest: str, member: str) -> str:
    """Return the digest of a file, or of a document inside it."""
    return sha256(f"{digest}{MEMBER_SEPARATOR}{member}".encode()).hexdigest() if member else digest


def find_container(path: str) -> str:
    """Return the file that a document is inside of, or the path itself."""
    names = path.split(MEMBER_SEPARATOR)
    containers = (MEMBER_SEPARATOR.join(names[:count]) for count in range(len(names), 0, -1))
    return next(filter(may_be_file, containers), path)


def embed_passages(batch: Sequence[Passage], embedder: Embedder | None) -> EmbeddedPassages:
    """Pair each passage with its embedding; None without an embedder."""
    if embedder is None:
        return [(passage, None) for passage in batch]
    return list(zip(batch, embed_known_passages(embedder, [passage.text for passage in batch])))


def make_file_record(path: str, document_id: int, stat: os.stat_result) -> FileRecord:
    """Make the record of a file that holds a document.

    The time of a file that changed just now is stored a nanosecond too early, so that it differs
    and the file is read again: within the clock's resolution it may change once more.
    """
    is_recent = time.time_ns() - stat.st_mtime_ns < SETTLED_NS
    return FileRecord(path, document_id, stat.st_size, stat.st_mtime_ns - is_recent)
