"""Read Jupyter notebooks: the texts and code of their cells, and outputs that are text."""

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import groupby

from mnemic.text.documents.data.json_file import MAX_CHARACTERS
from mnemic.text.documents.data.json_scan import JSONValue, scan_values
from mnemic.text.documents.data.jsonl import locate_value
from mnemic.text.documents.data.rows import RowBuilder, RowField
from mnemic.text.documents.encoding import read_text
from mnemic.text.documents.piece import DocumentError, DocumentPart, Source, Title
from mnemic.text.documents.rewrite import find_line_ends
from mnemic.text.documents.units import find_unit_ends

_HEADING = re.compile(r"#{1,6}[ \t]+(?=\S)")
_PARAGRAPH_END = re.compile(r"\n[ \t]*\n\s*")


def read_notebook(source: Source) -> Iterator[DocumentPart]:
    """Read the cells of a notebook; the first heading is its title."""
    text = read_text(source.path, MAX_CHARACTERS)
    try:
        json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"this is no notebook that can be read: {error}") from None
    line_ends = find_line_ends(text)
    builder, has_title = RowBuilder(), False
    code_cells = {
        item.path[1] for item in scan_values(text) if item.path[2:] == ("cell_type",) and item.value == "code"
    }
    for block in find_blocks(text):
        fields = [locate_value(text, value, 0, bisect_right(line_ends, value.start) + 1) for value in block]
        is_prose = block[0].path[1] not in code_cells
        if is_prose:
            fields = list(map(strip_heading, fields))
            if not has_title and fields[0].value != block[0].value:
                yield Title(fields[0].value.strip())
                has_title = True
        builder.add_block(fields, find_unit_ends if is_prose else find_code_ends)
        if builder.is_full:
            yield from builder.take_piece()
    yield from builder.take_piece()


def strip_heading(field: RowField) -> RowField:
    """Remove the marks of a Markdown heading."""
    if not (match := _HEADING.match(field.value)):
        return field
    shifts = tuple((position - match.end(), origin) for position, origin in field.shifts if position >= match.end())
    return field._replace(value=field.value[match.end() :], origin=field.origin + match.end(), shifts=shifts)


def find_blocks(text: str) -> Iterator[list[JSONValue]]:
    """Yield the strings of each text: a cell, a stream, a plain result."""
    values = (value for value in scan_values(text, keep_blank=True) if value.is_string and value.path[0] == "cells")
    for keys, group in groupby(values, key=lambda value: strip_index(value.path)):
        if keys[2:] == ("source",) or (keys[2:3] == ("outputs",) and keys[4:] in (("text",), ("data", "text/plain"))):
            yield list(group)


def strip_index(path: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """Return the path of a text, which is a string or a list of strings."""
    return path[:-1] if isinstance(path[-1], int) else path


def find_code_ends(text: str) -> list[int]:
    """Find the ends of the paragraphs of code."""
    return [*(match.end() for match in _PARAGRAPH_END.finditer(text) if match.end() < len(text)), len(text)]
