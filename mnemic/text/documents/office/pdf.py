"""Read PDF in reading order; offsets count characters of a page's text.

A page that is a picture is read by the extra ``ocr``, if it is installed.
"""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

from mnemic.text.documents.office.page_lines import Glyph, build_fragments, build_lines
from mnemic.text.documents.office.page_text import WordSet, build_page
from mnemic.text.documents.pictures.images import check_pixels
from mnemic.text.documents.pictures.ocr import INSTALL_OCR, has_ocr, read_image
from mnemic.text.documents.piece import DocumentError, DocumentPart, DocumentPiece, Note, Source, Title

MAX_PAGES = 20_000  # a file may name one page a million times
MAX_GLYPHS = 500_000  # of a page
MAX_PAGE_SIDE = 200_000  # points; PDF itself has 14,400
SCAN_SCALE = 200 / 72  # pictures of pages have 200 dots per inch
MAX_SCAN_PIXELS = 30_000_000  # of a page
MAX_LISTED_PAGES = 10


def read_pdf(source: Source) -> Iterator[DocumentPart]:
    """Read one piece per page; pictures that cannot be read become a note."""
    # pdfium itself would resolve the path of a descriptor.
    with source.path.open("rb") as file, closing(open_book(file, source.password)) as book:
        if title := book.get_metadata_value("Title").strip():
            yield Title(title)
        yield from read_pages(book)


def read_pages(book: Any) -> Iterator[DocumentPart]:
    """Read the pages of a PDF; a note names those that are pictures."""
    from pypdfium2 import PdfiumError

    words, pictures = WordSet(), list[int]()
    for number in range(1, min(len(book), MAX_PAGES) + 1):
        try:
            with closing(book[number - 1]) as page:
                check_size(*page.get_size())
                piece = read_page(page, number, words)
                if piece:
                    yield piece
                elif not has_picture(page):
                    continue  # blank
                elif has_ocr():
                    check_pictures(page)
                    yield from read_image(render_page(page), number)
                else:
                    pictures.append(number)
        except (PdfiumError, DocumentError) as error:
            yield Note(f"page {number} cannot be read: {error}")
    if len(book) > MAX_PAGES:
        yield Note(f"only the first {MAX_PAGES:,} of {len(book):,} pages were read")
    if len(pictures) == 1:
        yield Note(f"page {pictures[0]} is a picture; {INSTALL_OCR}")
    elif pictures:
        numbers = ", ".join(map(str, pictures[:MAX_LISTED_PAGES])) + ", …" * (len(pictures) > MAX_LISTED_PAGES)
        yield Note(f"{len(pictures)} pages are pictures ({numbers}); {INSTALL_OCR}")


def check_size(width: float, height: float) -> None:
    """Raise ``DocumentError`` for a page so large that pdfium needs much memory for it."""
    if max(width, height) > MAX_PAGE_SIDE:
        raise DocumentError(f"it is {width:,.0f} × {height:,.0f} points large, and no page that can be printed")


def open_book(file: Any, password: str | None) -> Any:
    """Open a PDF, with a password if it needs one; ``DocumentError`` if that fails."""
    try:
        from pypdfium2 import PdfDocument, PdfiumError, raw
    except ModuleNotFoundError:
        raise DocumentError("a PDF; pip install 'mnemic[pdf]' reads it") from None
    try:
        return PdfDocument(file, password=password)
    except PdfiumError as error:
        if error.err_code != raw.FPDF_ERR_PASSWORD:
            raise DocumentError(f"this is no PDF that can be read: {error}") from None
        if password is None:
            raise DocumentError("a PDF that is locked with a password; remember it with --password") from None
        raise DocumentError("the password is wrong for this PDF") from None


def read_page(page: Any, number: int, words: WordSet) -> DocumentPiece | None:
    """Read the text of a page; None if it has none."""
    lines = build_lines(build_fragments(read_glyphs(page)), page.get_width())
    return build_page(lines, number, words) if lines else None


def has_picture(page: Any) -> bool:
    """Check whether there is a picture on a page."""
    return next(list_pictures(page), None) is not None


def list_pictures(page: Any) -> Iterator[Any]:
    """List the pictures on a page."""
    from pypdfium2 import raw

    return iter(page.get_objects([raw.FPDF_PAGEOBJ_IMAGE], max_depth=3))


def check_pictures(page: Any) -> None:
    """Raise ``DocumentError`` if a picture of a page needs too much memory."""
    for picture in list_pictures(page):
        check_pixels(*picture.get_px_size())


def read_glyphs(page: Any) -> Iterator[Glyph]:
    """Yield the characters of a page with their boxes, in the order of the file."""
    from pypdfium2 import raw

    text_page = page.get_textpage()
    handle = text_page.raw
    box = raw.FS_RECTF()
    count = min(text_page.count_chars(), MAX_GLYPHS)
    for index in range(count):
        code = raw.FPDFText_GetUnicode(handle, index)
        raw.FPDFText_GetLooseCharBox(handle, index, box)
        if code:
            yield Glyph(chr(code), box.left, box.bottom, box.right, box.top)
    text_page.close()


def render_page(page: Any) -> Any:
    """Render a page as an array of colors."""
    width, height = page.get_size()
    scale = min(SCAN_SCALE, (MAX_SCAN_PIXELS / max(width * height, 1.0)) ** 0.5)
    return page.render(scale=scale).to_numpy()
