"""Find the parts of an e-mail, and decode each with the file's lines."""

import codecs
import quopri
from bisect import bisect_left
from collections.abc import Iterator
from email.message import EmailMessage, Message
from typing import NamedTuple

from mnemic.text.documents.encoding import find_encoding
from mnemic.text.documents.piece import MIN_PIECE_LENGTH, Anchor, DocumentPiece
from mnemic.text.documents.rewrite import find_line_ends, slice_anchors

MAX_PARTS = 1000  # of a message; more are left out


class MailPart(NamedTuple):
    """Where a part of a message is in the source, from its headers on."""

    message: Message
    start: int
    body: int
    end: int


class MailSource:
    """The source of a message, a character per byte, and its place in the file."""

    def __init__(self, content: bytes, anchor: Anchor) -> None:
        self.content = content
        self.text = content.decode("ascii", "surrogateescape")
        self.anchor = anchor
        self.line_ends = find_line_ends(self.text)
        self.is_ascii = content.isascii()

    def locate(self, position: int) -> tuple[int, int]:
        """Return offset and line in the file of a position; offsets count UTF-8 characters."""
        size = position if self.is_ascii else len(self.content[:position].decode("utf-8", "replace"))
        return self.anchor.origin + size, self.anchor.line + bisect_left(self.line_ends, position)

    def find_parts(self, message: EmailMessage) -> dict[int, MailPart]:
        """Find all parts of the message; the keys are the ids of their objects."""
        parts = self.walk(message, 0, len(self.text))
        return {id(mail_part.message): mail_part for mail_part, _ in zip(parts, range(MAX_PARTS))}

    def walk(self, message: Message, start: int, end: int) -> Iterator[MailPart]:
        """Yield a part and those inside it."""
        body = min(self.find_body(start), end)
        yield MailPart(message, start, body, end)
        payload = message.get_payload()
        inner = [submessage for submessage in payload if isinstance(submessage, Message)]
        if not inner:
            return
        boundary = message.get_boundary()
        if boundary is None:  # a message inside the message
            for submessage in inner[:1]:
                yield from self.walk(submessage, body, end)
            return
        mark, position = f"\n--{boundary}", body - 1
        for submessage in inner:
            position = self.text.find(mark, max(position, 0), end)
            first = self.text.find("\n", position + 1, end) + 1
            if position < 0 or not first:
                return
            position = self.text.find(mark, first - 1, end)
            position = end if position < 0 else position
            yield from self.walk(submessage, first, position)

    def find_body(self, start: int) -> int:
        """Return where the headers that begin at ``start`` end: after a blank line."""
        for line_break in ("\n", "\r\n"):
            if self.text.startswith(line_break, start):
                return start + len(line_break)
        ends = [(self.text.find(f"\n{line_break}", start), line_break) for line_break in ("\n", "\r\n")]
        blanks = [position + 1 + len(line_break) for position, line_break in ends if position >= 0]
        return min(blanks, default=len(self.text))


def decode_text(source: MailSource, mail_part: MailPart) -> DocumentPiece:
    """Decode the text of a part, with an anchor into the file per line."""
    encoding = str(mail_part.message.get("Content-Transfer-Encoding", "")).strip().lower()
    charset = find_encoding(mail_part.message.get_content_charset("utf-8"))
    content = source.content[mail_part.body : mail_part.end]
    origin, line = source.locate(mail_part.body)
    if encoding == "base64":
        payload = mail_part.message.get_payload(decode=True)
        text = payload.decode(charset, "replace") if isinstance(payload, bytes) else ""
        starts = [0, *(end + 1 for end in find_line_ends(text))]
        return DocumentPiece(text, tuple(Anchor(start, origin, line) for start in starts))
    is_quoted = encoding == "quoted-printable"
    decoder = codecs.getincrementaldecoder(charset)("replace")
    texts, anchors, size = [], [], 0
    for number, raw_line in enumerate(content.splitlines(keepends=True)):
        anchors.append(Anchor(size, origin, line + number))
        texts.append(decoder.decode(decode_quoted(raw_line) if is_quoted else raw_line))
        size += len(texts[-1])
        origin += len(raw_line.decode("utf-8", "replace"))
    texts.append(decoder.decode(b"", final=True))
    return DocumentPiece("".join(texts), tuple(anchors) or (Anchor(0, origin, line),))


def decode_quoted(line: bytes) -> bytes:
    """Decode a line of quoted-printable; without its ending if it goes on in the next."""
    content = line.rstrip(b"\r\n")
    if content.rstrip(b" \t").endswith(b"="):
        return quopri.decodestring(content.rstrip(b" \t")[:-1])
    return quopri.decodestring(content) + line[len(content) :]


def cut_body(body: DocumentPiece, page: int | None) -> Iterator[DocumentPiece]:
    """Yield a body in pieces that end at blank lines."""
    start = 0
    while start < len(body.text):
        limit = start + MIN_PIECE_LENGTH
        ends = [body.text.find(blank, limit) for blank in ("\n\n", "\n\r\n")]
        end = min((position + 1 for position in ends if position >= 0), default=len(body.text))
        text = body.text[start:end]
        if text.strip():
            yield DocumentPiece(text, slice_anchors(body.text, body.anchors, start, end), page)
        start = end


def move_anchors(piece: DocumentPiece, body: DocumentPiece) -> DocumentPiece:
    """Replace anchors into a decoded body by anchors into the file."""
    anchors = [Anchor(position, body.origin_of(origin), body.line_of(origin)) for position, origin, _ in piece.anchors]
    return piece._replace(anchors=tuple(anchors))
