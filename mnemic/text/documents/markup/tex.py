"""Read LaTeX as plain text: headings and words without commands; maths as it is."""

import re
import unicodedata
from collections.abc import Iterator

from mnemic.text.documents.encoding import read_text
from mnemic.text.documents.markup.markdown import MAX_CHARACTERS
from mnemic.text.documents.piece import DocumentPart, Source, Title
from mnemic.text.documents.rewrite import TextRewriter

MAX_MATH = 500  # characters of a formula
_HIDDEN = (
    "label|cite[a-zA-Z]*|nocite|ref|eqref|pageref|autoref|includegraphics|usepackage|documentclass|bibliography"
    "|bibliographystyle|input|include|vspace|hspace|setlength|newcommand|renewcommand|providecommand|pagestyle"
    "|thispagestyle|index|hypersetup|definecolor|color|setcounter|addtocounter|newtheorem|multicolumn|cline"
)
_SECTIONS = "part|chapter|section|subsection|subsubsection|paragraph|title|author|date|caption"
_TOKEN = re.compile(
    r"(?P<comment>(?<!\\)%[^\n]*\n?[ \t]*)"
    r"|(?P<verbatim>\\begin\{(?P<code>verbatim|lstlisting|minted|Verbatim)\}(?:\[[^\]\n]{0,200}\])?(?:\{\w{1,20}\})?)"
    r"|(?P<display>\$\$|\\\[|\\begin\{(?:equation|align|gather|multline|eqnarray|displaymath)\*?\})"
    r"|(?P<math>\$|\\\()"
    rf"|(?P<hidden>~?\\(?:{_HIDDEN})\*?(?![a-zA-Z])(?:\[[^\]\n]{{0,300}}\])*(?:\{{[^{{}}\n]{{0,500}}\}})?)"
    r"|(?P<environment>\\(?:begin|end)\{[^{}\n]{1,40}\}(?:\[[^\]\n]{0,100}\])?(?:\{[lcrp|@!>{}. \d\w\\]{0,60}\})?)"
    r"|(?P<link>\\href\{[^{}\n]{0,1000}\})"
    rf"|(?P<section>\\(?:{_SECTIONS})\*?(?:\[[^\]\n]{{0,300}}\])?\{{)"
    r"|(?P<item>\\item(?![a-zA-Z])(?:\[(?P<label>[^\]\n]{0,200})\])?)"
    r"|(?P<row>\\\\(?:\[[^\]\n]{0,20}\])?)"
    r"|(?P<accent>\\[\"'`^~=.Hcvu](?:\{[a-zA-Z]\}|(?<=[\"'`^~=.])[a-zA-Z]))"
    r"|(?P<escape>\\[%&$#_{} ])"
    r"|(?P<command>\\[a-zA-Z]+\*?(?:\[[^\]\n]{0,300}\])?[ \t]?|\\[^a-zA-Z\n])"
    r"|(?P<quote>``|'')|(?P<tie>~)|(?P<cell>[ \t]*&[ \t]*)|(?P<brace>[{}])|(?P<blank>\n[ \t]*\n\s*)"
)
_ACCENTS = {'"': "\u0308", "'": "\u0301", "`": "\u0300", "^": "\u0302", "~": "\u0303", "=": "\u0304", ".": "\u0307",
            "H": "\u030b", "c": "\u0327", "v": "\u030c", "u": "\u0306"}  # fmt: skip
_CLOSING = {"$$": "$$", "\\[": "\\]", "$": "$", "\\(": "\\)"}
_WORDS = {
    "\\ldots": "…", "\\dots": "…", "\\ss": "ß", "\\LaTeX": "LaTeX", "\\TeX": "TeX", "\\euro": "€", "\\S": "§",
    "\\ae": "æ", "\\oe": "œ", "\\o": "ø", "\\aa": "å", "\\textasciitilde": "~", "\\textbackslash": "\\",
}  # fmt: skip


