"""Pictures and scanned pages are read by OCR, without a network, inside the sandbox."""

import socket
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw, ImageFont

from mnemic.text.documents import DEFAULT_LIMITS, DocumentError, DocumentParser, DocumentPiece, Note, Source, kind_of
from mnemic.text.documents.pictures import images, ocr
from mnemic.text.documents.pictures.ocr import TextBox, build_fragments
from mnemic.text.documents.registry import READERS

LINES = ["Invoice of the garage", "Total: 1,184.50 euros", "Due on 15 March 2026"]


def draw_page(lines: list[str], size: tuple[int, int] = (620, 260)) -> Image.Image:
    image = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(image)
    for number, line in enumerate(lines):
        draw.text((30, 20 + 75 * number), line, fill="black", font=ImageFont.load_default(34))
    return image


def read(path: Path) -> list[Any]:
    return list(READERS[kind_of(path)](Source(path, path.name)))


@pytest.fixture
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    ocr.load_engine.cache_clear()


@pytest.mark.usefixtures("_offline")
def test_a_picture_is_read_without_a_network(tmp_path: Path) -> None:
    draw_page(LINES).rotate(180).save(tmp_path / "a.png")  # upside down
    (piece,) = read(tmp_path / "a.png")
    assert piece.text.split("\n\n")[:-1] == LINES
    assert (piece.page, piece.line_of(piece.text.index("1,184.50"))) == (None, 2)


def test_a_scan_is_read_in_the_sandbox(tmp_path: Path) -> None:
    path = tmp_path / "scan.pdf"
    blank, page = Image.new("RGB", (400, 300), "white"), draw_page(LINES)
    page.save(path, save_all=True, append_images=[blank, draw_page(["The last page"])], resolution=200)
    with DocumentParser() as parser:
        parts = list(parser.read(path, "pdf"))
    pieces = [part for part in parts if isinstance(part, DocumentPiece)]
    assert [(piece.page, piece.text.split()) for piece in pieces] == [
        (1, " ".join(LINES).split()),
        (3, ["The", "last", "page"]),
    ]


def test_columns_of_a_picture(tmp_path: Path) -> None:
    """Boxes come row by row; columns of prose are read one after the other."""
    from mnemic.text.documents.office.page_lines import build_lines

    rows = [(f"the first column goes on {n}", f"and the second one, too {n}") for n in range(8)]
    boxes = [
        TextBox(text, x, 40.0 * n, x + 400, 40.0 * n + 30, 0.99)
        for n, row in enumerate(rows)
        for text, x in zip(row, (50.0, 550.0))
    ]
    lines = build_lines(build_fragments(boxes, 400), 1000)
    assert [line.text for line in lines] == [row[0] for row in rows] + [row[1] for row in rows]


def test_what_is_no_picture(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"nothing of the sort")
    with pytest.raises(DocumentError, match=r"no picture that can be read$"):
        read(tmp_path / "a.png")
    Image.new("1", (20_000, 20_000)).save(tmp_path / "bomb.png")
    with pytest.raises(DocumentError, match="at most 100,000,000 are read"):
        read(tmp_path / "bomb.png")


def test_a_picture_without_text_is_a_remark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ocr, "find_boxes", lambda image: [])
    frames = [Image.new("L", (40, 30), "white")] * 2
    frames[0].save(tmp_path / "a.jpg")
    frames[0].save(tmp_path / "a.tiff", save_all=True, append_images=frames[1:])
    assert read(tmp_path / "a.jpg") == [Note("it shows no text")]
    assert read(tmp_path / "a.tiff") == [Note("page 1 shows no text"), Note("page 2 shows no text")]


def test_without_the_package_a_picture_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "has_ocr", lambda: False)
    with pytest.raises(DocumentError) as error:
        read(tmp_path / "a.png")
    assert str(error.value) == "a picture; pip install 'mnemic[ocr]' reads it"


def test_a_scan_may_take_longer_than_a_text() -> None:
    """A page of 30 kB takes OCR some seconds."""
    assert DEFAULT_LIMITS.max_seconds(100 * 30_000, "pdf") > 100 * 20
    assert DEFAULT_LIMITS.max_seconds(100 * 30_000, "text") < 100 * 20
