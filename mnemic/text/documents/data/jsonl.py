"""JSON lines: the texts of each record, with their places in the file, escapes and all."""

import json
import re
from collections.abc import Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]
from pathlib import Path
from typing import NamedTuple

from mnemic.text.documents.encoding import next_line, open_text
from mnemic.text.documents.piece import Anchor, DocumentError, Note, Part, Piece

# What holds the text of a record, if any of them is there; otherwise all of its strings do.
FIELDS = (
    "title",
    "question",
    "text",
    "context",
    "content",
    "body",
    "abstract",
    "summary",
    "answer",
)
TOLD = 5  # lines that are no records and are told one by one
_BLANK = re.compile(r"[ \t\r\n]*")
_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)")
_HIGH = re.compile(r"\\u[dD][89abAB]")
_LOW = re.compile(r"\\u[dD][c-fC-F]")
_DECODER = json.JSONDecoder()


class Field(NamedTuple):
    """A string of a record: where its first character stands in the line, and what it says."""

    name: str
    start: int
    value: str


def read_records(path: Path) -> Iterator[Part]:
    """A piece a record, a field a paragraph; a line that is no record is a note."""
    good, bad, wrong = 0, 0, list[str]()
    with open_text(path) as file:
        origin, number = 0, 1
        while line := next_line(file, number):
            if line.strip():
                try:
                    found = fields(line)
                    good += 1
                except (ValueError, IndexError, RecursionError) as error:
                    found = []
                    bad += 1
                    if bad <= TOLD:
                        wrong.append(f"line {number} is no JSON object: {error}")
                if chosen := [one for one in found if one.name in FIELDS] or found:
                    yield piece(line, chosen, origin, number)
            origin, number = origin + len(line), number + 1
    if bad and not good:
        raise DocumentError(wrong[0])
    yield from map(Note, wrong)
    if bad > TOLD:
        yield Note(f"{bad - TOLD} more lines are no JSON objects")


def fields(line: str) -> list[Field]:
    """The strings of a JSON object, those inside other values left out."""
    place, found = skip(line, 0, "{"), []
    while line[place] != "}":
        name, place = scanstring(line, skip(line, place, '"'))
        place = skip(line, place, ":")
        start = place + 1
        value, place = _DECODER.raw_decode(line, place)
        if isinstance(value, str) and value.strip():
            found.append(Field(name, start, value))
        place = skip(line, place, ",") if line[skip(line, place)] == "," else skip(line, place)
        if line[place] not in '}"':
            raise ValueError(f"unexpected {line[place]!r}")
    if line[place + 1 :].strip():
        raise ValueError("something stands behind its end")
    return found


def skip(line: str, place: int, mark: str = "") -> int:
    """Behind blanks and, if one is given, behind a mark (and the blanks after it)."""
    place = _BLANK.match(line, place).end()  # type: ignore[union-attr]
    if not mark:
        return place
    if line[place] != mark:
        raise ValueError(f"expected {mark!r}, not {line[place]!r}")
    return place + 1 if mark == '"' else _BLANK.match(line, place + 1).end()  # type: ignore[union-attr]


def piece(line: str, found: list[Field], origin: int, number: int) -> Piece:
    """Fields as paragraphs; an escape in the source is a new anchor."""
    text, anchors = "", []
    for one in found:
        text += "\n\n" if text else ""
        shift = 0  # how much longer the source is than the text
        anchors.append(Anchor(len(text), origin + one.start, number))
        for escape in escapes(line, one):
            shift += escape[1] - escape[0] - escape[2]
            place = len(text) + escape[1] - one.start - shift
            anchors.append(Anchor(place, origin + escape[1], number))
        text += one.value
    flat = tuple(one for one in anchors if one.place < len(text))
    return Piece(text, flat or (Anchor(0, origin, number),))


def escapes(line: str, field: Field) -> Iterator[tuple[int, int, int]]:
    """Start and end of each escape in the source, and how many characters it stands for.

    Two escapes, the halves of a surrogate pair, may stand for one character: the first for none.
    """
    _, end = scanstring(line, field.start)
    for found in _ESCAPE.finditer(line, field.start, end - 1):
        paired = _HIGH.match(found.group()) and _LOW.match(line, found.end())
        yield found.start(), found.end(), int(not paired)
