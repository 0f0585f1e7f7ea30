"""Read JSON lines: the texts of each record, with their positions in the file."""

import json
import re
from collections.abc import Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]
from pathlib import Path
from typing import NamedTuple

from mnemic.text.documents.encoding import open_text, read_line
from mnemic.text.documents.piece import Anchor, DocumentError, DocumentPart, DocumentPiece, Note

# The text of a record is in these fields; in all of its strings if it has none of them.
TEXT_FIELDS = ("title", "question", "text", "context", "content", "body", "abstract", "summary", "answer")
MAX_NOTES = 5  # at most so many bad lines are reported one by one
_BLANK = re.compile(r"[ \t\r\n]*")
_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)")
_HIGH = re.compile(r"\\u[dD][89abAB]")
_LOW = re.compile(r"\\u[dD][c-fC-F]")
_DECODER = json.JSONDecoder()


class JSONField(NamedTuple):
    """A string of a record, with the position of its first character in the line."""

    name: str
    start: int
    value: str


def read_records(path: Path) -> Iterator[DocumentPart]:
    """Read one piece per record, one paragraph per field; a bad line becomes a note."""
    num_records, num_errors, messages = 0, 0, list[str]()
    with open_text(path) as file:
        origin, number = 0, 1
        while line := read_line(file, number):
            if line.strip():
                try:
                    fields = parse_fields(line)
                    num_records += 1
                except (ValueError, IndexError, RecursionError) as error:
                    fields = []
                    num_errors += 1
                    if num_errors <= MAX_NOTES:
                        messages.append(f"line {number} is no JSON object: {error}")
                if text_fields := [field for field in fields if field.name in TEXT_FIELDS] or fields:
                    yield build_piece(line, text_fields, origin, number)
            origin, number = origin + len(line), number + 1
    if num_errors and not num_records:
        raise DocumentError(messages[0])
    yield from map(Note, messages)
    if num_errors > MAX_NOTES:
        yield Note(f"{num_errors - MAX_NOTES} more lines are no JSON objects")


def parse_fields(line: str) -> list[JSONField]:
    """Return the string fields of a JSON object; nested values are left out."""
    position, fields = skip_blanks(line, 0, "{"), []
    while line[position] != "}":
        name, position = scanstring(line, skip_blanks(line, position, '"'))
        position = skip_blanks(line, position, ":")
        start = position + 1
        value, position = _DECODER.raw_decode(line, position)
        if isinstance(value, str) and value.strip():
            fields.append(JSONField(name, start, value))
        position = skip_blanks(line, position)
        if line[position] == ",":
            position = skip_blanks(line, position, ",")
        if line[position] not in '}"':
            raise ValueError(f"unexpected {line[position]!r}")
    if line[position + 1 :].strip():
        raise ValueError("there is text after its end")
    return fields


def skip_blanks(line: str, position: int, mark: str = "") -> int:
    """Return the position after blanks and, if ``mark`` is given, after it too.

    Blanks after the mark are skipped as well, unless it opens a string.
    """
    position = _BLANK.match(line, position).end()  # type: ignore[union-attr]
    if not mark:
        return position
    if line[position] != mark:
        raise ValueError(f"expected {mark!r}, not {line[position]!r}")
    return position + 1 if mark == '"' else _BLANK.match(line, position + 1).end()  # type: ignore[union-attr]


def build_piece(line: str, fields: list[JSONField], origin: int, number: int) -> DocumentPiece:
    """Join fields as paragraphs of a piece, with an anchor after every escape."""
    text, anchors = "", []
    for field in fields:
        text += "\n\n" if text else ""
        shift = 0  # how much longer the source is than the text
        anchors.append(Anchor(len(text), origin + field.start, number))
        for escape in find_escapes(line, field):
            shift += escape[1] - escape[0] - escape[2]
            position = len(text) + escape[1] - field.start - shift
            anchors.append(Anchor(position, origin + escape[1], number))
        text += field.value
    inner = tuple(anchor for anchor in anchors if anchor.position < len(text))
    return DocumentPiece(text, inner or (Anchor(0, origin, number),))


def find_escapes(line: str, field: JSONField) -> Iterator[tuple[int, int, int]]:
    """Yield start and end of each escape in the source, and its number of characters.

    Two escapes, the halves of a surrogate pair, may stand for one character: the first for none.
    """
    _, end = scanstring(line, field.start)
    for escape in _ESCAPE.finditer(line, field.start, end - 1):
        is_pair = _HIGH.match(escape.group()) and _LOW.match(line, escape.end())
        yield escape.start(), escape.end(), int(not is_pair)
