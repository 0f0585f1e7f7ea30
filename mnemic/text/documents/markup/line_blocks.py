"""Rewrite a markup of lines block by block: headings, paragraphs, items, rows and code."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from mnemic.text.documents.rewrite import Layout, TextRewriter
from mnemic.text.sentences import Span


class SourceLine(NamedTuple):
    """A line of a source without its line ending."""

    start: int
    end: int  # of its words
    next: int  # where the next line begins
    content: str  # without white space around it

    @property
    def words(self) -> Span:
        """The span of the line without white space around it."""
        return Span(self.end - len(self.content), self.end)

    @property
    def indent(self) -> int:
        """The number of characters of white space before the words."""
        return self.end - len(self.content) - self.start


def read_source_lines(source: str) -> Iterator[SourceLine]:
    """Yield the lines of a source."""
    start = 0
    while start < len(source):
        after = source.find("\n", start) + 1 or len(source)
        line = source[start:after].rstrip()
        yield SourceLine(start, start + len(line), after, line.lstrip())
        start = after


class LineBlocks:
    """Append lines to a text; a pattern finds marks, its groups the words inside."""

    def __init__(self, source: str, marks: re.Pattern[str]) -> None:
        self.rewriter = TextRewriter(source)
        self.marks = marks

    def add_words(self, span: Span) -> None:
        """Append a line of words without marks, and a line break."""
        self.copy_words(span)
        self.end_line(span.end)

    def add_code(self, line: SourceLine) -> None:
        """Append a line as it is."""
        self.rewriter.copy(line.start, line.end)
        self.end_line(line.end)

    def end_line(self, position: int) -> None:
        """Append a line break, that of the source where it is there."""
        if self.rewriter.source.startswith("\n", position):
            self.rewriter.copy(position, position + 1)
        else:
            self.rewriter.add_space("\n")

    def copy_words(self, span: Span) -> None:
        """Append words without marks; words inside marks may have marks themselves."""
        position = span.start
        for match in self.marks.finditer(self.rewriter.source, *span):
            self.rewriter.copy(position, match.start())
            if match.lastindex and match.end(match.lastindex) - match.start(match.lastindex) < len(match.group()):
                self.copy_words(Span(*match.span(match.lastindex)))
            position = match.end()
        self.rewriter.copy(position, span.end)

    def add_heading(self, span: Span) -> str:
        """Append a heading as a unit after a blank line; return its words."""
        self.end("lines")
        if self.rewriter.size:
            self.rewriter.add_space("\n")
        self.add_words(span)
        words = " ".join(self.rewriter.block_text().split())
        self.end("unit")
        return words

    def end(self, layout: Layout = "lines") -> None:
        """End the block."""
        self.rewriter.end_block(layout)
