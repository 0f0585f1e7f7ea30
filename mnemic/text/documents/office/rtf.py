"""Read rich text (.rtf): one line per paragraph; offsets count characters of those lines."""

from collections.abc import Iterator

from mnemic.text.documents.office.blocks import build_pieces, find_line_blocks
from mnemic.text.documents.piece import DocumentError, DocumentPart, Source

MAX_BYTES = 50_000_000


def read_rtf(source: Source) -> Iterator[DocumentPart]:
    """Read a rich text: its paragraphs, and its tables as rows."""
    try:
        from striprtf.striprtf import rtf_to_text
    except ModuleNotFoundError:
        raise DocumentError("a rich text; pip install 'mnemic[office]' reads it") from None
    with source.path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if not content.lstrip().startswith(b"{\\rtf"):
        raise DocumentError("this is no rich text that can be read: it does not begin with {\\rtf")
    if len(content) > MAX_BYTES:
        raise DocumentError(f"more than {MAX_BYTES:,} bytes, too many to be read at once")
    text = rtf_to_text(content.decode("latin-1"), errors="replace")
    yield from build_pieces(find_line_blocks(text.splitlines()))
