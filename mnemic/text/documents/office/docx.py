"""Read Word documents: one line per paragraph; offsets count characters of those lines.

Pages are where Word last broke them, which it records in the file; without such records there are
none.
"""

from collections.abc import Iterator
from pathlib import Path

from mnemic.text.documents.office.archive import open_archive, parse_xml, read_member
from mnemic.text.documents.piece import MIN_PIECE_LENGTH, Anchor, DocumentError, DocumentPart, DocumentPiece, Title


class ParagraphCollector:
    """Collect text and page breaks while the XML is parsed."""

    def __init__(self) -> None:
        self.pages: list[str] = []
        self.buffer: list[str] = []
        self.text_depth = 0  # nesting depth inside visible text
        self.has_page_breaks = False  # whether Word recorded the ends of pages

    def on_start(self, name: str, values: dict[str, str]) -> None:
        """Handle the start of an element."""
        if name == "t":
            self.text_depth += 1
        elif name == "tab":
            self.buffer.append("\t")
        elif name == "lastRenderedPageBreak" or (name == "br" and values.get("type") == "page"):
            self.end_page()
            self.has_page_breaks = True
        elif name in ("br", "cr"):
            self.buffer.append("\n")

    def on_end(self, name: str) -> None:
        """Handle the end of an element."""
        if name == "t":
            self.text_depth -= 1
        elif name == "p":
            self.buffer.append("\n")

    def on_text(self, data: str) -> None:
        """Collect text inside a text element."""
        if self.text_depth:
            self.buffer.append(data)

    def end_page(self) -> None:
        """End the current page."""
        self.pages.append("".join(self.buffer))
        self.buffer = []


def read_docx(path: Path) -> Iterator[DocumentPart]:
    """Read a Word document: its title, its body, then footnotes and endnotes."""
    with open_archive(path, "Word document") as archive:
        member_names = set(archive.namelist())
        if "docProps/core.xml" in member_names:
            yield from read_title(read_member(archive, "docProps/core.xml"))
        body = ParagraphCollector()
        parse_xml(read_member(archive, "word/document.xml"), body.on_start, body.on_end, body.on_text)
        body.end_page()
        notes = ParagraphCollector()
        for name in ("word/footnotes.xml", "word/endnotes.xml"):
            if name in member_names:
                parse_xml(read_member(archive, name), notes.on_start, notes.on_end, notes.on_text)
        notes.end_page()
    origin, line = 0, 1
    for number, text in enumerate([*body.pages, "".join(notes.pages)]):
        page = number + 1 if body.has_page_breaks and number < len(body.pages) else None
        yield from split_lines(text, Anchor(0, origin, line), page)
        origin, line = origin + len(text), line + text.count("\n")


def split_lines(text: str, anchor: Anchor, page: int | None) -> Iterator[DocumentPiece]:
    """Split a text into pieces of whole lines."""
    start = 0
    while start < len(text):
        end = text.find("\n", start + MIN_PIECE_LENGTH) + 1 or len(text)
        if text[start:end].strip():
            line = anchor.line + text.count("\n", 0, start)
            yield DocumentPiece(text[start:end], (Anchor(0, anchor.origin + start, line),), page)
        start = end


def read_title(content: bytes) -> Iterator[DocumentPart]:
    """Yield the Dublin Core title, if any, of a Word document or EPUB book."""
    open_tags: list[str] = []
    texts: list[str] = []

    def on_text(data: str) -> None:
        if open_tags and open_tags[-1] == "title":
            texts.append(data)

    try:
        parse_xml(content, lambda name, _: open_tags.append(name), lambda _: discard(open_tags.pop()), on_text)
    except DocumentError:
        return  # the text can still be read
    if title := "".join(texts).strip():
        yield Title(title)


def discard(_: str) -> None:
    """Return nothing, for a callback that must return None."""
