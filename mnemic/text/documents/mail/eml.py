"""E-mails: sender, date and subject, then the text. Offsets count characters of what is read."""

from collections.abc import Iterator
from email import policy
from email.errors import MessageError
from email.message import EmailMessage, MIMEPart
from email.parser import BytesParser
from pathlib import Path

from mnemic.text.documents.markup.html import html_parts
from mnemic.text.documents.markup.plain import pieces
from mnemic.text.documents.piece import Anchor, DocumentError, Note, Part, Piece, Title

MOST = 100_000_000  # bytes of a file
HEADS = ("From", "To", "Date", "Subject")


def read_mail(path: Path) -> Iterator[Part]:
    if path.stat().st_size > MOST:
        raise DocumentError(f"more than {MOST:,} bytes, too many to be read at once")
    with path.open("rb") as file:
        mail = BytesParser(policy=policy.default).parse(file)
    assert isinstance(mail, EmailMessage)
    heads = [(name, str(mail[name])) for name in HEADS if mail[name]]
    if not heads:
        raise DocumentError("this is no e-mail: it has no sender, date or subject")
    if subject := dict(heads).get("Subject"):
        yield Title(subject)
    top = "".join(f"{name}: {value}\n" for name, value in heads) + "\n"
    yield Piece(top, (Anchor(0, 0, 1),), cuts=ends(top))
    body = mail.get_body(("plain", "html"))
    if body is not None:
        text = content_of(body)
        if body.get_content_subtype() == "html":
            yield from (part for part in html_parts(text) if not isinstance(part, Title))
        else:
            yield from pieces(text, Anchor(0, len(top), len(heads) + 2))
    for attached in mail.iter_attachments():
        yield Note(f"attachment {attached.get_filename() or 'without a name'} was not read")


def content_of(body: MIMEPart) -> str:
    """The text of a part; characters that its encoding does not have are replaced."""
    try:
        return body.get_content()
    except (MessageError, LookupError, ValueError) as error:
        raise DocumentError(f"its text cannot be decoded: {error}") from None


def ends(text: str) -> tuple[int, ...]:
    """Where lines end."""
    return tuple(place + 1 for place, letter in enumerate(text) if letter == "\n")
