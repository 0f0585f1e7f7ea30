"""Read reStructuredText as plain text: titles, paragraphs, fields, directives, code."""

import re
from collections.abc import Iterator
from itertools import pairwise

from mnemic.text.documents.encoding import read_text
from mnemic.text.documents.markup.line_blocks import LineBlocks, SourceLine, read_source_lines
from mnemic.text.documents.markup.markdown import MAX_CHARACTERS
from mnemic.text.documents.piece import DocumentPart, Source, Title
from mnemic.text.sentences import Span

_MARKS = re.compile(
    r"``([^`\n]{1,500})``|:[\w:+-]{1,40}:`([^`<\n]{1,300}?)\s*(?:<[^<>`\n]{0,500}>)?`"
    r"|`([^`<\n]{1,300}?)\s*<[^<>`\n]{0,1000}>`__?|`([^`\n]{1,500})`_{0,2}"
    r"|\*\*(?=\S)([^*\n]{1,500})\*\*|(?<!\w)\*(?=\S)([^*\n]{1,500})\*(?!\w)|\[[#*\d]{1,4}\]_()"
)
_UNDERLINE = re.compile(r"([!-/:-@\[-`{-~])\1{2,}")
_BORDER = re.compile(r"[+=-]{2,}[+=\- ]*")
_DIRECTIVE = re.compile(r"\.\. ([\w:-]+)::[ \t]*")
_EXPLICIT = re.compile(r"\.\.(?:\s+|$)(?:\[[^\]]{1,100}\][ \t]+)?")
_FIELD = re.compile(r":([^:\n]{1,60}):(?:[ \t]+|$)")
_ITEM = re.compile(r"[-*+•][ \t]+(?=\S)|(?=(?:\d{1,3}|#|[a-zA-Z])[.)][ \t])")
CODE_DIRECTIVES = {"code", "code-block", "sourcecode", "literalinclude", "parsed-literal", "math", "doctest"}
HIDDEN_DIRECTIVES = {"toctree", "contents", "image", "raw", "include", "index", "highlight", "currentmodule"}


class RestScanner:
    """Rewrite reStructuredText line by line."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.blocks = LineBlocks(source, _MARKS)
        self.title = ""
        self.code_indent = -1  # of the line that began code or a hidden part; -1: outside
        self.is_hidden = False
        self.in_directive = False

    def scan(self) -> None:
        """Rewrite the whole source."""
        end = SourceLine(len(self.source), len(self.source), len(self.source), "")
        is_title = False
        for line, after in pairwise([*read_source_lines(self.source), end]):
            if is_title:
                is_title = False  # the underline
            elif self.is_title(line, after):
                self.title = self.title or ""
                heading = self.blocks.add_heading(line.words)
                self.title = self.title or heading
                is_title, self.code_indent = True, -1
            else:
                self.scan_line(line)
        self.blocks.end()

    def is_title(self, line: SourceLine, after: SourceLine) -> bool:
        """Check whether a line is underlined."""
        is_words = line.content and not _UNDERLINE.fullmatch(line.content) and not line.content.startswith("..")
        is_long = len(after.content) >= min(len(line.content), 4)
        return bool(is_words and is_long and not after.indent and _UNDERLINE.fullmatch(after.content))

    def scan_line(self, line: SourceLine) -> None:
        """Rewrite a line that is no title."""
        if self.code_indent >= 0 and (not line.content or line.indent > self.code_indent):
            if not self.is_hidden:
                self.blocks.add_code(line)
            return
        if self.code_indent >= 0:
            self.blocks.end("unit")
            self.code_indent, self.is_hidden = -1, False
        if not line.content:
            self.blocks.end_line(line.end)
            self.blocks.end()
        elif _UNDERLINE.fullmatch(line.content) or _BORDER.fullmatch(line.content):
            self.blocks.end()
        elif line.content.startswith(".."):
            self.scan_explicit(line)
        else:
            self.scan_words(line)

    def scan_explicit(self, line: SourceLine) -> None:
        """Rewrite a directive or a footnote; leave out a comment or a target."""
        self.blocks.end()
        start = line.words.start
        directive, explicit = _DIRECTIVE.match(line.content), _EXPLICIT.match(line.content)
        if directive:
            name = directive[1]
            self.in_directive = True
            self.is_hidden = name in HIDDEN_DIRECTIVES
            if self.is_hidden or name in CODE_DIRECTIVES:
                self.code_indent = line.indent
            elif directive.end() < len(line.content):
                self.blocks.add_words(Span(start + directive.end(), line.end))
        elif explicit and "[" in explicit.group():
            self.blocks.add_words(Span(start + explicit.end(), line.end))
        else:
            self.code_indent, self.is_hidden = line.indent, True

    def scan_words(self, line: SourceLine) -> None:
        """Rewrite a line of text: a field, an item, a table row, or prose."""
        start, end = line.words
        field, item = _FIELD.match(line.content), _ITEM.match(line.content)
        self.in_directive = self.in_directive and line.indent > 0
        if field:
            if self.in_directive and line.indent:
                return  # an option
            self.blocks.end()
            self.blocks.rewriter.copy(start + 1, start + field.end(1))
            self.blocks.rewriter.insert(": ", start + field.end(1))
            self.blocks.add_words(Span(start + field.end(), end))
            return
        if item:
            self.blocks.end()
            start += item.end()
        if line.content.endswith("::"):
            self.code_indent = line.indent
            self.blocks.add_words(Span(start, end - (2 if line.content == "::" else 1)))
            self.blocks.end()
            return
        self.blocks.add_words(Span(start, end))


def read_rest(source: Source) -> Iterator[DocumentPart]:
    """Read a reStructuredText file; the first section's name is its title."""
    scanner = RestScanner(read_text(source.path, MAX_CHARACTERS))
    scanner.scan()
    if scanner.title:
        yield Title(scanner.title)
    yield from scanner.blocks.rewriter.make_pieces()
