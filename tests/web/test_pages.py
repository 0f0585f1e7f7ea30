"""Pages as pictures, and where the words of a passage are on them."""

import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest
from document_files import pdf, pdf_pages
from web_service import DOCUMENTS, Api, open_api

from mnemic.text.documents import DocumentError, DocumentParser, OpenFile
from mnemic.text.documents.pages.locate import locate_span, normalize_letters
from mnemic.text.documents.pages.png import encode_png
from mnemic.web.pages import join_image

FERRY = "The ferry to Oslo leaves at nine on Monday."
TRAIN = "The train to Bergen leaves at ten."
# A turned page, and a page that says the same twice.
TWICE = "BT /F1 12 Tf 72 720 Td (Red boats sail. They sail far.) Tj 0 -100 Td (Blue boats sail. They sail far.) Tj ET"


def decode_png(content: bytes) -> numpy.ndarray:
    """Decode what ``encode_png`` writes, slowly."""
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    position, chunks = 8, {}
    while position < len(content):
        size, kind = int.from_bytes(content[position : position + 4], "big"), content[position + 4 : position + 8]
        body = content[position + 8 : position + 8 + size]
        assert zlib.crc32(kind + body) == int.from_bytes(content[position + 8 + size : position + 12 + size], "big")
        chunks[kind], position = body, position + 12 + size
    width, height = (int.from_bytes(chunks[b"IHDR"][start : start + 4], "big") for start in (0, 4))
    rows = numpy.frombuffer(zlib.decompress(chunks[b"IDAT"]), numpy.uint8).reshape(height, 1 + 3 * width)
    assert set(rows[:, 0]) == {2}
    pixels = numpy.zeros((height, 3 * width), numpy.uint8)
    for number, row in enumerate(rows[:, 1:]):
        pixels[number] = row + (pixels[number - 1] if number else 0)
    return pixels.reshape(height, width, 3)


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A server with a PDF of two pages and one with a turned page."""
    folder = tmp_path_factory.mktemp("pages")
    text = pdf(folder / "trip.pdf", [FERRY, TRAIN]).read_bytes()
    pages = pdf_pages(folder / "x.pdf", [TWICE]).read_bytes()
    with open_api(folder) as api:
        assert api.upload({"trip.pdf": text, "twice.pdf": pages})["counts"] == {"new": 2}
        yield api


def find_document(api: Api, name: str) -> tuple[str, list[dict]]:
    """The address of a document, and its passages."""
    (document,) = api.call("GET", f"{DOCUMENTS}?query={name}")["documents"]
    path = f"{DOCUMENTS}/{document['id']}"
    return path, api.call("GET", f"{path}/passages")["passages"]


def test_pages_have_sizes_and_pictures(book: Api) -> None:
    path, _ = find_document(book, "trip")
    assert book.call("GET", path)["pages"] == 2
    assert book.call("GET", f"{path}/pages")["pages"] == [
        {"number": number, "width": 612.0, "height": 792.0} for number in (1, 2)
    ]
    image = book.call("GET", f"{path}/pages/1/image?width=306")
    assert image.headers["content-type"] == "image/png"
    pixels = decode_png(image.content)
    assert pixels.shape == (396, 306, 3)
    dark = numpy.argwhere(pixels.min(2) < 128)
    (top, left), (bottom, right) = dark.min(0), dark.max(0)
    assert (top >= 30, bottom <= 40, left >= 34, right <= 170) == (True,) * 4
    for query, status in (("pages/3/image", 422), ("pages/0/image", 422), ("pages/1/image?width=9999", 422)):
        book.call("GET", f"{path}/{query}", status)


def test_the_words_of_an_answer_are_marked(book: Api) -> None:
    path, passages = find_document(book, "trip")
    (passage,) = [row for row in passages if row["page"] == 1]
    start = passage["text"].index("nine")
    address = f"{path}/pages/1/highlight?passage={passage['id']}"
    ((left, top, right, bottom),) = book.call("GET", f"{address}&start={start}&end={start + 4}")["boxes"]
    pixels = decode_png(book.call("GET", f"{path}/pages/1/image?width=1224").content)
    height, width, _ = pixels.shape
    box = pixels[int(top * height) : int(bottom * height), int(left * width) : int(right * width)]
    assert (box.min(2) < 128).mean() > 0.05, "there are letters in it"
    pixels[int(top * height) : int(bottom * height) + 1, int(left * width) : int(right * width) + 1] = 255
    assert (pixels.min(2) < 128).sum() > 0
    (whole,) = book.call("GET", address)["boxes"]
    assert whole[0] < left
    assert right < whole[2]
    book.call("GET", f"{path}/pages/2/highlight?passage={passage['id']}", 404)
    book.call("GET", f"{address}&start=5&end=5", 422)
    book.call("GET", f"{path}/pages/1/highlight?passage=999", 404)


def test_the_passage_says_which_occurrence_is_meant(book: Api) -> None:
    path, passages = find_document(book, "twice")
    tops = []
    for first in ("Red", "Blue"):
        (passage,) = [row for row in passages if first in row["text"]]
        start = passage["text"].index("They", passage["text"].index(first))
        address = f"{path}/pages/1/highlight?passage={passage['id']}&start={start}&end={start + 14}"
        ((_, top, _, _),) = book.call("GET", address)["boxes"]
        tops.append(top)
    assert tops[1] - tops[0] == pytest.approx(100 / 792, abs=0.001)


def test_other_documents_have_no_pages(book: Api) -> None:
    note = book.call("POST", "/v1/memories/notes/notes", 201, json={"text": "A note."})["id"]
    for path in ("pages", "pages/1/image", "original"):
        book.call("GET", f"{DOCUMENTS}/{note}/{path}", 404)


def test_a_process_that_dies_is_replaced(tmp_path: Path) -> None:
    path = pdf(tmp_path / "a.pdf", ["x"])
    with DocumentParser() as parser, OpenFile(path) as file:
        assert parser.view(file, "pdf", "sizes") == [[612.0, 792.0]]
        assert parser.worker is not None
        parser.worker.kill()
        with pytest.raises((DocumentError, OSError)):
            parser.view(file, "pdf", "sizes")
        assert parser.view(file, "pdf", "sizes") == [[612.0, 792.0]]
        with pytest.raises(DocumentError, match="KeyError"):
            parser.view(file, "pdf", "nonsense")
        with pytest.raises(DocumentError, match="no page 2"):
            parser.view(file, "pdf", "image", page=2, width=10)
        decode_png(join_image(parser.view(file, "pdf", "image", page=1, width=100)))


def test_png_is_what_it_was() -> None:
    colors = numpy.random.default_rng(0).integers(0, 256, (7, 5, 3), numpy.uint8)
    assert (decode_png(encode_png(colors)) == colors).all()


@pytest.mark.parametrize(
    ("page", "passage", "span", "expected"),
    [
        ("a com-\nputer runs", "a computer runs", "computer", "com-\nputer"),
        ("a com\xad puter runs", "a computer runs", "computer", "com\xad puter"),
        ("The ﬁrst ofﬁce", "The first office", "office", "ofﬁce"),
        ("He paid 1.000 € now", "He paid 1.000 € now", "1.000", "1.000"),
        ("one two. three one two", "three one two", "one two", "one two"),
        ("right column left column", "left column\nright column", "left column", "left column"),
        ("straße IN BERLIN", "Straße in Berlin", "Straße", "straße"),
        ("nothing of it", "something else", "else", ""),
        ("anything", "… !", "…", ""),
    ],
)
def test_words_are_located(page: str, passage: str, span: str, expected: str) -> None:
    start = passage.index(span)
    positions = locate_span(page, passage, start, start + len(span))
    assert "".join(page[position] for position in positions) == expected


def test_the_last_occurrence_is_found_by_what_is_before_it() -> None:
    page, passage = "one two. three one two", "three one two"
    assert locate_span(page, passage, 6, 13) == list(range(15, 22))
    assert normalize_letters("Ⅳ").text == "iv"


def test_pieces_of_a_span_are_found_alone() -> None:
    page = "alpha beta gamma delta"
    positions = locate_span(page, "gamma delta\nalpha beta", 0, 22)
    assert positions == [number for number, letter in enumerate(page) if letter != " "]
