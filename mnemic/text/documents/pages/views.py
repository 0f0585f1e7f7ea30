"""Views of a file's pages, made in the sandbox: sizes, pictures, boxes of words."""

from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any

import numpy
from numpy.typing import NDArray

from mnemic.text.documents.boxes import Box, make_box
from mnemic.text.documents.office.pdf import MAX_GLYPHS, MAX_PAGES, check_pictures, check_size, open_book
from mnemic.text.documents.pages.locate import locate_span
from mnemic.text.documents.pages.png import encode_png
from mnemic.text.documents.pictures.images import FORMATS, MAX_FRAMES, convert_image
from mnemic.text.documents.piece import DocumentError, Source

MAX_WIDTH = 2_400  # pixels of a picture of a page
MAX_PIXELS = 12_000_000
PART_CHARS = 1 << 20  # of an answer that has a piece of a picture
DEVICE_UNITS = 1_000_000  # of a page's width and height, where boxes are computed
SAME_LINE = 0.5  # part of a character's height that it shares with others of its line
NO_PICTURES = "pictures need pillow: pip install 'mnemic[ocr]'"


def view_sizes(source: Source, kind: str, options: dict[str, Any]) -> Iterator[list[Any]]:
    """Yield the width and height of each page."""
    if kind == "pdf":
        with source.path.open("rb") as file, closing(open_book(file, source.password)) as book:
            for number in range(min(len(book), MAX_PAGES)):
                yield [round(side, 2) for side in book.get_page_size(number)]
        return
    with source.path.open("rb") as file, open_picture(file) as image:
        for number in range(count_frames(image)):
            image.seek(number)
            yield [float(side) for side in orient(image)]


def view_image(source: Source, kind: str, options: dict[str, Any]) -> Iterator[list[Any]]:
    """Yield a page as a PNG picture, in parts."""
    number, width = int(options["page"]), min(int(options["width"]), MAX_WIDTH)
    with source.path.open("rb") as file:
        colors = render_pdf(source, file, number, width) if kind == "pdf" else render_picture(file, number, width)
    text = b64encode(encode_png(colors)).decode("ascii")
    for start in range(0, len(text), PART_CHARS):
        yield [text[start : start + PART_CHARS]]


def view_words(source: Source, kind: str, options: dict[str, Any]) -> Iterator[list[Any]]:
    """Yield the boxes of a span of a passage on a page of a PDF."""
    if kind != "pdf":
        return
    with source.path.open("rb") as file, closing(open_book(file, source.password)) as book:
        check_number(int(options["page"]), len(book))
        with closing(book[int(options["page"]) - 1]) as page:
            check_size(*page.get_size())
            yield from map(list, find_word_boxes(page, options["text"], int(options["start"]), int(options["end"])))


View = Callable[[Source, str, dict[str, Any]], Iterator[list[Any]]]
VIEWS: dict[str, View] = {"sizes": view_sizes, "image": view_image, "words": view_words}


def check_number(number: int, count: int) -> None:
    """Raise ``DocumentError`` for a page that a file does not have."""
    if not 1 <= number <= count:
        raise DocumentError(f"there is no page {number}; it has {count}")


def render_pdf(source: Source, file: Any, number: int, width: int) -> NDArray[numpy.uint8]:
    """Render a page of a PDF as an array of colors."""
    with closing(open_book(file, source.password)) as book:
        check_number(number, len(book))
        with closing(book[number - 1]) as page:
            check_size(*page.get_size())
            check_pictures(page)
            page_width, page_height = (max(side, 1.0) for side in page.get_size())
            scale = min(width / page_width, (MAX_PIXELS / (page_width * page_height)) ** 0.5)
            bitmap = page.render(scale=scale, rev_byteorder=True, prefer_bgrx=True)
            with closing(bitmap):
                return numpy.array(bitmap.to_numpy()[:, :, :3])


