"""HTML: what a person reads of it, each word with its place in the source."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from html import unescape
from html.parser import HTMLParser
from itertools import accumulate
from pathlib import Path

from mnemic.text.documents.encoding import encoding_of, whole_text
from mnemic.text.documents.piece import PIECE, Anchor, Note, Part, Piece, Title

MOST = 50_000_000  # characters of a file
HIDDEN = {"script", "style", "template", "noscript", "svg", "iframe", "button", "select", "nav"}
PARAGRAPHS = {
    "p", "div", "section", "article", "main", "header", "footer", "aside", "blockquote", "pre",
    "table", "ul", "ol", "dl", "figure", "form", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "body",
}  # fmt: skip
LINES = {"br", "li", "tr", "dt", "dd", "option", "caption", "figcaption"}
CELLS = {"td", "th"}
_META = re.compile(
    rb"<meta[^>]+charset\s*=\s*[\"']?([\w-]+)|<\?xml[^>]+encoding=[\"']([\w-]+)", re.I
)
_WORDS = re.compile(r"\s+|\S+")


class Words(HTMLParser):
    """Collects the text; ``breaks`` says where paragraphs end, so that pieces can."""

    def __init__(self, source: str, hidden: set[str]) -> None:
        super().__init__(convert_charrefs=False)
        self.starts = list(accumulate((len(line) + 1 for line in source.split("\n")), initial=0))
        self.hidden = hidden
        self.title = ""
        self.inside: list[str] = []  # hidden parts, the title, and preformatted text
        self.gap = ""  # white space that is due before the next word
        self.text: list[str] = []
        self.size = 0
        self.anchors: list[Anchor] = []
        self.breaks: list[int] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.around(tag)
        if tag in self.hidden or tag in ("title", "pre"):
            self.inside.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.around(tag)

    def handle_endtag(self, tag: str) -> None:
        self.around(tag)
        if tag in self.inside:
            del self.inside[self.inside.index(tag) :]

    def around(self, tag: str) -> None:
        """The white space that a tag stands for."""
        if tag in PARAGRAPHS:
            self.gap = "\n\n"
        elif tag in LINES:
            self.gap = self.gap if "\n" in self.gap else "\n"
        elif tag in CELLS:
            self.gap = self.gap if "\n" in self.gap else "\t"

    def handle_data(self, data: str) -> None:
        line, column = self.getpos()
        self.add(data, self.starts[line - 1] + column, line)

    def handle_entityref(self, name: str) -> None:
        self.handle_data(unescape(f"&{name};"))

    def handle_charref(self, name: str) -> None:
        self.handle_data(unescape(f"&#{name};"))

    def add(self, data: str, origin: int, line: int) -> None:
        """Words of the source; white space between them counts once, but for preformatted text."""
        if "title" in self.inside:
            self.title += data
            return
        if any(tag in self.hidden for tag in self.inside):
            return
        if "pre" in self.inside:
            self.put(data, origin, line)
            return
        for found in _WORDS.finditer(data):
            if found.group().isspace():
                self.gap = self.gap or " "
            else:
                before = line + data.count("\n", 0, found.start())
                self.put(found.group(), origin + found.start(), before)

    def put(self, word: str, origin: int, line: int) -> None:
        if self.size and self.gap:
            self.text.append(self.gap)
            self.size += len(self.gap)
            if self.gap == "\n\n":
                self.breaks.append(self.size)
        self.gap = ""
        last = self.anchors[-1] if self.anchors else None
        if last is None or last.origin - last.place != origin - self.size or last.line != line:
            self.anchors.append(Anchor(self.size, origin, line))
        self.text.append(word)
        self.size += len(word)


def read_html(path: Path) -> Iterator[Part]:
    with path.open("rb") as file:
        told = _META.search(file.read(4096))
    encoding = encoding_of(path)
    if told and encoding not in ("utf-8", "utf-8-sig", "utf-16", "utf-32"):
        encoding = known_encoding((told[1] or told[2]).decode("ascii"), encoding)
    source = whole_text(path, MOST, encoding)
    yield from html_parts(source)


def known_encoding(name: str, otherwise: str) -> str:
    try:
        "".encode(name)
    except LookupError:
        return otherwise
    return name


def html_parts(source: str, page: int | None = None) -> Iterator[Part]:
    """The title and the text of a page; if all of it is in hidden parts, those are read, too."""
    words = Words(source, HIDDEN)
    if not words.size:
        words = Words(source, {"script", "style"})
    if title := " ".join(words.title.split()):
        yield Title(title)
    if not words.size:
        yield Note("no text in it" if page is None else f"part {page} has no text")
        return
    text = "".join(words.text)
    start = 0
    for end in [*words.breaks, len(text)]:
        if end - start >= PIECE or end == len(text):
            yield Piece(text[start:end], anchors_from(words.anchors, start, end), page)
            start = end


def anchors_from(anchors: list[Anchor], start: int, end: int) -> tuple[Anchor, ...]:
    """Those of a stretch, counted from its start, where one always is."""
    first = bisect_right(anchors, (start, float("inf"))) - 1
    last = bisect_right(anchors, (end, -1))
    own = anchors[first:last]
    shift = max(start - own[0].place, 0)
    head = Anchor(0, own[0].origin + shift, own[0].line)
    return (head, *(one._replace(place=one.place - start) for one in own[1:]))
