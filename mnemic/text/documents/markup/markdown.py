"""Markdown: as plain text, but headings, items, rows of tables and code are units of their own."""

import re
from collections.abc import Iterator
from pathlib import Path

from mnemic.text.chinese import share_of_han
from mnemic.text.documents.markup.plain import read_plain
from mnemic.text.documents.piece import Part, Piece, Title
from mnemic.text.sentences import CHINESE_FROM, Span, sentences

_HEADING = re.compile(r"[ \t]*#{1,6}\s+(.*?)[\s#]*")
_ALONE = re.compile(r"[ \t]*(?:\||#{1,6}\s)")  # a line that is a unit: a row, a heading
_OPENS = re.compile(r"[ \t]*(?:[-*+]\s|\d{1,3}[.)]\s|>)")  # a line that begins a paragraph
_FENCE = re.compile(r"[ \t]*(?:```|~~~)")


def read_markdown(path: Path) -> Iterator[Part]:
    """The first heading is the title."""
    titled = False
    for part in read_plain(path):
        if isinstance(part, Piece):
            if not titled and (title := heading(part.text)):
                yield Title(title)
                titled = True
            part = part._replace(cuts=tuple(ends(part.text)))
        yield part


def heading(text: str) -> str:
    found = map(_HEADING.fullmatch, text.splitlines())
    return next((one[1] for one in found if one), "")


def ends(text: str) -> Iterator[int]:
    """Where units end: sentences of prose, and lines that stand for themselves."""
    language = "zh" if share_of_han(text) >= CHINESE_FROM else "en"
    for block, prose in blocks(text):
        if prose:
            inside = sentences(text[block.start : block.end], language)
            yield from (block.start + span.end for span in inside)
        else:
            yield block.end


def blocks(text: str) -> Iterator[tuple[Span, bool]]:
    """Stretches that tile the text, and whether each is prose; fenced code is one, and is not."""
    start = place = 0
    prose, fenced = True, False
    for line in text.splitlines(keepends=True):
        end = place + len(line)
        fence = _FENCE.match(line) is not None
        alone = not fenced and _ALONE.match(line) is not None
        if alone or (fence and not fenced) or (not fenced and _OPENS.match(line)):
            if place > start:
                yield Span(start, place), prose
            start, prose = place, not (alone or fence)
        if alone or (fence and fenced):
            yield Span(start, end), False
            start, prose = end, True
        fenced = fenced != fence
        place = end
    if place > start:
        yield Span(start, place), prose
