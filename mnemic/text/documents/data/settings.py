"""Read settings (.toml, .ini, .conf, .properties): ``section.key: value``, one per line."""

import re
from collections.abc import Iterator
from typing import TextIO

from mnemic.text.documents.data.rows import RowBuilder, RowField
from mnemic.text.documents.encoding import open_text, read_line
from mnemic.text.documents.piece import DocumentPart, Source

MAX_VALUE_LINES = 200  # of a list or a text over several lines
# Of a text without white space at its end: two repetitions that match the same would take long.
_SECTION = re.compile(r"\s*\[{1,2}([^\]]+)\]{1,2}\s*(?:[#;].*)?")
_KEY = re.compile(r"\s*(?:export\s+)?([\w.\-\"' /]{1,80}?)\s*[=:]\s*(\S.*)", re.DOTALL)
_COMMENT = re.compile(r"\s*(?:[#;!]+|//|--)\s*(.*)")
_QUOTED = re.compile(r"(\"\"\"|'''|\"|')\s*(.*?)\s*\1", re.DOTALL)
_OPEN = re.compile(r"[^=:]*[=:]\s*(\[(?!.*\])|\{(?!.*\})|\"\"\"(?!.*\"\"\")|'''(?!.*'''))")
_CLOSING = {"[": "]", "{": "}", '"""': '"""', "'''": "'''"}


def read_settings(source: Source) -> Iterator[DocumentPart]:
    """Read one unit per line: a comment, a section, or a value with its name."""
    builder, section = RowBuilder(), ""
    with open_text(source.path) as file:
        origin, number = 0, 1
        for line in read_values(file):
            content = line.rstrip()
            if match := _SECTION.fullmatch(content):
                section = match[1].strip().strip("\"'")
                start = match.end(1) - len(match[1].lstrip())
                builder.add_line(section, origin + start, number)
            elif match := _COMMENT.fullmatch(content):
                builder.add_line(match[1], origin + match.start(1), number)
            elif match := _KEY.fullmatch(content):
                builder.add_row([name_value(section, match, origin, number)], origin)
            else:
                start = len(content) - len(content.lstrip())
                builder.add_line(content, origin + start, number)
            if builder.is_full:
                yield from builder.take_piece()
            origin, number = origin + len(line), number + line.count("\n")
    yield from builder.take_piece()


def read_values(file: TextIO) -> Iterator[str]:
    """Yield the lines of a file; a value over several lines is joined."""
    number, lines, closing = 1, list[str](), ""
    while line := read_line(file, number):
        number += 1
        lines.append(line)
        if not closing and (match := _OPEN.match(line)):
            closing = _CLOSING[match[1]]
        elif not closing or closing in line or len(lines) >= MAX_VALUE_LINES:
            yield "".join(lines)
            lines, closing = [], ""
    if lines:
        yield "".join(lines)


def name_value(section: str, match: re.Match[str], origin: int, number: int) -> RowField:
    """Make the field of a line ``key = value``; quotes around the value are left out."""
    key, value, start = match[1].strip("\"' "), match[2], match.start(2)
    if quoted := _QUOTED.fullmatch(value):
        number += value.count("\n", 0, quoted.start(2))
        value, start = quoted[2], start + quoted.start(2)
    return RowField(f"{section}.{key}" if section else key, value, origin + start, number)
