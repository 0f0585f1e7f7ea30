"""Malicious files end in a clear error, within limits, and the next file is read."""

import json
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from copy import copy
from pathlib import Path

import pytest
from document_files import WORD, archive, docx, epub, pdf

from mnemic.text.documents import DocumentError, DocumentParser, DocumentPiece, Limits, kind_of
from mnemic.text.documents.office import archive as office_archive

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
    check_refused(parser, tmp_path / "a.txt", "this is no text but a program")


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
    fine = tmp_path / "fine.txt"
    fine.write_text("All is well.", encoding="utf-8")
    (tmp_path / "long.txt").write_text("A line.\n" * 1_000_000, encoding="utf-8")
    with DocumentParser(Limits(timeout_s=0.0)) as quick:
        with pytest.raises(DocumentError, match="took longer than 0 s and was ended"):
            list(quick.read(tmp_path / "long.txt", "text"))
        quick.limits = LIMITS
        assert text_of(quick, fine) == "All is well."
    (tmp_path / "big.html").write_bytes(b"x" * 49_000_000)
    with DocumentParser(Limits(max_memory_bytes=110_000_000)) as small:
        with pytest.raises(DocumentError, match="memory"):
            list(small.read(tmp_path / "big.html", "html"))
        assert text_of(small, fine) == "All is well."


def test_too_many_files_in_an_archive(parser: DocumentParser, tmp_path: Path) -> None:
    path = tmp_path / "many.docx"
    archive(path, {"word/document.xml": "<a/>"} | {f"{n}": "" for n in range(10_000)})
    check_refused(parser, path, "more than 10,000 files")


def test_a_member_has_a_limit_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = archive(tmp_path / "a.docx", {"word/document.xml": "<a/>" * 100})
    monkeypatch.setattr(office_archive, "MAX_MEMBER_BYTES", 100)
    with zipfile.ZipFile(path) as file, pytest.raises(DocumentError, match="unpacks to more than 100 bytes"):
        office_archive.read_member(file, "word/document.xml")


REMEMBER_ALL = """
import json, resource, sys, time
from mnemic import Memory
memory, started = Memory(sys.argv[1], embedder="hashed-ngrams", reader=None), time.monotonic()
steps = []
for step in memory.remembering([sys.argv[2]]):
    steps.append([step.path, step.outcome, step.notes, time.monotonic() - started])
    started = time.monotonic()
own = open("/proc/self/status").read().split("VmHWM:")[1].split()[0]
print(json.dumps([steps, [int(own), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss]]))
"""


def write_bombs(folder: Path) -> dict[str, str]:
    """Write six small files that would become large, and return the reason to refuse each."""
    paragraph, end = f'<w:d xmlns:w="{WORD}"><w:p><w:r><w:t>', "</w:t></w:r></w:p></w:d>"
    texts = {
        "words": "a " * 10_000_000,
        "word": "a" * 20_000_000,
        "paragraph": "a " * 47_500_000,
        "paragraphs": ("word " * 100 + "</w:t></w:r></w:p><w:p><w:r><w:t>") * 170_000,
    }
    for name, text in texts.items():
        archive(folder / f"{name}.docx", {"word/document.xml": f"{paragraph}{text}{end}"})
    with zipfile.ZipFile(folder / "overlap.docx", "w", zipfile.ZIP_DEFLATED) as archive_file:
        archive_file.writestr("word/document.xml", paragraph + "a " * 500 + end)
        for number in range(8999):
            member = copy(archive_file.filelist[0])
            member.filename = f"word/{number}.xml"
            archive_file.filelist.append(member)
    book = epub(folder / "spine.epub", ["A chapter. " * 100])
    with zipfile.ZipFile(book) as archive_file:
        files = {name: archive_file.read(name).decode() for name in archive_file.namelist()}
    reference = '<itemref idref="c0"/>'
    files["book/content.opf"] = files["book/content.opf"].replace(reference, reference * 100_000)
    archive(book, files)
    assert sum(path.stat().st_size for path in folder.iterdir()) < 2_000_000
    reasons = dict.fromkeys((f"{name}.docx" for name in texts), "zip bomb")
    return reasons | {"overlap.docx": "overlap", "spine.epub": "bomb"}


def test_six_bombs_among_good_files(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    reasons = write_bombs(folder)
    for name in ("a.txt", "m.txt", "z.txt"):
        (folder / name).write_text(f"All is well in {name}.", encoding="utf-8")
    command = [sys.executable, "-c", REMEMBER_ALL, str(tmp_path / "memory.db"), str(folder)]
    steps, usage = json.loads(subprocess.run(command, capture_output=True, check=True, text=True, timeout=90).stdout)
    outcomes = {Path(path).name: (outcome, notes) for path, outcome, notes, _ in steps}
    assert [outcomes[name][0] for name in ("a.txt", "m.txt", "z.txt")] == ["new"] * 3
    for name, reason in reasons.items():
        assert outcomes[name][0] == "broken"
        assert reason in outcomes[name][1][0]
    assert max(seconds for *_, seconds in steps) < 10
    assert max(usage) < 500_000  # KiB, of the process and of the one that reads


def test_the_child_takes_no_code_from_the_folder_it_starts_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('taken over')", encoding="utf-8")
    (tmp_path / "a.txt").write_text("All is well.", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with DocumentParser(LIMITS) as parser:
        assert text_of(parser, Path("a.txt")) == "All is well."
