"""Read Markdown as plain text without marks; every word has its place.

Headings, items of lists, table rows and code are units. A row names its columns:
``Name: Anna; Age: 12``.
"""

import re
from collections.abc import Iterator
from itertools import chain, islice, pairwise
from typing import NamedTuple

from mnemic.text.documents.encoding import read_text
from mnemic.text.documents.markup.inline import Edit, copy_without_marks, strip_marks
from mnemic.text.documents.piece import DocumentPart, Source, Title
from mnemic.text.documents.rewrite import TextRewriter
from mnemic.text.sentences import Span

MAX_CHARACTERS = 50_000_000  # of a file
MAX_FRONT_LINES = 100  # of metadata before the text

_QUOTE = re.compile(r"[ \t]*(?:>[ \t]?)*[ \t]*")
_HEADING = re.compile(r"#{1,6}(?:[ \t]+(?P<text>.*?))??(?:[ \t]+#+)?")
_UNDERLINE = re.compile(r"=+|-{2,}")
_RULE = re.compile(r"([-*_])[ \t]*(?:\1[ \t]*){2,}")
_ITEM = re.compile(r"[-*+][ \t]+(?=\S)|(?=\d{1,4}[.)][ \t])")  # a number stays
_FENCE = re.compile(r"(`{3,}|~{3,})[^`]*")
_DIRECTIVE = re.compile(r"[`~]{3,}\{[\w:-]+\}[ \t]+(\S.*)")
_DELIMITER_ROW = re.compile(r"\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?")
_CELL = re.compile(r"(?:[^|\\`]|\\.|`[^`]*`|`)+", re.DOTALL)
_DEFINITION = re.compile(r"\[[^\[\]^]{1,300}\]:[ \t]*\S.*")
_NAME = re.compile(r"title:[ \t]*[\"']?(.*?)[\"']?")


class MarkdownLine(NamedTuple):
    """A line: its words without indentation and quotation marks, and its line ending."""

    words: Span
    ending: Span


def read_markdown(source: Source) -> Iterator[DocumentPart]:
    """Read a Markdown file; the first heading is its title."""
    yield from parse_markdown(read_text(source.path, MAX_CHARACTERS))


def parse_markdown(text: str) -> Iterator[DocumentPart]:
    """Yield the title and the text of Markdown."""
    scanner = MarkdownScanner(text)
    scanner.scan()
    if scanner.title:
        yield Title(scanner.title)
    yield from scanner.rewriter.make_pieces()


