"""Read mailboxes (.mbox): each mail is a page, with the lines of the file."""

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from mnemic.text.documents.mail.eml import MAX_BYTES, read_message
from mnemic.text.documents.piece import Anchor, DocumentError, DocumentPart, MemberContent, Note, Source

MAX_LINE_BYTES = 1 << 20
SEPARATOR = b"From "  # before each mail, after a blank line


class MailboxEntry(NamedTuple):
    """A mail of a mailbox: its bytes, and where they begin."""

    content: bytes
    anchor: Anchor


def read_mailbox(source: Source) -> Iterator[DocumentPart | MemberContent]:
    """Read the mails of a mailbox in order; what is no mail becomes a note."""
    with source.path.open("rb") as file:
        for number, entry in enumerate(split_mailbox(file), start=1):
            if len(entry.content) > MAX_BYTES:
                yield Note(f"mail {number} has more than {MAX_BYTES:,} bytes, too many to be read at once")
                continue
            try:
                yield from read_message(entry.content, entry.anchor, number)
            except DocumentError as error:
                yield Note(f"mail {number} was not read: {error}")


def split_mailbox(file: BinaryIO) -> Iterator[MailboxEntry]:
    """Yield the mails of a mailbox; of one that is too large, the beginning."""
    lines: list[bytes] = []
    anchor = Anchor(0, 0, 1)
    origin, number, size, is_blank = 0, 0, 0, True
    while line := file.readline(MAX_LINE_BYTES):
        number += 1
        origin += len(line) if line.isascii() else len(line.decode("utf-8", "replace"))
        if is_blank and line.startswith(SEPARATOR):
            if size:
                yield MailboxEntry(b"".join(lines), anchor)
            lines, size, anchor = [], 0, Anchor(0, origin, number + 1)
        elif number == 1:
            raise DocumentError("this is no mailbox: it does not begin with a line 'From …'")
        elif size <= MAX_BYTES:
            lines.append(line)
            size += len(line)
        is_blank = not line.strip()
    if size:
        yield MailboxEntry(b"".join(lines), anchor)
