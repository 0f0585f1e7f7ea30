"""Read JSON: values named by their paths; records of a list are rows."""

import json
from bisect import bisect_right
from collections.abc import Iterator

from mnemic.text.documents.data.json_scan import scan_values
from mnemic.text.documents.data.jsonl import locate_value
from mnemic.text.documents.data.records import PathValue, build_records
from mnemic.text.documents.encoding import read_text
from mnemic.text.documents.markup.plain import read_plain
from mnemic.text.documents.piece import DocumentPart, Note, Source
from mnemic.text.documents.rewrite import find_line_ends

MAX_CHARACTERS = 50_000_000  # of a file


def read_json(source: Source) -> Iterator[DocumentPart]:
    """Read JSON; a file that is broken, or has comments, is read as plain text."""
    text = read_text(source.path, MAX_CHARACTERS)
    try:
        json.loads(text)
    except (ValueError, RecursionError) as error:
        yield Note(f"this is no JSON ({str(error) or type(error).__name__}); it was read as plain text")
        yield from read_plain(source)
        return
    line_ends = find_line_ends(text)
    yield from build_records(
        PathValue(value.path, locate_value(text, value, 0, bisect_right(line_ends, value.start) + 1))
        for value in scan_values(text)
    )