class TexScanner:
    """Rewrite LaTeX from one mark to the next."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.rewriter = TextRewriter(source)
        self.title = ""
        self.heading = ""  # the command whose heading is open
        self.depth = 0  # of braces inside the heading

    def scan(self) -> None:
        """Rewrite the source; before the document begins, only title, author and date."""
        body = max(self.source.find("\\begin{document}"), 0)
        for name in ("title", "author", "date"):
            start = self.source.find(f"\\{name}{{", 0, body)
            if start >= 0:
                self.scan_span(start, body, is_heading=True)
        self.scan_span(body, len(self.source))
        self.rewriter.end_block("flow")

    def scan_span(self, start: int, end: int, *, is_heading: bool = False) -> None:
        """Rewrite a span of the source; ``is_heading``: only the heading it begins with."""
        position = start
        while match := _TOKEN.search(self.source, position, end):
            self.rewriter.copy(position, match.start())
            position = self.scan_token(match, end)
            if (is_heading and not self.heading) or match.group() == "\\end{document}":
                return
        self.rewriter.copy(position, end)
        if self.heading:
            self.end_heading()

    def scan_token(self, match: re.Match[str], end: int) -> int:
        """Rewrite a mark; return the position after it."""
        kind, token = match.lastgroup, match.group()
        if kind == "section":
            self.rewriter.add_space("\n\n")
            self.rewriter.end_block("flow")
            self.heading, self.depth = token, 1
        elif kind == "brace":
            self.scan_brace(token)
        elif match["verbatim"]:
            return self.copy_to(match, f"\\end{{{match['code']}}}", end)
        elif match["display"] or kind == "math":
            closing = _CLOSING.get(token) or token.replace("begin", "end")
            return self.copy_to(match, closing, end)
        elif match["item"]:
            self.end_line()
            if match["label"]:
                self.rewriter.copy(match.start("label"), match.end("label"))
                self.rewriter.insert(": ", match.end("label"))
        elif kind in ("row", "environment", "blank"):
            self.end_line(token)
        else:
            self.insert_character(match)
        return match.end()

    def insert_character(self, match: re.Match[str]) -> None:
        """Append the character that a mark stands for, if any."""
        kind, token, start = match.lastgroup, match.group(), match.start()
        if kind == "accent":
            letter = token.rstrip("}")[-1]
            self.rewriter.insert(unicodedata.normalize("NFC", letter + _ACCENTS[token[1]]), start)
        elif kind == "escape":
            self.rewriter.copy(start + 1, match.end())
        elif kind == "command":
            self.rewriter.insert(_WORDS.get(token.strip(), "\u2009" if token == "\\," else ""), start)
        elif kind in ("quote", "tie", "cell"):
            self.rewriter.insert({"quote": '"', "tie": " ", "cell": "; "}[kind], start)

    def scan_brace(self, brace: str) -> None:
        """Leave out a brace; the one that closes a heading ends it."""
        if self.heading:
            self.depth += 1 if brace == "{" else -1
            if not self.depth:
                self.end_heading()

    def end_heading(self) -> None:
        """End a heading as a unit."""
        words = " ".join(self.rewriter.block_text().split())
        if self.heading.startswith("\\title"):
            self.title = words
        self.rewriter.add_space("\n")
        self.rewriter.end_block("unit")
        self.heading = ""

    def end_line(self, token: str = "") -> None:
        """End a block of prose with the line breaks of the source."""
        if not self.heading:
            self.rewriter.add_space("\n" * max(token.count("\n"), 1))
            self.rewriter.end_block("flow")

    def copy_to(self, match: re.Match[str], closing: str, end: int) -> int:
        """Copy code or maths up to what closes it, if anything does."""
        limit = end if match["verbatim"] else min(match.end() + MAX_MATH, end)
        stop = self.source.find(closing, match.end(), limit)
        if stop < 0:
            return match.end()
        self.rewriter.copy(match.end(), stop)
        if match["verbatim"] or match["display"]:
            self.rewriter.add_space("\n")
            self.rewriter.end_block("unit")
        return stop + len(closing)


def read_tex(source: Source) -> Iterator[DocumentPart]:
    """Read a LaTeX file; its title is that of ``\\\\title``."""
    scanner = TexScanner(read_text(source.path, MAX_CHARACTERS))
    scanner.scan()
    if scanner.title:
        yield Title(scanner.title)
    yield from scanner.rewriter.make_pieces()
