"""Read Org files as plain text: headings, properties, tables with column names, code."""

import re
from collections.abc import Iterator

from mnemic.text.documents.encoding import read_text
from mnemic.text.documents.markup.line_blocks import LineBlocks, SourceLine, read_source_lines
from mnemic.text.documents.markup.markdown import MAX_CHARACTERS, split_cells
from mnemic.text.documents.piece import DocumentPart, Source, Title
from mnemic.text.sentences import Span

_MARKS = re.compile(
    r"\[\[[^\[\]\n]{1,1000}\]\[([^\[\]\n]{1,500})\]\]|\[\[([^\[\]\n]{1,1000})\]\]"
    r"|(?<![\w*])\*(?=\S)([^*\n]{1,500})(?<=\S)\*(?!\w)|(?<![\w/:.])/(?=\S)([^/\n]{1,300})(?<=\S)/(?![\w/])"
    r"|(?<![\w=])=(?=\S)([^=\n]{1,300})(?<=\S)=(?!\w)|(?<![\w~])~(?=\S)([^~\n]{1,300})(?<=\S)~(?!\w)"
    r"|(?<![\w+])\+(?=\S)([^+\n]{1,300})(?<=\S)\+(?!\w)|(?<!\w)_(?=\S)([^_\n]{1,300})(?<=\S)_(?!\w)"
)
_HEADING = re.compile(r"\*+[ \t]+(?:\[#\w\][ \t]+)?(.*?)(?:[ \t]+:[\w@:#%]+:)?")
_SETTING = re.compile(r"#\+(\w+):[ \t]*(.*)", re.IGNORECASE)
_PROPERTY = re.compile(r":([\w-]{1,60}):(?:[ \t]+(.*))?")
_RULE = re.compile(r"\|[-+|]+|-{5,}")
_ITEM = re.compile(r"[-+][ \t]+(?=\S)|(?=\d{1,3}[.)][ \t])")
SHOWN_SETTINGS = {"author", "date", "description", "caption"}


class OrgScanner:
    """Rewrite an Org file line by line."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.blocks = LineBlocks(source, _MARKS)
        self.title = ""
        self.code_end = ""  # the line that ends the code
        self.columns: list[str] = []
        self.header: SourceLine | None = None  # the first row of a table, until its rule

    def scan(self) -> None:
        """Rewrite the whole source."""
        for line in read_source_lines(self.source):
            lower = line.content.lower()
            if self.code_end:
                if lower == self.code_end:
                    self.code_end = ""
                    self.blocks.end("unit")
                else:
                    self.blocks.add_code(line)
            elif line.content.startswith("|"):
                self.scan_row(line)
            else:
                self.end_table()
                self.scan_line(line, lower)
        self.end_table()
        self.blocks.end()

    def scan_line(self, line: SourceLine, lower: str) -> None:
        """Rewrite a line that is neither code nor a table row."""
        start = line.words.start
        heading = _HEADING.fullmatch(line.content) if not line.indent else None
        if heading:
            words = self.blocks.add_heading(Span(start + heading.start(1), start + heading.end(1)))
            self.title = self.title or words
        elif lower.startswith("#+begin_"):
            self.blocks.end()
            name = lower.split()[0][8:]
            self.code_end = f"#+end_{name}" if name in ("src", "example", "export", "latex") else ""
        elif line.content.startswith("#"):
            self.scan_setting(line)
        elif field := _PROPERTY.fullmatch(line.content):
            self.blocks.end()
            if field[2]:
                self.blocks.rewriter.copy(start + 1, start + field.end(1))
                self.blocks.rewriter.insert(": ", start + field.end(1))
                self.blocks.add_words(Span(start + field.start(2), line.end))
        elif not line.content or _RULE.fullmatch(line.content):
            self.blocks.end_line(line.end)
            self.blocks.end()
        else:
            if item := _ITEM.match(line.content):
                self.blocks.end()
                start += item.end()
            self.blocks.add_words(Span(start, line.end))

    def scan_setting(self, line: SourceLine) -> None:
        """Read the title; show some other settings; leave out comments."""
        self.blocks.end()
        setting = _SETTING.fullmatch(line.content)
        if setting and setting[1].lower() == "title":
            self.title = setting[2].strip()
        if setting and setting[1].lower() in SHOWN_SETTINGS | {"title"}:
            self.blocks.add_words(Span(line.words.start + 2, line.end))
            self.blocks.end()

    def scan_row(self, line: SourceLine) -> None:
        """Rewrite a table row; a row before a rule names the columns."""
        if _RULE.fullmatch(line.content):
            if self.header is not None:
                self.columns = [
                    self.source[cell.start : cell.end] for cell in split_cells(self.source, self.header.words)
                ]
            self.header = None
            return
        if self.header is not None:
            self.add_row(self.header)
            self.header = None
        if self.columns:
            self.add_row(line)
        else:
            self.blocks.end()
            self.header = line

    def end_table(self) -> None:
        """Rewrite a row without a rule after it; forget the columns."""
        if self.header is not None:
            self.add_row(self.header)
        self.header, self.columns = None, []

    def add_row(self, line: SourceLine) -> None:
        """Append the cells of a row, each after the name of its column."""
        separator = ""
        for number, cell in enumerate(split_cells(self.source, line.words)):
            name = self.columns[number] if number < len(self.columns) else ""
            if cell.end > cell.start:
                self.blocks.rewriter.insert(separator + (f"{name}: " if name else ""), line.words.start)
                self.blocks.copy_words(cell)
                separator = "; "
        self.blocks.end_line(line.end)
        self.blocks.end("unit")


def read_org(source: Source) -> Iterator[DocumentPart]:
    """Read an Org file; its title is that of its settings or its first heading."""
    scanner = OrgScanner(read_text(source.path, MAX_CHARACTERS))
    scanner.scan()
    if scanner.title:
        yield Title(scanner.title)
    yield from scanner.blocks.rewriter.make_pieces()
