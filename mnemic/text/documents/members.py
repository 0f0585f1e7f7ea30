"""Read a document that is inside a file, such as the attachment of an e-mail.

A reader yields it as ``MemberContent``; ``expand_members`` gives it to the reader of its kind, as a
file in memory, which has a path like any other.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile

from mnemic.text.documents.kinds import find_kind
from mnemic.text.documents.piece import (
    DocumentError,
    DocumentPart,
    FileReader,
    Member,
    MemberContent,
    Note,
    Source,
    replace_unstorable,
)

MAX_DEPTH = 3  # of members in members
MAX_NAME_LENGTH = 200  # characters
SEPARATOR = "!/"  # between a file and the name of its member
DESCRIPTORS = next((folder for folder in ("/proc/self/fd", "/dev/fd") if os.path.isdir(folder)), "/dev/fd")


def expand_members(
    parts: Iterable[DocumentPart | MemberContent], source: Source, readers: Mapping[str, FileReader]
) -> Iterator[DocumentPart]:
    """Yield the parts of a file, with those of the files inside it.

    What cannot be read is a note of the file itself.
    """
    for document_part in parts:
        if isinstance(document_part, MemberContent):
            yield from read_member_content(document_part, source, readers)
        else:
            yield document_part


def read_member_content(
    member: MemberContent, source: Source, readers: Mapping[str, FileReader]
) -> Iterator[DocumentPart]:
    """Yield ``Member(name)``, the parts of its content, and ``Member("")``."""
    name = clean_name(member.name)
    kind = find_kind(name)
    if kind is None or source.depth >= MAX_DEPTH:
        reason = "its kind is unknown" if kind is None else f"more than {MAX_DEPTH} files are inside one another"
        yield Note(f"attachment {name} was not read: {reason}")
        return
    yield Member(name)
    reason = ""
    try:
        with open_in_memory(member.content) as path:
            inner = Source(path, name, source.password, source.depth + 1)
            for document_part in expand_members(readers[kind](inner), inner, readers):
                if isinstance(document_part, Member):
                    inner_name = f"{name}{SEPARATOR}{document_part.name}" if document_part.name else name
                    document_part = Member(inner_name)
                yield document_part
    except DocumentError as error:
        reason = str(error)
    yield Member("")
    if reason:
        yield Note(f"attachment {name} was not read: {reason}")


def clean_name(name: str) -> str:
    """Make a member's name printable and short; it is a label and never opened."""
    visible = "".join(character if character.isprintable() else " " for character in replace_unstorable(name))
    cleaned = " ".join(visible.replace(SEPARATOR, "_").split()).lstrip("/")
    stem, suffix = os.path.splitext(cleaned)
    return (stem[: MAX_NAME_LENGTH - len(suffix)] + suffix)[-MAX_NAME_LENGTH:] or "without a name"


@contextmanager
def open_in_memory(content: bytes) -> Iterator[Path]:
    """Write bytes to a file without a name, if possible in memory; yield its path."""
    has_memory_files = DESCRIPTORS.startswith("/proc")
    with os.fdopen(os.memfd_create("member"), "w+b") if has_memory_files else TemporaryFile() as file:
        file.write(content)
        file.flush()
        yield Path(DESCRIPTORS, str(file.fileno()))
