"""Word documents: their paragraphs, a line each. Offsets count characters of those lines.

Pages are where Word last broke them, which it notes in the file; without such notes there are none.
"""

from collections.abc import Iterator
from pathlib import Path

from mnemic.text.documents.office.archive import member, opened, parse
from mnemic.text.documents.piece import PIECE, Anchor, DocumentError, Part, Piece, Title


class Paragraphs:
    """Collects text and page breaks while the XML is walked through."""

    def __init__(self) -> None:
        self.pages: list[str] = []
        self.held: list[str] = []
        self.texts = 0  # how deep inside text that is shown
        self.broken = False  # whether Word noted where pages end

    def start(self, name: str, values: dict[str, str]) -> None:
        if name == "t":
            self.texts += 1
        elif name == "tab":
            self.held.append("\t")
        elif name == "lastRenderedPageBreak" or (name == "br" and values.get("type") == "page"):
            self.turn()
            self.broken = True
        elif name in ("br", "cr"):
            self.held.append("\n")

    def end(self, name: str) -> None:
        if name == "t":
            self.texts -= 1
        elif name == "p":
            self.held.append("\n")

    def text(self, data: str) -> None:
        if self.texts:
            self.held.append(data)

    def turn(self) -> None:
        self.pages.append("".join(self.held))
        self.held = []


def read_docx(path: Path) -> Iterator[Part]:
    """The body, then footnotes and endnotes."""
    with opened(path, "Word document") as archive:
        inside = set(archive.namelist())
        if "docProps/core.xml" in inside:
            yield from title_of(member(archive, "docProps/core.xml"))
        body = Paragraphs()
        parse(member(archive, "word/document.xml"), body.start, body.end, body.text)
        body.turn()
        notes = Paragraphs()
        for name in ("word/footnotes.xml", "word/endnotes.xml"):
            if name in inside:
                parse(member(archive, name), notes.start, notes.end, notes.text)
        notes.turn()
    origin, line = 0, 1
    for number, text in enumerate([*body.pages, "".join(notes.pages)]):
        page = number + 1 if body.broken and number < len(body.pages) else None
        yield from lines(text, Anchor(0, origin, line), page)
        origin, line = origin + len(text), line + text.count("\n")


def lines(text: str, anchor: Anchor, page: int | None) -> Iterator[Piece]:
    """Pieces of whole lines."""
    start = 0
    while start < len(text):
        end = text.find("\n", start + PIECE) + 1 or len(text)
        if text[start:end].strip():
            line = anchor.line + text.count("\n", 0, start)
            yield Piece(text[start:end], (Anchor(0, anchor.origin + start, line),), page)
        start = end


def title_of(content: bytes) -> Iterator[Part]:
    """The title that Dublin Core gives, as Word and EPUB books have it."""
    inside: list[str] = []
    found: list[str] = []

    def text(data: str) -> None:
        if inside and inside[-1] == "title":
            found.append(data)

    try:
        parse(content, lambda name, _: inside.append(name), lambda _: void(inside.pop()), text)
    except DocumentError:
        return  # the text can still be read
    if title := "".join(found).strip():
        yield Title(title)


def void(_: str) -> None:
    """For a handler that must return nothing."""
