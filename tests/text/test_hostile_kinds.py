"""Files of each kind that would take long or grow: they are read in bounds, or refused."""

import tarfile
from pathlib import Path

import pytest
from document_files import PICTURE, archive, epub, pdf, pdf_pages
from time_limits import limit_time

from mnemic.text.documents import DocumentError, DocumentPart, DocumentPiece, Member, Note, Source, kind_of
from mnemic.text.documents.limits import MAX_MEMBERS, bound_parts
from mnemic.text.documents.mail import eml
from mnemic.text.documents.members import MAX_DEPTH, expand_members
from mnemic.text.documents.pictures import images
from mnemic.text.documents.piece import MIN_PIECE_LENGTH
from mnemic.text.documents.registry import READERS

MAIL = "From: ann@x.org\nSubject: A mail\nMIME-Version: 1.0\n"


def read(path: Path, content: str | bytes | None = None, timeout_s: float = 20) -> list[DocumentPart]:
    if content is not None:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    source = Source(path, path.name)
    with limit_time(timeout_s):
        parts = expand_members(READERS[kind_of(path)](source), source, READERS)
        return list(bound_parts(parts, 100_000_000))


def join_text(parts: list[DocumentPart]) -> str:
    return "".join(part.text for part in parts if isinstance(part, DocumentPiece))


def list_notes(parts: list[DocumentPart]) -> list[str]:
    return [part.text for part in parts if isinstance(part, Note)]


@pytest.mark.parametrize(
    ("kind", "size", "message"),
    [
        (tarfile.REGTYPE, 10**10, "far more bytes"),
        (tarfile.DIRTYPE, 10**10, "far more bytes"),
        (tarfile.XHDTYPE, 10**10, "a header of it has 10,000,000,000 bytes"),
        (tarfile.GNUTYPE_LONGNAME, 10**9, "a header of it has 1,000,000,000 bytes"),
    ],
)
def test_a_tar_archive_that_unpacks_to_too_much(tmp_path: Path, kind: bytes, size: int, message: str) -> None:
    header = tarfile.TarInfo("a")
    header.type, header.size = kind, size
    with pytest.raises(DocumentError, match=message):
        read(tmp_path / "a.tar", header.tobuf(tarfile.GNU_FORMAT) + bytes(10_240))


def test_a_tar_archive_of_too_many_folders(tmp_path: Path) -> None:
    folder = tarfile.TarInfo("a")
    folder.type = tarfile.DIRTYPE
    with pytest.raises(DocumentError, match="more than 10,000"):
        read(tmp_path / "a.tar", folder.tobuf() * 10_001 + bytes(10_240))


def test_mails_inside_mails(tmp_path: Path) -> None:
    inside = f"{MAIL}Content-Type: message/rfc822\n\n"
    with pytest.raises(DocumentError, match="inside one another"):
        read(tmp_path / "a.eml", inside * 1000 + MAIL)
    mail = f"{MAIL}\nThe end.\n"
    for number in range(MAX_DEPTH + 2):
        mixed = f'Content-Type: multipart/mixed; boundary="b{number}"\n\n--b{number}\n'
        mail = f"{MAIL}{mixed}Content-Type: text/plain\n\nText.\n--b{number}\nContent-Type: message/rfc822\n\n{mail}"
    parts = read(tmp_path / "a.eml", mail)
    assert max(part.name.count("!/") for part in parts if isinstance(part, Member)) == MAX_DEPTH - 1
    assert f"more than {MAX_DEPTH} files are inside one another" in list_notes(parts)[0]


def test_a_mail_of_too_many_attachments() -> None:
    members = [Member(name) for number in range(MAX_MEMBERS + 1) for name in (f"{number}.txt", "")]
    assert len(list(bound_parts(members[:-2], 10**6))) == 2 * MAX_MEMBERS
    with pytest.raises(DocumentError, match="more than 1,000 files"):
        list(bound_parts(members, 10**6))


@pytest.mark.parametrize("header", ["Subject: " + "=?utf-8?q?a?= " * 10**5, "To: " + "a@b.c," * 10**5])
def test_a_header_without_an_end(tmp_path: Path, header: str) -> None:
    parts = read(tmp_path / "a.eml", f"Date: Mon, 2 Mar 2026 10:00:00 +0000\n{header}\n\nThe words.\n")
    text = join_text(parts)
    assert "The words." in text
    assert len(text) < 2 * eml.MAX_HEADER_LENGTH


@pytest.mark.parametrize("charset", ["punycode", "idna", "unicode_escape", "zlib", "undefined", "nonsense", "a" * 99])
def test_a_character_set_that_is_none(tmp_path: Path, charset: str) -> None:
    words = r"The words\x41-" + "b" * 300
    parts = read(tmp_path / "a.eml", f"{MAIL}Content-Type: text/plain; charset={charset}\n\n{words}\n")
    assert words in join_text(parts)
    card = f"BEGIN:VCARD\nFN;ENCODING=QUOTED-PRINTABLE;CHARSET={charset}:The name-{'b' * 300}\nEND:VCARD\n"
    assert f"Name: The name-{'b' * 300}" in join_text(read(tmp_path / "a.vcf", card))


