"""Find the units of a text: sentences of prose, and lines that stand alone.

A heading, an item of a list, a table row, a "Key: value" line and fenced code are units by
themselves. Lines of prose that an editor or a printer wrapped belong together: on such a line the
next word would not have fitted. Every other line break is one that somebody wanted.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from mnemic.text.chinese import HAN, IDEOGRAPH, han_fraction
from mnemic.text.sentences import MIN_HAN_FRACTION, Span, split_sentences

MAX_BLOCK_LENGTH = 8192  # characters; in a longer block, sentences are found in spans of this length
MIN_WRAPPED_WIDTH, MAX_WRAPPED_WIDTH = 40, 200  # characters of a line that may have been wrapped
WRAPPED_FILL = 0.9  # of the width, by a wrapped line and the next word
RAGGED_FILL = 0.6  # the same, for a line among others that are wrapped
MIN_WRAPPED_FRACTION = 0.6  # of the lines; with fewer, the breaks are those of a list

_PREFIX = re.compile(r"[ \t]*((?:>[ \t]?)*)[ \t]*")  # indentation and quotation marks of an e-mail
_FENCE = re.compile(r"[ \t]*(?:```|~~~)")
_RULE = re.compile(r"([-=*_~#+^\"'`:.])[ \t]*(?:\1[ \t]*){2,}|\+[-=+]+\+")  # an underline or a border
_ALONE = re.compile(r"#{1,6}[ \t]|\||\S.*?(?:[ \t]*\t[ \t]*|[ \t]{3,})\S")  # a heading, a table row
_ITEM = re.compile(
    r"(?:[-*+–—]\s|[•◦▪‣·☐☑✓✗]\s*|\(?(?:\d{1,3}|[a-zA-Z])[.)]\s|[（(]?[一二三四五六七八九十]{1,3}[、）)]|\d{1,3}、)\s*(?=\S)"
)
_KEY = re.compile(
    r"[^\Wa-z][^:：!?;。！？；]{0,40}:[ \t]+\S"  # Monthly rent: 700
    r"|[\w.-]{1,40}(?: [\w.-]{1,40}){0,2}:[ \t]+\S"  # user name: anna
    rf"|[\w ]{{1,12}}：[ \t]*\S|[{HAN}]{{1,8}}:[ \t]*\S"  # 地址：北京
)
_STOP = re.compile(r"[.!?。！？…][\"'”’»)\]」』]*\s*\Z")
_INNER_STOP = re.compile(r"[.!?…؟।][\"'”’»)\]」』*_]*\s+\S|[。！？…][”’」』）]*\s*\S")


class TextLine(NamedTuple):
    """A line of a text that is not blank."""

    start: int
    end: int  # after its line ending
    content: str  # without indentation, quotation marks and white space at its end
    indent: int
    depth: int  # of quotation marks

    @property
    def width(self) -> int:
        """The number of columns: a Chinese character has two."""
        return len(self.content) + len(IDEOGRAPH.findall(self.content))


class UnitBlock(NamedTuple):
    """Lines that belong together; prose may have several sentences, and so several units."""

    span: Span
    is_prose: bool


def find_unit_ends(text: str) -> tuple[int, ...]:
    """Find the ends of the units that cover a text.

    >>> text = "Deductible: 150 euros\\nSum insured: 82,000 euros\\nIt is paid in May. We agreed."
    >>> [text[end:].split("\\n")[0] for end in find_unit_ends(text)]
    ['Sum insured: 82,000 euros', 'It is paid in May. We agreed.', 'We agreed.', '']
    """
    language = detect_language(text)
    ends: list[int] = []
    for span, is_prose in split_blocks(text):
        ends += find_sentence_ends(text, span, language) if is_prose else [span.end]
    return tuple(ends)


def detect_language(text: str) -> str:
    """Return "zh" for a Chinese text and "en" for any other."""
    return "zh" if han_fraction(text) >= MIN_HAN_FRACTION else "en"


def find_sentence_ends(text: str, span: Span, language: str) -> list[int]:
    """Find the ends of a span's sentences; line breaks are blanks."""
    ends: list[int] = []
    for start, end in split_long_span(text, span, MAX_BLOCK_LENGTH):
        content = text[start:end]
        if not _INNER_STOP.search(content):
            ends.append(end)
            continue
        flat = content.replace("\r", " ").replace("\n", " ")
        item = _ITEM.match(flat, len(flat) - len(flat.lstrip()))
        first_end = item.end() if item else 0  # the number of an item is no sentence
        ends += [start + sentence.end for sentence in split_sentences(flat, language) if sentence.end > first_end]
    return ends


def split_long_span(text: str, span: Span, max_length: int) -> Iterator[Span]:
    """Split a span into spans of at most ``max_length`` characters, if possible at blanks."""
    start = span.start
    while span.end - start > max_length:
        window = text[start : start + max_length]
        end = start + (max(window.rfind(" "), window.rfind("\n")) + 1 or max_length)
        yield Span(start, end)
        start = end
    yield Span(start, span.end)


