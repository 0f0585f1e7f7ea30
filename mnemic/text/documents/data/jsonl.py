"""Read JSON lines: the texts of each record, with their positions in the file."""

import json
import re
from collections.abc import Iterator

from mnemic.text.documents.data.json_scan import JSONValue, find_shifts, scan_values
from mnemic.text.documents.data.records import PathValue, build_records
from mnemic.text.documents.data.rows import RowField
from mnemic.text.documents.encoding import open_text, read_line
from mnemic.text.documents.piece import Anchor, DocumentError, DocumentPart, DocumentPiece, Note, Source

# The text of a record is in these fields; a record without them is a row of all its values.
TEXT_FIELDS = ("title", "question", "text", "context", "content", "body", "abstract", "summary", "answer")
# Of a message, who wrote it and when is read, too, in these fields; without a date, no name is.
DATE_FIELDS = ("date", "time", "datetime", "timestamp", "ts", "created_at", "createdAt", "sent", "sent_at")
NAME_FIELDS = ("from", "sender", "author", "user", "username", "name", "speaker", "to")
_DATE = re.compile(r"\d{4}-\d\d-\d\d|\d{1,2}[/. ]\w{1,9}[/. ]\d{2,4}")
MAX_NOTES = 5  # at most so many bad lines are reported one by one


def read_records(source: Source) -> Iterator[DocumentPart]:
    """Read one piece per record, one paragraph per field; a bad line becomes a note."""
    num_records, num_errors, messages = 0, 0, list[str]()
    with open_text(source.path) as file:
        origin, number = 0, 1
        while line := read_line(file, number):
            if line.strip():
                try:
                    yield from read_record(line, origin, number)
                    num_records += 1
                except (ValueError, RecursionError) as error:
                    num_errors += 1
                    if num_errors <= MAX_NOTES:
                        messages.append(f"line {number} is no JSON object: {error}")
            origin, number = origin + len(line), number + 1
    if num_errors and not num_records:
        raise DocumentError(messages[0])
    yield from map(Note, messages)
    if num_errors > MAX_NOTES:
        yield Note(f"{num_errors - MAX_NOTES} more lines are no JSON objects")


def read_record(line: str, origin: int, number: int) -> Iterator[DocumentPiece]:
    """Read a record: its text fields as paragraphs, or all its values as a row."""
    if not isinstance(json.loads(line), dict):
        raise ValueError("it is another value")
    values = list(scan_values(line))
    fields = [value for value in values if value.is_string and len(value.path) == 1]
    is_message = any(value.path[0] in DATE_FIELDS and _DATE.match(value.value) for value in fields)
    heads = (*DATE_FIELDS, *NAME_FIELDS) if is_message else ()
    texts = [value for value in fields if value.path[0] in (*TEXT_FIELDS, *heads)]
    if any(value.path[0] in TEXT_FIELDS for value in texts):
        texts.sort(key=lambda value: (value.path[0] not in heads, value.path[0] not in DATE_FIELDS))
        yield build_paragraphs(line, texts, origin, number)
    else:
        yield from build_records(
            PathValue((0, *value.path), locate_value(line, value, origin, number)) for value in values
        )


def locate_value(text: str, value: JSONValue, origin: int, line: int) -> RowField:
    """Convert a value of JSON that begins at ``origin`` to a field."""
    shifts = tuple((position, origin + start) for position, start in find_shifts(text, value))
    return RowField("", value.value, origin + value.start, line, shifts)


def build_paragraphs(line: str, values: list[JSONValue], origin: int, number: int) -> DocumentPiece:
    """Join texts as paragraphs of a piece, with an anchor after every escape."""
    text, anchors = "", list[Anchor]()
    for value in values:
        text += "\n\n" if text else ""
        field = locate_value(line, value, origin, number)
        anchors.append(Anchor(len(text), field.origin, number))
        anchors += [Anchor(len(text) + position, start, number) for position, start in field.shifts]
        text += field.value
    return DocumentPiece(text, tuple(anchor for anchor in anchors if anchor.position < len(text)))