class MarkdownScanner:
    """Rewrite Markdown line by line."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.rewriter = TextRewriter(source)
        self.title = ""
        self.paragraph: list[MarkdownLine] = []
        self.columns: list[str] | None = None  # names of the columns inside a table
        self.fence = ""  # what closes the code
        self.is_comment = False

    def scan(self) -> None:
        """Rewrite the whole source."""
        lines = split_lines(self.source)
        head = list(islice(lines, MAX_FRONT_LINES))
        first = self.scan_front_matter(head)
        for line in chain(head[first:], lines):
            content = self.source[line.words.start : line.words.end]
            if self.fence:
                self.scan_code(line, content)
            elif self.is_comment or content.startswith("<!--"):
                self.scan_comment(line, content)
            else:
                self.scan_line(line, content)
        self.end_paragraph()

    def scan_front_matter(self, lines: list[MarkdownLine]) -> int:
        """Read metadata between two lines of dashes; return the number of its lines."""
        contents = [self.source[line.words.start : line.words.end] for line in lines]
        if contents[:1] != ["---"] or "---" not in contents[1:]:
            return 0
        size = contents.index("---", 1) + 1
        for line, content in zip(lines[1 : size - 1], contents[1:]):
            self.rewriter.copy(line.words.start, line.ending.end)
            if (match := _NAME.fullmatch(content)) and match[1]:
                self.title = self.title or match[1]
        self.rewriter.end_block("lines")
        return size

    def scan_line(self, line: MarkdownLine, content: str) -> None:
        """Rewrite a line that is neither code nor a comment."""
        if not content or _DEFINITION.fullmatch(content):
            self.end_paragraph()
            self.rewriter.copy(*line.ending)
        elif (match := _FENCE.fullmatch(content)) is not None:
            self.end_paragraph()
            self.fence = match[1]
            if directive := _DIRECTIVE.fullmatch(content):  # of Sphinx: what follows its name is text
                self.rewriter.copy(line.words.start + directive.start(1), line.ending.end)
                self.rewriter.end_block("unit")
        elif (match := _HEADING.fullmatch(content)) is not None:
            self.end_paragraph()
            start, end = match.span("text") if match["text"] else (0, 0)
            words = Span(line.words.start + start, line.words.start + end)
            self.add_heading([line._replace(words=words)])
        elif self.columns is not None and "|" in content:
            self.add_row(line, self.columns)
        elif self.paragraph and "|" in content and _DELIMITER_ROW.fullmatch(content):
            self.begin_table()
        elif self.paragraph and _UNDERLINE.fullmatch(content):
            heading, self.paragraph = self.paragraph, []
            self.add_heading(heading)
        elif _RULE.fullmatch(content):
            self.end_paragraph()
        else:
            self.add_words(line, content)

    def add_words(self, line: MarkdownLine, content: str) -> None:
        """Add a line to the paragraph; an item or a row begins a new one."""
        item = _ITEM.match(content)
        if item or self.columns is not None or (self.paragraph and self.is_row(self.paragraph[0]) != self.is_row(line)):
            self.end_paragraph()
        start = line.words.start + (item.end() if item else 0)
        self.paragraph.append(line._replace(words=Span(start, line.words.end)))

    def is_row(self, line: MarkdownLine) -> bool:
        """Check whether a line begins as rows of tables do."""
        return self.source.startswith("|", line.words.start)

    def end_paragraph(self) -> None:
        """Rewrite the lines of the paragraph, if there is one; a table ends, too."""
        lines, self.paragraph, self.columns = self.paragraph, [], None
        if lines and self.is_row(lines[0]):
            for line in lines:
                self.add_row(line, [])
        elif lines:
            self.copy_lines(lines)
            self.rewriter.end_block("lines")

    def add_heading(self, lines: list[MarkdownLine]) -> None:
        """Rewrite a heading; the first is the title."""
        self.copy_lines(lines)
        words = self.rewriter.block_text().split()
        self.rewriter.end_block("unit")
        self.title = self.title or " ".join(words)

    def copy_lines(self, lines: list[MarkdownLine]) -> None:
        """Append the words of lines, without the marks before each."""
        prefixes = [Edit(line.ending.end, after.words.start) for line, after in pairwise(lines)]
        blanks = [Edit(line.words.end, line.ending.start) for line in lines[:-1]]
        copy_without_marks(self.rewriter, lines[0].words.start, lines[-1].words.end, [*prefixes, *blanks])
        self.rewriter.copy(*lines[-1].ending)

    def begin_table(self) -> None:
        """Take the last line of the paragraph as the header of a table."""
        header = self.paragraph.pop()
        self.end_paragraph()
        self.columns = [strip_marks(self.source, *cell) for cell in split_cells(self.source, header.words)]

    def add_row(self, line: MarkdownLine, columns: list[str]) -> None:
        """Rewrite a row of a table: its cells, each after the name of its column."""
        separator = ""
        for number, cell in enumerate(split_cells(self.source, line.words)):
            name = columns[number] if number < len(columns) else ""
            if cell.end > cell.start:
                self.rewriter.insert(separator + (f"{name}: " if name else ""), line.words.start)
                copy_without_marks(self.rewriter, *cell)
                separator = "; "
        if separator:
            self.rewriter.copy(*line.ending)
            self.rewriter.end_block("unit")

    def scan_code(self, line: MarkdownLine, content: str) -> None:
        """Copy a line of code as it is, or end the code."""
        if content.startswith(self.fence) and not content.strip(self.fence[0]):
            self.fence = ""
            self.rewriter.end_block("unit")
        else:
            start = self.source.rfind("\n", 0, line.words.start) + 1
            self.rewriter.copy(start, line.ending.end)

    def scan_comment(self, line: MarkdownLine, content: str) -> None:
        """Leave out a comment; what follows its end on the line is text."""
        self.end_paragraph()
        _, mark, rest = content.partition("-->")
        self.is_comment = not mark
        if rest.strip():
            words = Span(line.words.end - len(rest.lstrip()), line.words.end)
            self.scan_line(line._replace(words=words), rest.lstrip())


def split_lines(source: str) -> Iterator[MarkdownLine]:
    """Yield the lines of a source."""
    start = 0
    while start < len(source):
        end = source.find("\n", start) + 1 or len(source)
        prefix = _QUOTE.match(source, start, end)
        assert prefix is not None, "an empty prefix matches"
        first = prefix.end()
        last = start + len(source[start:end].rstrip())
        ending = end - len(source[start:end]) + len(source[start:end].rstrip("\r\n"))
        yield MarkdownLine(Span(min(first, last), last), Span(ending, end))
        start = end


def split_cells(source: str, row: Span) -> list[Span]:
    """Return the cells of a table row; a bar inside code is no border."""
    start = row.start + (source[row.start] == "|")
    cells = []
    while start < row.end:
        match = _CELL.match(source, start, row.end)
        end = match.end() if match else start
        content = source[start:end]
        first = start + len(content) - len(content.lstrip())
        cells.append(Span(min(first, end), max(start + len(content.rstrip()), min(first, end))))
        start = end + 1
    return cells
