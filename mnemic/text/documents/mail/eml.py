"""Read e-mails: sender, date and subject, the text, and the attachments as documents inside.

Lines are those of the file, also of encoded text; in base64, the first line of the part.
"""

import mimetypes
import re
from collections.abc import Iterator
from email.message import EmailMessage, Message
from email.parser import BytesParser
from email.policy import EmailPolicy
from typing import Any, NamedTuple

from mnemic.text.documents.kinds import find_kind
from mnemic.text.documents.mail.body import MAX_PARTS, MailPart, MailSource, cut_body, decode_text, move_anchors
from mnemic.text.documents.markup.html import parse_html
from mnemic.text.documents.piece import (
    Anchor,
    DocumentError,
    DocumentPart,
    DocumentPiece,
    MemberContent,
    Note,
    Source,
    Title,
)
from mnemic.text.documents.rewrite import START

MAX_BYTES = 100_000_000
MAX_NAMES = 5  # of attachments in a note
MAX_HEADER_LENGTH = 10_000  # characters, of which each is parsed
HEADERS = ("From", "To", "Cc", "Date", "Subject")


class ShortHeaders(EmailPolicy):
    """The rules of e-mails, with a bound on headers, which take long to parse."""

    def header_fetch_parse(self, name: str, value: str) -> Any:
        """Parse the beginning of a header."""
        return super().header_fetch_parse(name, value[:MAX_HEADER_LENGTH])


class MailReader(NamedTuple):
    """A message and what is known about its place."""

    mail: MailSource
    message: EmailMessage
    page: int | None = None  # its number in a mailbox

    def read(self) -> Iterator[DocumentPart | MemberContent]:
        """Yield the subject as title, the headers, the texts and the attachments."""
        headers = [(name, value) for name in HEADERS if (value := read_header(self.message, name))]
        if not headers:
            raise DocumentError("this is no e-mail: it has no sender, date or subject")
        if self.page is None and (subject := dict(headers).get("Subject")):
            yield Title(subject)
        yield self.make_headers(headers)
        parts = self.mail.find_parts(self.message)
        body = self.message.get_body(("plain", "html"))
        if body is not None and id(body) in parts:
            yield from self.read_text(parts[id(body)])
        unread: list[str] = []
        for attachment in self.message.iter_attachments():
            mail_part = parts.get(id(attachment))
            if mail_part is None:
                unread.append(f"beyond the first {MAX_PARTS:,}")
            elif attachment.get_filename() is None and attachment.get_content_maintype() == "text":
                yield from self.read_text(mail_part)
            else:
                yield from self.read_attachment(mail_part, unread)
        if unread:
            names = ", ".join(unread[:MAX_NAMES]) + (" …" if len(unread) > MAX_NAMES else "")
            where = "" if self.page is None else f"mail {self.page}: "
            yield Note(f"{where}{count_attachments(len(unread))} not read, of unknown kinds: {names}")

    def make_headers(self, headers: list[tuple[str, str]]) -> DocumentPiece:
        """Make a piece of the headers, a unit each, with their lines in the file."""
        text, anchors, cuts = "", [], []
        for name, value in headers:
            match = re.compile(f"^{name}:", re.IGNORECASE | re.MULTILINE).search(self.mail.text)
            anchors.append(Anchor(len(text), *self.mail.locate(match.start() if match else 0)))
            text += f"{name}: {value}\n"
            cuts.append(len(text))
        cuts[-1] += 1
        return DocumentPiece(f"{text}\n", tuple(anchors), self.page, tuple(cuts))

    def read_text(self, mail_part: MailPart) -> Iterator[DocumentPart]:
        """Yield the pieces of a text part, plain or HTML."""
        body = decode_text(self.mail, mail_part)
        if mail_part.message.get_content_subtype() != "html":
            yield from cut_body(body, self.page)
            return
        for element in parse_html(body.text, self.page):
            if isinstance(element, DocumentPiece):
                yield move_anchors(element, body)

    def read_attachment(self, mail_part: MailPart, unread: list[str]) -> Iterator[MemberContent]:
        """Yield an attachment whose kind is known; else add its name to ``unread``."""
        name = name_attachment(mail_part.message)
        if find_kind(name) is None:
            unread.append(name)
            return
        if mail_part.message.get_content_maintype() == "message":
            content = self.mail.content[mail_part.body : mail_part.end]
        else:
            payload = mail_part.message.get_payload(decode=True)
            content = payload if isinstance(payload, bytes) else b""
        inner_name = name if self.page is None else f"mail {self.page}/{name}"
        yield MemberContent(inner_name, content)


def read_mail(source: Source) -> Iterator[DocumentPart | MemberContent]:
    """Read an e-mail: its subject as title, its headers, its body, its attachments."""
    if source.path.stat().st_size > MAX_BYTES:
        raise DocumentError(f"more than {MAX_BYTES:,} bytes, too many to be read at once")
    with source.path.open("rb") as file:
        yield from read_message(file.read())


def read_message(
    content: bytes, anchor: Anchor = START, page: int | None = None
) -> Iterator[DocumentPart | MemberContent]:
    """Read a message that begins at ``anchor`` of the file."""
    try:
        message = BytesParser(policy=ShortHeaders()).parsebytes(content)
        assert isinstance(message, EmailMessage)
        yield from MailReader(MailSource(content, anchor), message, page).read()
    except RecursionError:
        raise DocumentError("too many messages or parts are inside one another") from None


def read_header(message: EmailMessage, name: str) -> str:
    """Return the decoded value of a header; empty if it is missing or broken."""
    try:
        value = message[name]
    except (ValueError, LookupError, AttributeError, TypeError):  # the library fails on some
        return ""
    return " ".join(str(value).split()) if value else ""


def name_attachment(message: Message) -> str:
    """Return the name of an attachment, if need be with the suffix of its type."""
    name = message.get_filename() or ("message" if message.get_content_maintype() == "message" else "attachment")
    if find_kind(name) is not None:
        return name
    is_message = message.get_content_type() == "message/rfc822"
    suffix = ".eml" if is_message else mimetypes.guess_extension(message.get_content_type()) or ""
    return name + suffix if find_kind(f"x{suffix}") else name


def count_attachments(number: int) -> str:
    """Return the number of attachments in words that fit a sentence."""
    return "1 attachment was" if number == 1 else f"{number} attachments were"
