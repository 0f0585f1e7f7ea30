"""Read PDF: the text layer of each page; offsets count characters of that layer."""

from collections.abc import Iterator
from pathlib import Path

from mnemic.text.documents.piece import Anchor, DocumentError, DocumentPart, DocumentPiece, Note, Title


def read_pdf(path: Path) -> Iterator[DocumentPart]:
    """Read one piece per page; a page without readable text becomes a note."""
    try:
        from pypdf import PdfReader
        from pypdf.errors import PyPdfError
    except ModuleNotFoundError:
        raise DocumentError("PDF files need pypdf: pip install 'mnemic[pdf]'") from None
    try:
        book = PdfReader(path)
        if book.is_encrypted and not book.decrypt(""):
            raise DocumentError("it is locked with a password; remember an unlocked copy")
        pages = len(book.pages)
        title = book.metadata.title if book.metadata else None
    except (DocumentError, MemoryError):
        raise
    except Exception as error:  # untrusted files can make the parser raise anything
        raise DocumentError(f"this is no PDF that can be read: {error}") from None
    if isinstance(title, str) and title.strip():
        yield Title(title.strip())
    for number in range(pages):
        try:
            text = book.pages[number].extract_text()
        except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            yield Note(f"page {number + 1} cannot be read: {error}")
            continue
        if text.strip():
            yield DocumentPiece(text, (Anchor(0, 0, 1),), number + 1)
        else:
            yield Note(f"page {number + 1} has no text layer")
