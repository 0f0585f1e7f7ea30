"""Read Word documents: one line per paragraph; offsets count characters of those lines.

Pages are where Word last broke them, which it records in the file; without such records there are
none.
"""

from collections.abc import Iterator
from pathlib import Path

from mnemic.text.documents.office.archive import open_archive, parse_xml, read_member
from mnemic.text.documents.piece import (
    MIN_PIECE_LENGTH,
    Anchor,
    DocumentError,
    DocumentPart,
    DocumentPiece,
    Title,
    make_piece,
)


def read_docx(path: Path) -> Iterator[DocumentPart]:
    """Read a Word document: its title, its body, then footnotes and endnotes."""
    with open_archive(path, "Word document") as archive:
        member_names = set(archive.namelist())
        if "docProps/core.xml" in member_names:
            yield from read_title(read_member(archive, "docProps/core.xml"))
        pages = read_pages(read_member(archive, "word/document.xml"))
        note_files = [name for name in ("word/footnotes.xml", "word/endnotes.xml") if name in member_names]
        notes = "".join(text for name in note_files for text in read_pages(read_member(archive, name)))
    origin, line = 0, 1
    for number, text in enumerate([*pages, notes], start=1):
        page = number if len(pages) > 1 and number <= len(pages) else None
        yield from split_lines(text, Anchor(0, origin, line), page)
        origin, line = origin + len(text), line + text.count("\n")


def read_pages(content: bytes) -> list[str]:
    """Read the text of a document's XML, split where Word last broke its pages."""
    pages: list[list[str]] = [[]]
    depth = 0  # of nested elements of visible text
    for kind, name, attributes in parse_xml(content):
        if kind == "text":
            pages[-1] += [name] if depth else []
        elif name == "t":
            depth += 1 if kind == "start" else -1
        elif kind == "end":
            pages[-1] += ["\n"] if name == "p" else []
        elif name == "lastRenderedPageBreak" or (name == "br" and attributes.get("type") == "page"):
            pages.append([])
        elif name in ("tab", "br", "cr"):
            pages[-1].append("\t" if name == "tab" else "\n")
    return ["".join(texts) for texts in pages]


def split_lines(text: str, anchor: Anchor, page: int | None) -> Iterator[DocumentPiece]:
    """Split a text into pieces of whole lines."""
    start = 0
    while start < len(text):
        end = text.find("\n", start + MIN_PIECE_LENGTH) + 1 or len(text)
        if text[start:end].strip():
            yield make_piece(text, start, end, anchor, page)
        start = end


def read_title(content: bytes) -> Iterator[DocumentPart]:
    """Yield the Dublin Core title, if any, of a Word document or EPUB book."""
    open_tags: list[str] = []
    title = ""
    try:
        for kind, name, _ in parse_xml(content):
            if kind == "start":
                open_tags.append(name)
            elif kind == "end":
                open_tags.pop()
            elif open_tags[-1:] == ["title"]:
                title += name
    except DocumentError:
        return  # the text can still be read
    if title.strip():
        yield Title(title.strip())
