"""Read HTML: the visible text, each word with its position in the source."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from html import unescape
from html.parser import HTMLParser
from itertools import accumulate
from pathlib import Path

from mnemic.text.documents.encoding import detect_encoding, read_text
from mnemic.text.documents.piece import MIN_PIECE_LENGTH, Anchor, DocumentPart, DocumentPiece, Note, Title

MAX_CHARACTERS = 50_000_000  # of a file
HIDDEN_TAGS = {"script", "style", "template", "noscript", "svg", "iframe", "button", "select", "nav"}
PARAGRAPH_TAGS = {
    "p", "div", "section", "article", "main", "header", "footer", "aside", "blockquote", "pre",
    "table", "ul", "ol", "dl", "figure", "form", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "body",
}  # fmt: skip
LINE_TAGS = {"br", "li", "tr", "dt", "dd", "option", "caption", "figcaption"}
CELL_TAGS = {"td", "th"}
_META = re.compile(rb"<meta[^>]+charset\s*=\s*[\"']?([\w-]+)|<\?xml[^>]+encoding=[\"']([\w-]+)", re.I)
_WORDS = re.compile(r"\s+|\S+")


class HTMLTextExtractor(HTMLParser):
    """Collect the visible text of HTML; ``breaks`` are the positions between paragraphs."""

    def __init__(self, source: str, hidden: set[str]) -> None:
        super().__init__(convert_charrefs=False)
        self.line_starts = list(accumulate((len(line) + 1 for line in source.split("\n")), initial=0))
        self.hidden = hidden
        self.title = ""
        self.open_tags: list[str] = []  # of hidden parts, the title, and preformatted text
        self.gap = ""  # white space before the next word
        self.text: list[str] = []
        self.size = 0
        self.anchors: list[Anchor] = []
        self.breaks: list[int] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record the tag's white space, and the tag if it affects the text inside."""
        self.add_gap(tag)
        if tag in self.hidden or tag in ("title", "pre"):
            self.open_tags.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.add_gap(tag)

    def handle_endtag(self, tag: str) -> None:
        """Record the tag's white space and close the tag."""
        self.add_gap(tag)
        if tag in self.open_tags:
            del self.open_tags[self.open_tags.index(tag) :]

    def add_gap(self, tag: str) -> None:
        """Record the white space that a tag stands for."""
        if tag in PARAGRAPH_TAGS:
            self.gap = "\n\n"
        elif tag in LINE_TAGS:
            self.gap = self.gap if "\n" in self.gap else "\n"
        elif tag in CELL_TAGS:
            self.gap = self.gap if "\n" in self.gap else "\t"

    def handle_data(self, data: str) -> None:
        """Add text of the source; white space collapses outside preformatted text."""
        line, column = self.getpos()
        origin = self.line_starts[line - 1] + column
        if "title" in self.open_tags:
            self.title += data
        elif any(tag in self.hidden for tag in self.open_tags):
            return
        elif "pre" in self.open_tags:
            self.append_word(data, origin, line)
        else:
            for match in _WORDS.finditer(data):
                if match.group().isspace():
                    self.gap = self.gap or " "
                else:
                    word_line = line + data.count("\n", 0, match.start())
                    self.append_word(match.group(), origin + match.start(), word_line)

    def handle_entityref(self, name: str) -> None:
        self.handle_data(unescape(f"&{name};"))

    def handle_charref(self, name: str) -> None:
        self.handle_data(unescape(f"&#{name};"))

    def append_word(self, word: str, origin: int, line: int) -> None:
        """Append a word after the pending white space, with an anchor where needed."""
        if self.size and self.gap:
            self.text.append(self.gap)
            self.size += len(self.gap)
            if self.gap == "\n\n":
                self.breaks.append(self.size)
        self.gap = ""
        last = self.anchors[-1] if self.anchors else None
        if last is None or last.origin - last.position != origin - self.size or last.line != line:
            self.anchors.append(Anchor(self.size, origin, line))
        self.text.append(word)
        self.size += len(word)


def read_html(path: Path) -> Iterator[DocumentPart]:
    """Read an HTML file in the encoding that it declares or that is detected."""
    with path.open("rb") as file:
        match = _META.search(file.read(4096))
    encoding = detect_encoding(path)
    if match and encoding not in ("utf-8", "utf-8-sig", "utf-16", "utf-32"):
        declared = (match[1] or match[2]).decode("ascii")
        with suppress(LookupError):  # Python does not know it
            "".encode(declared)
            encoding = declared
    yield from parse_html(read_text(path, MAX_CHARACTERS, encoding), titled=True)


def parse_html(source: str, page: int | None = None, *, titled: bool = False) -> Iterator[DocumentPart]:
    """Yield the text of HTML, after its title if ``titled``.

    If all of the text is hidden, it is read anyway.
    """
    extractor = HTMLTextExtractor(source, HIDDEN_TAGS)
    if not extractor.size:
        extractor = HTMLTextExtractor(source, {"script", "style"})
    if titled and (title := " ".join(extractor.title.split())):
        yield Title(title)
    if not extractor.size:
        yield Note("no text in it" if page is None else f"part {page} has no text")
        return
    text = "".join(extractor.text)
    start = 0
    for end in [*extractor.breaks, len(text)]:
        if end - start >= MIN_PIECE_LENGTH or end == len(text):
            yield DocumentPiece(text[start:end], slice_anchors(extractor.anchors, start, end), page)
            start = end


def slice_anchors(anchors: list[Anchor], start: int, end: int) -> tuple[Anchor, ...]:
    """Return the anchors of ``text[start:end]``, relative to its start, the first at 0."""
    first = bisect_right(anchors, (start, float("inf"))) - 1
    last = bisect_right(anchors, (end, -1))
    inner = anchors[first:last]
    shift = max(start - inner[0].position, 0)
    head = Anchor(0, inner[0].origin + shift, inner[0].line)
    return (head, *(anchor._replace(position=anchor.position - start) for anchor in inner[1:]))