def split_blocks(text: str) -> Iterator[UnitBlock]:
    """Split a text into blocks that cover it, each with the blank lines after it."""
    spans = [UnitBlock(Span(lines[0].start, lines[-1].end), is_prose) for lines, is_prose in group_lines(text)]
    starts = [0, *(block.span.start for block in spans[1:]), len(text)]
    for block, start, end in zip(spans, starts, starts[1:]):
        yield UnitBlock(Span(start, end), block.is_prose)
    if text and not spans:
        yield UnitBlock(Span(0, len(text)), False)


def group_lines(text: str) -> Iterator[tuple[list[TextLine], bool]]:
    """Yield the lines of each block, and whether it is prose."""
    paragraph: list[TextLine] = []
    fence: list[TextLine] = []
    for line in read_lines(text):
        is_fence = line is not None and _FENCE.match(line.content) is not None
        if fence:
            if line is not None:
                fence.append(line)
            if is_fence:
                yield fence, False
                fence = []
            continue
        if line is not None and not is_fence:
            paragraph.append(line)
            continue
        yield from split_paragraph(paragraph)
        paragraph = []
        if line is not None:
            fence = [line]
    yield from split_paragraph(paragraph)
    if fence:
        yield fence, False


def read_lines(text: str) -> Iterator[TextLine | None]:
    """Yield the lines of a text; None for a blank line."""
    start = 0
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        line = text[start:end].rstrip()
        prefix = _PREFIX.match(line)
        assert prefix is not None, "an empty prefix matches"
        content = line[prefix.end() :]
        indent, depth = prefix.end() - len(prefix[1]), prefix[1].count(">")
        yield TextLine(start, end, content, indent, depth) if content else None
        start = end


def split_paragraph(lines: Sequence[TextLine]) -> Iterator[tuple[list[TextLine], bool]]:
    """Split lines without a blank one between them where somebody wanted a break."""
    breaks = find_line_breaks(lines)
    block: list[TextLine] = []
    for line, is_break in zip(lines, [*breaks, True]):
        block.append(line)
        if is_break:
            yield block, not stands_alone(block[0].content)
            block = []


def find_line_breaks(lines: Sequence[TextLine]) -> list[bool]:
    """Decide for each line but the last whether a unit ends with it."""
    if len(lines) < 2:
        return []
    widths = sorted(line.width for line in lines)
    width = widths[-1] if widths[-1] <= 1.3 * widths[-2] else widths[-2]  # one line may be a long address
    pairs = list(pairwise(lines))
    inner = [(line, after) for line, after in pairs if not is_list_break(line.content, after.content)]
    num_full = sum(is_full(line, after, WRAPPED_FILL * width) for line, after in inner)
    is_wrapped = num_full >= max(MIN_WRAPPED_FRACTION * len(inner), 1)
    fill = RAGGED_FILL * width if is_wrapped else float("inf")
    breaks: list[bool] = []
    first = lines[0]  # of the unit
    for line, after in pairs:
        breaks.append(is_line_break(first, line, after, fill))
        first = after if breaks[-1] else first
    return breaks


def is_line_break(first: TextLine, line: TextLine, after: TextLine, fill: float) -> bool:
    """Check whether a unit that began with ``first`` ends between two lines.

    ``fill`` is the width from which on a line counts as wrapped.
    """
    if _RULE.fullmatch(after.content):
        return False  # it underlines the line before it
    if after.depth != line.depth or stands_alone(line.content) or stands_alone(after.content):
        return True
    is_wrapped = is_full(line, after, fill)
    if _ITEM.match(after.content):
        return True
    if _KEY.match(after.content):
        return bool(not is_wrapped or _STOP.search(line.content) or _KEY.match(first.content))
    if after.indent > first.indent and opens_unit(first.content):
        return False  # the item or the value goes on
    if after.content[0].islower() and not _STOP.search(line.content):
        return False
    return not is_wrapped


def is_list_break(content: str, next_content: str) -> bool:
    """Check whether an item, a row or a further key begins after a line break."""
    is_item = stands_alone(next_content) or _ITEM.match(next_content)
    return bool(is_item or (_KEY.match(content) and _KEY.match(next_content)))


def is_full(line: TextLine, after: TextLine, fill: float) -> bool:
    """Check whether the first word of the next line did not fit on a line."""
    word = 2 if IDEOGRAPH.match(after.content) else len(after.content.split(maxsplit=1)[0]) + 1
    return MIN_WRAPPED_WIDTH <= line.width <= MAX_WRAPPED_WIDTH and line.width + word > fill


def opens_unit(content: str) -> bool:
    """Check whether a line stands alone, is an item, or has a key."""
    return stands_alone(content) or bool(_ITEM.match(content) or _KEY.match(content))


def stands_alone(content: str) -> bool:
    """Check whether a line is a unit whatever comes before and after it."""
    return bool(_ALONE.match(content) or _RULE.fullmatch(content))