def test_a_slide_that_is_there_many_times(tmp_path: Path) -> None:
    relation = '<Relationship Id="r{}" Target="{}"/>'
    notes = "".join(relation.format(number, "../notesSlides/n.xml") for number in range(1000))
    path = archive(
        tmp_path / "a.pptx",
        {
            "ppt/presentation.xml": "<p>" + '<sldId id="r1"/>' * 1000 + "</p>",
            "ppt/_rels/presentation.xml.rels": f"<r>{relation.format(1, 'slides/s.xml')}</r>",
            "ppt/slides/s.xml": "<s><p><t>A slide.</t></p></s>",
            "ppt/slides/_rels/s.xml.rels": f"<r>{notes}</r>",
            "ppt/notesSlides/n.xml": "<s><p><t>A note.</t></p></s>",
        },
    )
    assert join_text(read(path)).split() == ["A", "slide.", "A", "note."]


def test_a_chapter_of_many_names(tmp_path: Path) -> None:
    book = epub(tmp_path / "a.epub", ["The chapter."])
    items = "".join(f'<item id="i{number}" href="{"./" * number}c0.xhtml"/>' for number in range(100))
    order = "".join(f'<itemref idref="i{number}"/>' for number in range(100))
    archive(
        book,
        {
            "META-INF/container.xml": '<c><rootfile full-path="book/content.opf"/></c>',
            "book/content.opf": f"<package><manifest>{items}</manifest><spine>{order}</spine></package>",
            "book/c0.xhtml": "<p>The chapter.</p>",
        },
    )
    assert join_text(read(book)).split() == ["The", "chapter."]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("lines.csv", 'a,"' + "x\n" * 300_000 + '"'),
        ("spaces.ini", "[" + " " * 300_000 + "a\n" + "x" * 300_000),
        ("value.ini", "a = x" + " " * 300_000 + "y"),
        ("comment.ini", "# x" + " " * 300_000 + "y"),
        ("folds.ics", "BEGIN:VEVENT\nSUMMARY:a\n" + " b\n" * 300_000 + "END:VEVENT\n"),
    ],
)
def test_time_grows_with_the_size_alone(tmp_path: Path, name: str, content: str) -> None:
    assert len(join_text(read(tmp_path / name, content, timeout_s=6))) >= 300_000


def test_a_row_of_too_many_cells_is_a_line(tmp_path: Path) -> None:
    parts = read(tmp_path / "a.csv", "a,b,c\n1,2,3\n" + "x," * 20_000)
    header, row, line = join_text(parts).splitlines()
    assert (header, row) == ("a; b; c", "a: 1; b: 2; c: 3")
    assert line == "a: " + "x," * 20_000
    assert sum(len(part.anchors) for part in parts if isinstance(part, DocumentPiece)) < 20


def test_a_list_of_many_numbers_is_read_in_pieces(tmp_path: Path) -> None:
    pieces = [part for part in read(tmp_path / "a.json", f"[{'1,' * 40_000}1]") if isinstance(part, DocumentPiece)]
    assert len(pieces) > 2
    assert max(len(piece.text) for piece in pieces) < 2 * MIN_PIECE_LENGTH


def test_pages_and_pictures_have_a_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = pdf(tmp_path / "a.pdf", ["A page."])
    content = path.read_bytes().replace(b"[0 0 612 792]", b"[0 0 999999 9]")
    assert list_notes(read(path, content)) == [
        "page 1 cannot be read: it is 999,999 × 9 points large, and no page that can be printed"
    ]
    pages = pdf(tmp_path / "c.pdf", ["One.", "Two.", "Three."])
    with monkeypatch.context() as patch:
        patch.setattr("mnemic.text.documents.office.pdf.MAX_PAGES", 2)
        assert list_notes(read(pages)) == ["only the first 2 of 3 pages were read"]
    monkeypatch.setattr("mnemic.text.documents.office.pdf.has_ocr", lambda: True)
    monkeypatch.setattr(images, "MAX_PIXELS", 0)
    scan = pdf_pages(tmp_path / "b.pdf", [PICTURE])
    assert "a picture of 1 × 1 points; at most 0 are read" in list_notes(read(scan))[0]


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "RGBA"])
def test_a_large_picture_is_made_smaller_before_it_is_converted(mode: str) -> None:
    image = pytest.importorskip("PIL.Image")
    assert images.convert_image(image.new(mode, (9000, 60))).shape == (20, 3000, 3)
    assert images.convert_image(image.new(mode, (3000, 60))).shape == (60, 3000, 3)
