"""Malicious files end in a clear error, within limits, and the next file is read."""

import os
import time
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from document_files import archive, docx, pdf

from mnemic.text.documents import DocumentError, DocumentParser, DocumentPiece, Limits, kind_of

LIMITS = Limits(timeout_s=10, max_memory_bytes=600_000_000, max_characters=3_000_000)


@pytest.fixture(scope="module")
def parser() -> Iterator[DocumentParser]:
    with DocumentParser(LIMITS) as parser:
        yield parser


def text_of(parser: DocumentParser, path: Path) -> str:
    pieces = parser.read(path, kind_of(path))
    return "".join(piece.text for piece in pieces if isinstance(piece, DocumentPiece))


def check_refused(parser: DocumentParser, path: Path, message: str) -> None:
    started = time.monotonic()
    with pytest.raises(DocumentError, match=message):
        text_of(parser, path)
    assert time.monotonic() - started < 2 * LIMITS.timeout_s
    fine = path.with_name("fine.txt")
    fine.write_text("All is well.", encoding="utf-8")
    assert text_of(parser, fine) == "All is well."


def test_a_zip_bomb(parser: DocumentParser, tmp_path: Path) -> None:
    path = tmp_path / "bomb.docx"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive_file,
        archive_file.open("word/document.xml", "w") as file,
    ):
        for _ in range(101):
            file.write(b" " * 1_000_000)
    assert path.stat().st_size < 1_000_000
    check_refused(parser, path, "zip bomb")


def test_entities_that_multiply(parser: DocumentParser, tmp_path: Path) -> None:
    laughs = '<!DOCTYPE a [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><a>&b;</a>'
    check_refused(parser, archive(tmp_path / "a.docx", {"word/document.xml": laughs}), "entities")


def test_what_is_not_what_its_name_says(parser: DocumentParser, tmp_path: Path) -> None:
    for name, message in (
        ("a.docx", "no Word document"),
        ("a.epub", "no EPUB book"),
        ("a.pdf", "no PDF that can be read"),
        ("a.eml", "no e-mail"),
    ):
        (tmp_path / name).write_bytes(b"%PDF-1.4 nothing of the sort")
        check_refused(parser, tmp_path / name, message)
    (tmp_path / "a.txt").write_bytes(b"\x7fELF\0\0\1\2" * 1000)
    check_refused(parser, tmp_path / "a.txt", "zero bytes")


def test_a_line_without_an_end(parser: DocumentParser, tmp_path: Path) -> None:
    for name in ("a.txt", "a.csv", "a.jsonl"):
        with (tmp_path / name).open("wb") as file:
            file.write(b'"')
            for _ in range(12):
                file.write(b"x" * 1_000_000)
        check_refused(parser, tmp_path / name, "characters, which is no text|no end in sight")


def test_deep_html_is_read(parser: DocumentParser, tmp_path: Path) -> None:
    path = tmp_path / "deep.html"
    path.write_text("<div>" * 100_000 + "At the bottom.", encoding="utf-8")
    assert text_of(parser, path) == "At the bottom."


def test_deep_json(parser: DocumentParser, tmp_path: Path) -> None:
    path = tmp_path / "deep.jsonl"
    path.write_text('{"a": ' + "[" * 100_000, encoding="utf-8")
    check_refused(parser, path, "line 1 is no JSON object")


def test_a_pdf_whose_pages_are_a_circle(parser: DocumentParser, tmp_path: Path) -> None:
    path = pdf(tmp_path / "loop.pdf", ["One.", "Two."])
    content = path.read_bytes().replace(b"/Kids [5 0 R 7 0 R]", b"/Kids [5 0 R 2 0 R]")
    assert content != path.read_bytes()
    path.write_bytes(content)
    with suppress(DocumentError):  # or it is read in part: what matters is that it ends
        text_of(parser, path)
    assert text_of(parser, docx(tmp_path / "fine.docx", ["Still here."])) == "Still here.\n"


def test_more_comes_out_than_can_be(parser: DocumentParser, tmp_path: Path) -> None:
    paragraph = "<w:p><w:r><w:t>" + "word " * 100 + "</w:t></w:r></w:p>"
    path = docx(tmp_path / "a.docx", [])
    archive(path, {"word/document.xml": f"<w:d xmlns:w='w'>{paragraph * 10_000}</w:d>"})
    check_refused(parser, path, "far more text came out")


def test_time_and_memory_have_an_end(tmp_path: Path) -> None:
    """A pipe without a writer never ends; a large file needs much memory."""
    os.mkfifo(tmp_path / "pipe.txt")
    with DocumentParser(Limits(timeout_s=0.5)) as quick:
        with pytest.raises(DocumentError, match="took longer than 0 s and was ended"):
            list(quick.read(tmp_path / "pipe.txt", "text"))
        fine = tmp_path / "fine.txt"
        fine.write_text("All is well.", encoding="utf-8")
        quick.limits = LIMITS
        assert text_of(quick, fine) == "All is well."
    (tmp_path / "big.html").write_bytes(b"x" * 49_000_000)
    with DocumentParser(Limits(max_memory_bytes=160_000_000)) as small:
        with pytest.raises(DocumentError, match="memory"):
            list(small.read(tmp_path / "big.html", "html"))
        assert text_of(small, fine) == "All is well."


def test_the_child_takes_no_code_from_the_folder_it_starts_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('taken over')", encoding="utf-8")
    (tmp_path / "a.txt").write_text("All is well.", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with DocumentParser(LIMITS) as parser:
        assert text_of(parser, Path("a.txt")) == "All is well."