def open_picture(file: Any) -> Any:
    """Open a picture; ``DocumentError`` if it cannot be read."""
    try:
        from PIL import Image
    except ModuleNotFoundError:
        raise DocumentError(NO_PICTURES) from None
    Image.MAX_IMAGE_PIXELS = None  # the limit here is an error, not a warning
    try:
        return Image.open(file, formats=FORMATS)
    except (Image.UnidentifiedImageError, SyntaxError, ValueError, EOFError, OSError):
        raise DocumentError("this is no picture that can be read") from None


def count_frames(image: Any) -> int:
    """Count the pages of a picture."""
    return min(getattr(image, "n_frames", 1), MAX_FRAMES) if image.format == "TIFF" else 1


def orient(image: Any) -> tuple[int, int]:
    """Return the size of a picture as a viewer shows it."""
    turned = image.getexif().get(0x0112, 1) in (5, 6, 7, 8)
    return (image.height, image.width) if turned else (image.width, image.height)


def render_picture(file: Any, number: int, width: int) -> NDArray[numpy.uint8]:
    """Render a page of a picture as an array of colors."""
    with open_picture(file) as image:
        check_number(number, count_frames(image))
        image.seek(number - 1)
        from PIL import Image

        try:
            upright = Image.fromarray(convert_image(image)[:, :, ::-1])
        except (SyntaxError, ValueError, EOFError, OSError) as error:
            raise error if isinstance(error, DocumentError) else DocumentError(f"it cannot be read: {error}") from None
        limit = (MAX_PIXELS / (upright.width * upright.height)) ** 0.5
        scale = min(1.0, width / upright.width, limit)
        size = tuple(max(1, round(side * scale)) for side in upright.size)
        return numpy.asarray(upright.resize(size) if size != upright.size else upright)


def find_word_boxes(page: Any, text: str, start: int, end: int) -> list[Box]:
    """Find the boxes of a span of a passage on a page, one per line."""
    from pypdfium2 import raw

    text_page = page.get_textpage()
    with closing(text_page):
        count = min(text_page.count_chars(), MAX_GLYPHS)
        characters = [chr(raw.FPDFText_GetUnicode(text_page.raw, index)) for index in range(count)]
        indices = locate_span(characters, text, start, end)
        boxes, rectangle = list[Box](), raw.FS_RECTF()
        indices = [index for index in indices if not characters[index].isspace()]
        for index in indices:
            raw.FPDFText_GetLooseCharBox(text_page.raw, index, rectangle)
            corners = ((rectangle.left, rectangle.top), (rectangle.right, rectangle.bottom))
            boxes.append(locate_corners(page, corners))
    return join_lines(boxes, indices)


def locate_corners(page: Any, corners: Sequence[tuple[float, float]]) -> Box:
    """Return the box between two corners, as fractions of the page that a viewer shows."""
    from ctypes import c_int

    from pypdfium2 import raw

    points = []
    for x, y in corners:
        column, row = c_int(), c_int()
        raw.FPDF_PageToDevice(page.raw, 0, 0, DEVICE_UNITS, DEVICE_UNITS, 0, x, y, column, row)
        points.append((column.value / DEVICE_UNITS, row.value / DEVICE_UNITS))
    columns, rows = zip(*points)
    return make_box(min(columns), min(rows), max(columns), max(rows))


def join_lines(boxes: Sequence[Box], indices: Sequence[int]) -> list[Box]:
    """Join the boxes of characters that follow each other on a line."""
    joined, last_index = list[Box](), -1
    for box, index in zip(boxes, indices):
        if joined and index - last_index <= 3 and shares_line(joined[-1], box):
            joined[-1] = joined[-1].join([box])
        else:
            joined.append(box)
        last_index = index
    return joined


def shares_line(line: Box, box: Box) -> bool:
    """Check whether a character is on the line of others, even a vertical one."""
    rows = min(line.bottom, box.bottom) - max(line.top, box.top)
    columns = min(line.right, box.right) - max(line.left, box.left)
    height, width = box.bottom - box.top, box.right - box.left
    is_column = line.right - line.left <= (1 + SAME_LINE) * width
    return rows >= SAME_LINE * height or (is_column and columns >= SAME_LINE * width)
