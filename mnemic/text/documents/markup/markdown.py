"""Read Markdown as plain text in which headings, items, table rows and code are units."""

import re
from collections.abc import Iterator
from pathlib import Path

from mnemic.text.chinese import han_fraction
from mnemic.text.documents.markup.plain import read_plain
from mnemic.text.documents.piece import DocumentPart, DocumentPiece, Title
from mnemic.text.sentences import MIN_HAN_FRACTION, Span, split_sentences

_HEADING = re.compile(r"[ \t]*#{1,6}\s+(.*?)[\s#]*")
_ALONE = re.compile(r"[ \t]*(?:\||#{1,6}\s)")  # a line that is a unit by itself: a table row, a heading
_OPENS = re.compile(r"[ \t]*(?:[-*+]\s|\d{1,3}[.)]\s|>)")  # a line that begins a paragraph
_FENCE = re.compile(r"[ \t]*(?:```|~~~)")


def read_markdown(path: Path) -> Iterator[DocumentPart]:
    """Read a Markdown file; the first heading is its title."""
    has_title = False
    for document_part in read_plain(path):
        if isinstance(document_part, DocumentPiece):
            if not has_title and (title := find_heading(document_part.text)):
                yield Title(title)
                has_title = True
            document_part = document_part._replace(cuts=tuple(find_unit_ends(document_part.text)))
        yield document_part


def find_heading(text: str) -> str:
    """Return the text of the first heading; empty if there is none."""
    matches = map(_HEADING.fullmatch, text.splitlines())
    return next((match[1] for match in matches if match), "")


def find_unit_ends(text: str) -> Iterator[int]:
    """Yield the ends of units: sentences of prose, and lines that stand alone."""
    language = "zh" if han_fraction(text) >= MIN_HAN_FRACTION else "en"
    for block, prose in split_blocks(text):
        if prose:
            spans = split_sentences(text[block.start : block.end], language)
            yield from (block.start + span.end for span in spans)
        else:
            yield block.end


def split_blocks(text: str) -> Iterator[tuple[Span, bool]]:
    """Split Markdown into blocks that cover it; yield each span and whether it is prose.

    Fenced code is one block, and not prose.
    """
    start = position = 0
    is_prose, inside_fence = True, False
    for line in text.splitlines(keepends=True):
        end = position + len(line)
        is_fence = _FENCE.match(line) is not None
        is_unit = not inside_fence and _ALONE.match(line) is not None
        if is_unit or (is_fence and not inside_fence) or (not inside_fence and _OPENS.match(line)):
            if position > start:
                yield Span(start, position), is_prose
            start, is_prose = position, not (is_unit or is_fence)
        if is_unit or (is_fence and inside_fence):
            yield Span(start, end), False
            start, is_prose = end, True
        inside_fence = inside_fence != is_fence
        position = end
    if position > start:
        yield Span(start, position), is_prose
