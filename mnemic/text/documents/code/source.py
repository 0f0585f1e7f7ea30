"""Read source code: functions and blocks as units, comments and docstrings as prose.

A block begins after a blank line, with a line that is not indented or that defines something. The
marks of comments are left out; everything else stays as it is.
"""

import re
from collections.abc import Iterator

from mnemic.text.documents.code.languages import HASH, STYLE_OF_SUFFIX, CommentStyle
from mnemic.text.documents.encoding import read_text
from mnemic.text.documents.markup.line_blocks import SourceLine, read_source_lines
from mnemic.text.documents.piece import DocumentPart, DocumentPiece, Source
from mnemic.text.documents.rewrite import TextRewriter, split_pieces_at
from mnemic.text.sentences import Span

MAX_CHARACTERS = 20_000_000
MIN_BLOCK_LENGTH = 300  # characters; shorter blocks are read together
_DEFINITION = re.compile(
    r"(?:@|(?:export|default|public|private|protected|internal|static|final|abstract|async|inline|pub(?:\([^)\n]{1,20}\))?"
    r"|override|open|suspend|unsafe|virtual|const|local)\s+)*"
    r"(?:def|class|function|func|fun|fn|sub|struct|enum|interface|trait|impl|module|namespace|object|record|type"
    r"|CREATE|INSERT|SELECT|void|int|double|float|bool|string|String)\b"
)
_OPENING_MARK = re.compile(r"[*!/#;%-]*[ \t]?")
_STAR = re.compile(r"\*(?!/)[ \t]?")


class CodeScanner:
    """Rewrite source code line by line."""

    def __init__(self, source: str, style: CommentStyle) -> None:
        self.source, self.style = source, style
        self.rewriter = TextRewriter(source)
        self.part_ends: list[int] = []  # where functions and blocks end
        self.is_comment = False  # what the block is
        self.closing = ""  # the mark that ends a comment of several lines
        self.is_blank = True  # the line before

    def scan(self) -> None:
        """Rewrite the whole source."""
        for line in read_source_lines(self.source):
            if not line.content:
                self.rewriter.copy(line.start, line.next)
                self.is_blank = True
                continue
            if self.is_blank and not self.closing and (line.indent == 0 or _DEFINITION.match(line.content)):
                self.end_part()
            if self.closing:
                self.scan_comment(line, line.words.start)
            else:
                self.scan_line(line)
            self.is_blank = False
        self.end_part()

    def scan_line(self, line: SourceLine) -> None:
        """Rewrite a line outside comments; a comment and code are different blocks."""
        start, opening = line.words.start, ""
        for opening, closing in self.style.blocks:
            if line.content.startswith(opening):
                self.begin(is_comment=True)
                self.closing = closing
                self.scan_comment(line, start + len(opening))
                return
        marks = [mark for mark in self.style.lines if line.content.startswith(mark)]
        self.begin(is_comment=bool(marks))
        if marks:
            first = _OPENING_MARK.match(self.source, start + len(marks[0]), line.end)
            self.copy_line(Span(first.end() if first else start, line.end), line)
        else:
            self.copy_line(Span(line.start, line.end), line)

    def scan_comment(self, line: SourceLine, start: int) -> None:
        """Rewrite a line of a comment, up to the mark that ends it."""
        stop = self.source.find(self.closing, start, line.end)
        end = line.end if stop < 0 else stop
        star = _STAR.match(self.source, start, end) if self.closing == "*/" else None
        start = star.end() if star else start
        self.copy_line(Span(start, max(end, start)), line)
        if stop >= 0:
            self.closing = ""
            self.end_block()

    def copy_line(self, span: Span, line: SourceLine) -> None:
        """Append a span of a line, and its line break."""
        self.rewriter.copy(*span)
        self.rewriter.copy(line.end, line.next)

    def begin(self, *, is_comment: bool) -> None:
        """Begin a block of comments or of code, unless it goes on."""
        if is_comment != self.is_comment or (self.is_blank and not is_comment):
            self.end_block()
        self.is_comment = is_comment

    def end_block(self) -> None:
        """End a block: comments are prose, code is a unit."""
        self.rewriter.end_block("lines" if self.is_comment else "unit")

    def end_part(self) -> None:
        """End a function or block of the file."""
        self.end_block()
        self.is_comment = False
        self.part_ends.append(self.rewriter.size)

    def make_pieces(self) -> Iterator[DocumentPiece]:
        """Yield a piece per function or block; short ones are joined."""
        ends, start = [], 0
        for end in self.part_ends:
            if end - start >= MIN_BLOCK_LENGTH:
                ends.append(end)
                start = end
        if self.rewriter.block_ends:
            ends = [*(end for end in ends if end < self.rewriter.size), self.rewriter.size]
            text = "".join(self.rewriter.parts)
            yield from split_pieces_at(text, self.rewriter.anchors, self.rewriter.cuts, ends, None, min_length=1)


def read_code(source: Source) -> Iterator[DocumentPart]:
    """Read a source file."""
    scanner = CodeScanner(read_text(source.path, MAX_CHARACTERS), STYLE_OF_SUFFIX.get(source.suffix, HASH))
    scanner.scan()
    yield from (piece for piece in scanner.make_pieces() if piece.text.strip())
