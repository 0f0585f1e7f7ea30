"""Read manual pages (groff's man and mdoc macros), also packed by gzip."""

import gzip
import re
import zlib
from collections.abc import Iterator

from mnemic.text.documents.encoding import read_text
from mnemic.text.documents.markup.line_blocks import LineBlocks, SourceLine, read_source_lines
from mnemic.text.documents.markup.plain import read_plain
from mnemic.text.documents.piece import DocumentError, DocumentPart, Source, Title
from mnemic.text.sentences import Span

MAX_CHARACTERS = 10_000_000
CHARACTERS = {
    "-": "-", "e": "\\", "(em": "—", "(en": "–", "(bu": "•", "(aq": "'", "(dq": '"', "(lq": "“", "(rq": "”",
    "(co": "©", "(tm": "™", "(ti": "~", "(ha": "^", "(mi": "-", "'": "'", "`": "`", " ": " ", "0": " ", "~": " ",
}  # fmt: skip
_ESCAPE = re.compile(r"\\(f\[[^\]\n]{0,10}\]|f\(..|f.|s[-+]?\d{1,2}|\*?\[[^\]\n]{1,30}\]|\*?\(..|\*.|\".*|[^\n])")
_NO_MARKS = re.compile(r"(?!)")
_ARGUMENT = re.compile(r"\"([^\"\n]*)\"?|(\S+)")
_MACRO = re.compile(r"[.'][ \t]*([A-Za-z]{1,3})?[ \t]*")
_PAGE = re.compile(r"^[.'][ \t]*(?:TH|Dd|SH|Sh)\b", re.MULTILINE)
BREAKS = {"PP", "P", "LP", "TP", "IP", "HP", "TQ", "Pp", "It", "Bl", "El", "RS", "RE", "sp", "br", "Ed", "Bd"}
FONTS = {"B", "I", "R", "SM", "SB", "BR", "RB", "BI", "IB", "IR", "RI"}
JOINED_FONTS = {"BR", "RB", "BI", "IB", "IR", "RI"}  # whose arguments are set without blanks between
HIDDEN = {
    "TH",
    "Dd",
    "Dt",
    "Os",
    "de",
    "ds",
    "ie",
    "el",
    "if",
    "nr",
    "so",
    "ad",
    "hy",
    "na",
    "nh",
    "ne",
    "ft",
    "in",
    "ti",
    "ta",
}


class ManScanner:
    """Rewrite a manual page line by line."""

    def __init__(self, source: str) -> None:
        self.blocks = LineBlocks(source, _NO_MARKS)
        self.source = source
        self.title = ""
        self.is_code = False

    def scan(self) -> None:
        """Rewrite the whole source."""
        for line in read_source_lines(self.source):
            macro = _MACRO.match(line.content)
            if macro and line.indent == 0:
                self.scan_macro(line, macro)
            elif line.content:
                self.copy_escaped(line.words if not self.is_code else Span(line.start, line.end))
                self.blocks.end_line(line.end)
            else:
                self.blocks.end_line(line.end)
                self.end_block()
        self.end_block()

    def end_block(self) -> None:
        """End a paragraph: of code its lines stay together, of prose they flow."""
        self.blocks.end("unit" if self.is_code else "flow")

    def scan_macro(self, line: SourceLine, macro: re.Match[str]) -> None:
        """Rewrite a line with a macro."""
        name, start = macro[1] or "", line.words.start + macro.end()
        arguments = [
            Span(*match.span(match.lastindex or 0)) for match in _ARGUMENT.finditer(self.source, start, line.end)
        ]
        if name in ("TH", "Dt") and arguments:
            section = f"({self.source[slice(*arguments[1])]})" if len(arguments) > 1 else ""
            self.title = self.source[slice(*arguments[0])].lower() + section
        if name in ("nf", "EX", "fi", "EE"):
            self.end_block()
            self.is_code = name in ("nf", "EX")
        elif name in ("SH", "SS", "Sh", "Ss") and arguments:
            self.end_block()
            self.blocks.add_heading(Span(arguments[0].start, arguments[-1].end))
        elif name in HIDDEN or not name:
            return
        else:
            if name in BREAKS:
                self.blocks.rewriter.add_space("\n")
                self.end_block()
                arguments = arguments[:1] if name == "IP" else arguments if name == "It" else []
            self.add_arguments(name, arguments, line)

    def add_arguments(self, name: str, arguments: list[Span], line: SourceLine) -> None:
        """Append the arguments of a macro as words."""
        for number, argument in enumerate(arguments):
            if number and name not in JOINED_FONTS:
                self.blocks.rewriter.add_space(" ")
            if name == "Fl":
                self.blocks.rewriter.insert("-", argument.start)
            self.copy_escaped(argument)
        if arguments:
            self.blocks.end_line(line.end)

    def copy_escaped(self, span: Span) -> None:
        """Append words; escapes become the characters they stand for, or nothing."""
        position = span.start
        for match in _ESCAPE.finditer(self.source, *span):
            self.blocks.rewriter.copy(position, match.start())
            self.blocks.rewriter.insert(CHARACTERS.get(match[1].replace("[", "(").rstrip("]"), ""), match.start())
            position = match.end()
        self.blocks.rewriter.copy(position, span.end)


def read_man(source: Source) -> Iterator[DocumentPart]:
    """Read a manual page; a file without its macros is read as plain text."""
    text = unpack(source) if source.suffix == ".gz" else read_text(source.path, MAX_CHARACTERS)
    if not _PAGE.search(text):
        if source.suffix == ".gz":
            raise DocumentError("this is no manual page; unpack it and remember what is inside")
        yield from read_plain(source)
        return
    scanner = ManScanner(text)
    scanner.scan()
    if scanner.title:
        yield Title(scanner.title)
    yield from scanner.blocks.rewriter.make_pieces()


def unpack(source: Source) -> str:
    """Return the text of a packed page; ``DocumentError`` if it is too large or broken."""
    try:
        with gzip.open(source.path) as file:
            content = file.read(MAX_CHARACTERS + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise DocumentError(f"it cannot be unpacked: {error}") from None
    if len(content) > MAX_CHARACTERS:
        raise DocumentError(f"it unpacks to more than {MAX_CHARACTERS:,} bytes, too many for a manual page")
    return content.decode("utf-8", "replace")
