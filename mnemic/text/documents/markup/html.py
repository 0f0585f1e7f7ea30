"""Read HTML: the visible text, each word with its position in the source.

White space in the source means nothing, except that the text keeps its line breaks, so that the
line of each word is known.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from html import unescape
from typing import NamedTuple

from mnemic.text.documents.encoding import detect_encoding, read_text
from mnemic.text.documents.markup.html_table import HTMLTable
from mnemic.text.documents.markup.html_tokens import HTMLToken, split_tokens
from mnemic.text.documents.piece import DocumentPart, Note, Source, Title
from mnemic.text.documents.rewrite import Layout, TextRewriter

MAX_CHARACTERS = 50_000_000  # of a file
MAX_LINE_BREAKS = 3  # inside a sentence; more end it
_META = re.compile(rb"<meta[^>]+charset\s*=\s*[\"']?([\w-]+)|<\?xml[^>]+encoding=[\"']([\w-]+)", re.I)
_CHUNK = re.compile(
    r"(?P<blank>\s+)|(?P<entity>&(?:\#\d{1,7}|\#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});?)"
    r"|(?P<words>[^\s&]+(?: [^\s&]+)*|&)"
)
HEADING_TAGS = {"h1", "h2", "h3", "h4", "h5", "h6"}


class TagRules(NamedTuple):
    """The tags that hide text, and those that end a paragraph or a line."""

    hidden: frozenset[str]
    paragraphs: frozenset[str]
    lines: frozenset[str]


HTML_RULES = TagRules(
    hidden=frozenset({"script", "style", "template", "noscript", "svg", "iframe", "button", "select", "nav"}),
    paragraphs=frozenset(
        {"p", "div", "section", "article", "main", "header", "footer", "aside", "blockquote", "pre", "table", "ul"}
        | {"ol", "dl", "figure", "form", "hr", "body", *HEADING_TAGS}
    ),
    lines=frozenset({"br", "li", "tr", "dt", "dd", "option", "caption", "figcaption", "thead", "tbody", "tfoot"}),
)
BARE_RULES = HTML_RULES._replace(hidden=frozenset({"script", "style"}))


class HTMLTextExtractor:
    """Collect the visible text of HTML in ``rewriter``, and its title."""

    def __init__(self, source: str, rules: TagRules) -> None:
        self.source = source
        self.rules = rules
        self.rewriter = TextRewriter(source)
        self.title = ""
        self.open_tags: list[str] = []  # of hidden parts, the title, and preformatted text
        self.num_hidden = 0  # of them
        self.gap = ""  # white space before the next word
        self.layout: Layout = "flow"  # of the block
        self.tables: list[HTMLTable] = []
        self.last_end = 0  # of the last word, in the source
        for token in split_tokens(source):
            self.read_token(token)
        self.end_block()

    def read_token(self, token: HTMLToken) -> None:
        """Read a tag or a text."""
        if token.kind == "start":
            self.open_tag(token)
            if token.closes:
                self.close_tag(token.name)
        elif token.kind == "end":
            self.read_break(token.name)
            self.close_tag(token.name)
        elif "title" in self.open_tags[:1] and not self.rules.hidden.issuperset(self.open_tags):
            self.title += unescape(self.source[token.start : token.end])
        elif not self.num_hidden:
            self.read_text(token)

    def open_tag(self, token: HTMLToken) -> None:
        """Record a start tag: its white space, and what it means for the text inside."""
        self.read_break(token.name)
        if token.name in self.rules.hidden or token.name in ("title", "pre"):
            self.open_tags.append(token.name)
            self.num_hidden += token.name in self.rules.hidden
        if self.num_hidden:
            return
        if token.name == "table":
            self.end_block()
            self.tables.append(HTMLTable())
        elif self.tables and token.name == "tr":
            self.tables[-1].begin_row(self.rewriter.size)
        elif self.tables and token.name in ("td", "th"):
            self.tables[-1].begin_cell(token.name == "th", self.source[token.start : token.end])
            self.gap = self.gap if "\n" in self.gap else "\t"
        elif token.name in HEADING_TAGS or token.name == "pre":
            self.end_block()
            self.layout = "lines" if token.name == "pre" else "unit"

    def close_tag(self, name: str) -> None:
        """Close a tag and those inside it that are still open."""
        if name in self.open_tags:
            while (tag := self.open_tags.pop()) != name:
                self.num_hidden -= tag in self.rules.hidden
            self.num_hidden -= name in self.rules.hidden
        if self.num_hidden:
            return
        if name in HEADING_TAGS or name == "pre":
            self.end_block()
        elif name == "tr" and self.tables:
            self.end_block()
            self.tables[-1].end_row()
        elif name == "table" and self.tables:
            self.end_block()
            self.tables.pop()

    def read_break(self, name: str) -> None:
        """Record a tag's white space; outside table cells it ends a block."""
        if name not in self.rules.paragraphs and name not in self.rules.lines:
            return
        if self.tables and self.tables[-1].holds_cell(name, self.rewriter.size):
            self.gap = self.gap or " "
            return
        self.end_block()
        self.gap = "\n\n" if name in self.rules.paragraphs or self.gap == "\n\n" else "\n"

    def end_block(self) -> None:
        """End a block; the white space after it belongs to it."""
        layout = self.layout
        if self.tables:
            layout = self.tables[-1].choose_layout(self.rewriter.size, layout)
        self.rewriter.end_block(layout)
        self.layout = "flow"

    def read_text(self, token: HTMLToken) -> None:
        """Add text of the source; white space collapses outside preformatted text."""
        if "pre" in self.open_tags or token.kind == "cdata":
            self.read_preformatted(token)
            return
        for match in _CHUNK.finditer(self.source, token.start, token.end):
            if match.lastgroup == "words":
                self.begin_words(match.start())
                self.rewriter.copy(match.start(), match.end())
                self.last_end = match.end()
                self.add_header(match.group())
            elif match.lastgroup == "blank" or not (character := unescape(match.group())).strip():
                self.gap = self.gap or " "
            else:
                self.begin_words(match.start())
                self.rewriter.insert(character, match.start())
                self.last_end = match.end()
                self.add_header(character)

    def read_preformatted(self, token: HTMLToken) -> None:
        """Add text with its white space."""
        if not self.source[token.start : token.end].strip() and not self.rewriter.block_text():
            return
        self.begin_words(token.start)
        for match in re.compile(r"[^&]+|&[^\s&;]{0,32};?").finditer(self.source, token.start, token.end):
            character = unescape(match.group()) if token.kind == "text" else match.group()
            if character == match.group():
                self.rewriter.copy(match.start(), match.end())
            else:
                self.rewriter.insert(character, match.start())
        self.last_end = token.end

    def begin_words(self, position: int) -> None:
        """Add the white space before words, and the name of a cell's column."""
        if self.gap and self.rewriter.size:
            line_breaks = self.rewriter.line_of(position) - self.rewriter.line_of(self.last_end)
            if "\n" not in self.gap and line_breaks > MAX_LINE_BREAKS:
                self.end_block()
                line_breaks = 1
            if "\n" not in self.gap and line_breaks:
                self.gap = "\n" * line_breaks
            before = self.tables[-1].separator() if self.tables else ""
            if before:
                self.rewriter.insert(before, self.last_end - 1)
            self.rewriter.add_space(self.gap)
        self.gap = ""
        if self.tables and (name := self.tables[-1].pop_name()):
            self.rewriter.insert(f"{name}: ", position)

    def add_header(self, words: str) -> None:
        """Remember the words of a header cell."""
        if self.tables:
            self.tables[-1].add_words(words)


def read_html(source: Source) -> Iterator[DocumentPart]:
    """Read an HTML file in the encoding that it declares or that is detected."""
    with source.path.open("rb") as file:
        match = _META.search(file.read(4096))
    encoding = detect_encoding(source.path)
    if match and encoding not in ("utf-8", "utf-8-sig", "utf-16", "utf-32"):
        declared = (match[1] or match[2]).decode("ascii")
        with suppress(LookupError):  # Python does not know it
            "".encode(declared)
            encoding = declared
    yield from parse_html(read_text(source.path, MAX_CHARACTERS, encoding), titled=True)


def parse_html(source: str, page: int | None = None, *, titled: bool = False) -> Iterator[DocumentPart]:
    """Yield the text of HTML, after its title if ``titled``.

    If all of the text is hidden, it is read anyway.
    """
    extractor = HTMLTextExtractor(source, HTML_RULES)
    if not extractor.rewriter.size:
        extractor = HTMLTextExtractor(source, BARE_RULES)
    if titled and (title := " ".join(extractor.title.split())):
        yield Title(title)
    if not extractor.rewriter.size:
        yield Note("no text in it" if page is None else f"part {page} has no text")
        return
    yield from extractor.rewriter.make_pieces(page)
