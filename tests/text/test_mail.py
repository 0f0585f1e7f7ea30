"""E-mails and mailboxes: the lines are those of the file, attachments are documents inside."""

import base64
from pathlib import Path

import pytest

from mnemic.text.documents import (
    DocumentError,
    DocumentPart,
    DocumentPiece,
    Member,
    Note,
    Source,
    find_files,
    kind_of,
    split_passages,
)
from mnemic.text.documents.members import expand_members
from mnemic.text.documents.registry import READERS

ENCODED = base64.b64encode(b"The vault opens at noon.\nBring the key.").decode()
MAIL = f"""From: Ann <ann@x.org>
Received: from a
 by b
Subject: =?utf-8?q?The_caf=C3=A9?=
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="B"

preamble

--B
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: quoted-printable

The caf=C3=A9 opens on Friday with music and a long line that goes on an=
d on to the booking code XYZ123 here.

The flight leaves on 3 May.
--B
Content-Type: text/plain; name="notes.txt"
Content-Disposition: attachment; filename="notes.txt"

Attached words.
--B
Content-Type: image/x-none
Content-Disposition: attachment; filename="a.none"
Content-Transfer-Encoding: base64

AAAA
--B
Content-Type: message/rfc822

From: Bob <b@x.org>
Subject: Inner
Content-Transfer-Encoding: base64

{ENCODED}
--B--
"""
HTML = """From: A <a@b.c>
Subject: Only HTML
Content-Type: text/html; charset=utf-8

<html><p>Hello there
and more words.
The code is B5.</p>
"""


def count_words(texts: list[str]) -> list[int]:
    return [len(text.split()) for text in texts]


def read(path: Path, text: str) -> list[DocumentPart]:
    path.write_bytes(text.encode())
    source = Source(path, path.name)
    return list(expand_members(READERS[kind_of(path)](source), source, READERS))


def list_units(parts: list[DocumentPart]) -> list[tuple[int | None, int, str]]:
    """List page, line and text of each unit."""
    pieces = [part for part in parts if isinstance(part, DocumentPiece)]
    return [
        (passage.page, sentence.line, passage.text[sentence.start : sentence.end])
        for passage in split_passages(pieces, count_words)
        for sentence in passage.sentences
    ]


BODY = "The café opens on Friday with music and a long line that goes on and\non to the booking code XYZ123 here."


@pytest.mark.parametrize("line_break", ["\n", "\r\n"])
def test_lines_are_those_of_the_file(line_break: str, tmp_path: Path) -> None:
    parts = read(tmp_path / "a.eml", MAIL.replace("\n", line_break))
    assert list_units(parts[: parts.index(Member("notes.txt"))]) == [
        (None, 1, "From: Ann <ann@x.org>"), (None, 4, "Subject: The café"), (None, 14, BODY),
        (None, 17, "The flight leaves on 3 May."),
    ]  # fmt: skip
    assert list_units(read(tmp_path / "h.eml", HTML.replace("\n", line_break)))[2:] == [
        (None, 5, "Hello there\nand more words."), (None, 7, "The code is B5."),
    ]  # fmt: skip


def test_attachments_are_documents_and_what_is_not_read_is_one_note(tmp_path: Path) -> None:
    parts = read(tmp_path / "a.eml", MAIL)
    assert [part.name for part in parts if isinstance(part, Member)] == ["notes.txt", "", "message.eml", ""]
    inner = parts[parts.index(Member("message.eml")) :]
    # Lines of base64 are no lines of the text: all are in the first line of their part.
    assert list_units(inner)[2:] == [(None, 5, "The vault opens at noon."), (None, 5, "Bring the key.")]
    assert (None, 1, "Attached words.") in list_units(parts)
    assert [part.text for part in parts if isinstance(part, Note)] == [
        "1 attachment was not read, of unknown kinds: a.none"
    ]
    many = "".join(f"--B\nContent-Type: image/none; name=f{n}.none\n\nx\n" for n in range(1100))
    notes = [part for part in read(tmp_path / "b.eml", MAIL.replace("--B--", f"{many}--B--")) if isinstance(part, Note)]
    assert [note.text[:46] for note in notes] == ["1101 attachments were not read, of unknown kin"]


def test_mailboxes(tmp_path: Path) -> None:
    text = f"From ann Mon Jan 1\n{MAIL}\nFrom a Tue Jan 2\nno header\n\nFrom b Wed Jan 3\n{HTML}"
    parts = read(tmp_path / "a.mbox", text)
    units = list_units(parts)
    lines = text.split("\n")
    assert (1, 1 + 14, BODY) in units
    assert (3, lines.index("The code is B5.</p>") + 1, "The code is B5.") in units
    assert Member("mail 1/notes.txt") in parts
    notes = [part.text for part in parts if isinstance(part, Note)]
    assert notes[1] == "mail 2 was not read: this is no e-mail: it has no sender, date or subject"
    with pytest.raises(DocumentError, match="no mailbox"):
        read(tmp_path / "b.mbox", "Hello")


def test_the_files_of_a_maildir_are_mails(tmp_path: Path) -> None:
    for name in ("cur", "new", "tmp", "other"):
        (tmp_path / "Mail" / name).mkdir(parents=True)
    mail = tmp_path / "Mail" / "cur" / "1700000000.M1P2.host:2,S"
    mail.write_text(HTML, encoding="utf-8")
    (tmp_path / "Mail" / "other" / "1700000000.M1P2.host").write_text(HTML, encoding="utf-8")
    assert find_files([tmp_path]).files == [mail]
    assert kind_of(mail) == "mail"


def test_broken_mails_are_survived(tmp_path: Path) -> None:
    head = "From: A <a@b.c>\nContent-Type: "
    for body in (
        "multipart/mixed; boundary=B\n\n--B\n--B\n--C",
        "multipart/mixed\n\ntext",
        "text/plain; charset=nonsense\n\nText with ä.",
        "text/plain; charset=idna\n\nText.",
        "text/plain\nContent-Transfer-Encoding: base64\n\n%%%",
        "message/rfc822\n\n",
        'multipart/alternative; boundary=""\n\n--\n\nx\n----',
    ):
        assert list_units(read(tmp_path / "a.eml", head + body))[0] == (None, 1, "From: A <a@b.c>")
