"""Find the marks inside a line of Markdown, so that only its words are left.

What is not a mark stays: ``snake_case``, ``2 * 3``, a bracket without a link. A mark without its
partner stays, too. Every search has a bound, so that time grows with the text alone.
"""

import re
from collections.abc import Iterator
from html import unescape
from typing import NamedTuple

from mnemic.text.documents.rewrite import TextRewriter

_TOKEN = re.compile(
    r"(?P<escape>\\[!-/:-@\[-`{-~])"
    r"|(?P<ticks>`+)"
    r"|(?P<wiki>!?\[\[(?:[^\[\]|\n]{1,300}\|)?[^\[\]|\n]{1,300}\]\])"
    r"|(?P<footnote>\[\^[^\[\]\s]{1,100}\]:?)"
    r"|(?P<opening>!?\[)"
    r"|(?P<closing>\])"
    r"|(?P<address><(?:https?://|mailto:)?[^\s<>]{1,2000}[.@:][^\s<>]{1,2000}>)"
    r"|(?P<tag><!--.{0,2000}?-->|</?[a-zA-Z][^<>]{0,500}>)"
    r"|(?P<entity>&(?:\#\d{1,7}|\#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]\w{1,30});)"
    r"|(?P<run>\*+|_+|~~+)",
    re.DOTALL,
)
_TARGET = re.compile(
    r"\]\([ \t]*(?:<[^<>\n]{0,2000}>|[^\s()<]{0,2000}(?:\([^\s()]{0,500}\)[^\s()]{0,500}){0,5})"
    r"(?:\s+(?:\"[^\"]{0,300}\"|'[^']{0,300}'))?[ \t]*\)|\]\[[^\[\]\n]{0,300}\]"
)


class Edit(NamedTuple):
    """Words that replace a span of the source; none delete it."""

    start: int
    end: int
    text: str = ""


class Delimiter(NamedTuple):
    """What is left of a run of emphasis marks that may open a span."""

    start: int
    end: int


class InlineScanner:
    """Collect the edits that remove the marks of a span of Markdown."""

    def __init__(self, source: str, start: int, end: int) -> None:
        self.source, self.start, self.end = source, start, end
        self.edits: list[Edit] = []
        self.brackets: list[Edit] = []  # opening ones
        self.runs: dict[str, list[Delimiter]] = {"*": [], "_": [], "~": []}
        self.ticks = find_ticks(source, start, end)

    def find_edits(self) -> list[Edit]:
        """Return the edits in order, without overlaps."""
        position = self.start
        while match := _TOKEN.search(self.source, position, self.end):
            position = self.scan_token(match)
        edits: list[Edit] = []
        for edit in sorted(self.edits):
            if not edits or edit.start >= edits[-1].end:
                edits.append(edit)
        return edits

    def scan_token(self, match: re.Match[str]) -> int:
        """Record the edits of a mark; return the position to go on from."""
        kind, start, end = match.lastgroup, match.start(), match.end()
        if kind == "escape":
            self.edits.append(Edit(start, start + 1))
        elif kind == "ticks":
            return self.scan_code(start, end)
        elif kind == "wiki":
            name_start = start + max(match.group().rfind("|") + 1, match.group().find("[[") + 2)
            self.edits += [Edit(start, name_start), Edit(end - 2, end)]
        elif kind in ("footnote", "tag"):
            self.edits.append(Edit(start, end, "\n" * match.group().count("\n")))
        elif kind == "opening":
            self.brackets.append(Edit(start, end))
        elif kind == "closing":
            return self.scan_link(start, end)
        elif kind == "address":
            self.edits += [Edit(start, start + 1), Edit(end - 1, end)]
        elif kind == "entity":
            self.edits.append(Edit(start, end, unescape(match.group())))
        else:
            self.scan_run(start, end)
        return end

    def scan_code(self, start: int, end: int) -> int:
        """Remove the backticks around code; what is inside has no marks."""
        closing = self.ticks.get(start)
        if closing is None:
            return end
        self.edits += [Edit(start, end), Edit(closing, closing + end - start)]
        return closing + end - start

    def scan_link(self, start: int, end: int) -> int:
        """Remove the brackets and the address of a link."""
        if not self.brackets:
            return end
        opening = self.brackets.pop()
        target = _TARGET.match(self.source, start, self.end)
        if target is None:
            return end
        self.edits += [opening, Edit(start, target.end(), "\n" * target.group().count("\n"))]
        return target.end()

    def scan_run(self, start: int, end: int) -> None:
        """Close emphasis with a run of marks; the rest of it may open some."""
        mark = self.source[start]
        can_open, can_close = self.find_flanks(start, end)
        stack = self.runs[mark]
        while can_close and stack and start < end:
            opening = stack.pop()
            size = min(opening.end - opening.start, end - start)
            self.edits += [Edit(opening.end - size, opening.end), Edit(start, start + size)]
            start += size
            if opening.end - size > opening.start:
                stack.append(Delimiter(opening.start, opening.end - size))
        if can_open and start < end:
            stack.append(Delimiter(start, end))

    def find_flanks(self, start: int, end: int) -> tuple[bool, bool]:
        """Return whether a run of marks may open and may close emphasis (CommonMark 6.2)."""
        before = self.source[start - 1] if start > self.start else " "
        after = self.source[end] if end < self.end else " "
        is_left = not after.isspace() and (is_word(after) or not is_word(before))
        is_right = not before.isspace() and (is_word(before) or not is_word(after))
        if self.source[start] == "_":  # never inside a word
            return is_left and not (is_right and is_word(before)), is_right and not (is_left and is_word(after))
        return is_left, is_right


def is_word(character: str) -> bool:
    """Check whether a character is neither a blank nor punctuation."""
    return character.isalnum()


def find_ticks(source: str, start: int, end: int) -> dict[int, int]:
    """Map each run of backticks to the next one of the same length."""
    next_runs: dict[int, int] = {}
    closing: dict[int, int] = {}
    for match in reversed(list(re.compile("`+").finditer(source, start, end))):
        size = match.end() - match.start()
        if size in closing:
            next_runs[match.start()] = closing[size]
        closing[size] = match.start()
    return next_runs


def copy_without_marks(rewriter: TextRewriter, start: int, end: int, extra: list[Edit] | None = None) -> None:
    """Append the words of a span of Markdown; ``extra`` are edits outside its marks."""
    position = start
    for edit in merge_edits(InlineScanner(rewriter.source, start, end).find_edits(), extra or []):
        rewriter.copy(position, edit.start)
        rewriter.insert(edit.text, edit.start)
        position = edit.end
    rewriter.copy(position, end)


def merge_edits(marks: list[Edit], extra: list[Edit]) -> Iterator[Edit]:
    """Yield both lists of edits in order, leaving out what overlaps."""
    position = -1
    for edit in sorted([*marks, *extra]):
        if edit.start >= position:
            yield edit
            position = edit.end


def strip_marks(source: str, start: int, end: int) -> str:
    """Return the words of a span of Markdown."""
    rewriter = TextRewriter(source[start:end])
    copy_without_marks(rewriter, 0, end - start)
    return "".join(rewriter.parts).strip()
