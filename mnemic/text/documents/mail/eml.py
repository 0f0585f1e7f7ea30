"""Read e-mails: sender, date and subject, then the text.

Offsets count characters of the text that is read.
"""

from collections.abc import Iterator
from email import policy
from email.errors import MessageError
from email.message import EmailMessage, MIMEPart
from email.parser import BytesParser
from itertools import accumulate
from pathlib import Path

from mnemic.text.documents.markup.html import parse_html
from mnemic.text.documents.markup.plain import split_pieces
from mnemic.text.documents.piece import Anchor, DocumentError, DocumentPart, DocumentPiece, Note, Title

MAX_BYTES = 100_000_000
HEADERS = ("From", "To", "Date", "Subject")


def read_mail(path: Path) -> Iterator[DocumentPart]:
    """Read an e-mail: its subject as title, its headers, its body, notes on attachments."""
    if path.stat().st_size > MAX_BYTES:
        raise DocumentError(f"more than {MAX_BYTES:,} bytes, too many to be read at once")
    with path.open("rb") as file:
        mail = BytesParser(policy=policy.default).parse(file)
    assert isinstance(mail, EmailMessage)
    headers = [(name, str(mail[name])) for name in HEADERS if mail[name]]
    if not headers:
        raise DocumentError("this is no e-mail: it has no sender, date or subject")
    if subject := dict(headers).get("Subject"):
        yield Title(subject)
    header_lines = [*(f"{name}: {value}\n" for name, value in headers), "\n"]
    header_text = "".join(header_lines)
    yield DocumentPiece(header_text, (Anchor(0, 0, 1),), cuts=tuple(accumulate(map(len, header_lines))))
    body = mail.get_body(("plain", "html"))
    if body is not None:
        text = decode_body(body)
        if body.get_content_subtype() == "html":
            yield from parse_html(text)
        else:
            yield from split_pieces(text, Anchor(0, len(header_text), len(headers) + 2))
    for attachment in mail.iter_attachments():
        yield Note(f"attachment {attachment.get_filename() or 'without a name'} was not read")


def decode_body(message_part: MIMEPart) -> str:
    """Decode the text of a message part; ``DocumentError`` if that fails."""
    try:
        return message_part.get_content()
    except (MessageError, LookupError, ValueError) as error:
        raise DocumentError(f"its text cannot be decoded: {error}") from None
