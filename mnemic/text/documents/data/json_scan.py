"""Scan JSON for its values, each with its path and its position in the text."""

import re
from collections.abc import Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import NamedTuple

_TOKEN = re.compile(r"[ \t\r\n]*([{}\[\],:\"]|[^\s{}\[\],:\"]+)")
_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)")
_HIGH = re.compile(r"\\u[dD][89abAB]")
_LOW = re.compile(r"\\u[dD][c-fC-F]")

JSONPath = tuple[str | int, ...]  # keys of objects, indices of arrays


class JSONValue(NamedTuple):
    """A string, a number, true or false; ``start`` is the position of its first character."""

    path: JSONPath
    value: str
    start: int
    is_string: bool


def scan_values(text: str, *, keep_blank: bool = False) -> Iterator[JSONValue]:
    """Yield the values of a valid JSON text that are not null.

    >>> [(item.path, item.value) for item in scan_values('{"a": [1, {"b": "x"}]}')]
    [(('a', 0), '1'), (('a', 1, 'b'), 'x')]
    """
    path: list[str | int] = []
    is_key, position = False, 0
    while match := _TOKEN.match(text, position):
        token, position = match[1], match.end()
        if token == "{":
            path.append("")
            is_key = True
        elif token == "[":
            path.append(0)
        elif token in "}]":
            path.pop()
            is_key = False
        elif token == ",":
            last = path[-1]
            is_key = not isinstance(last, int)
            if isinstance(last, int):
                path[-1] = last + 1
        elif token == ":":
            is_key = False
        elif token == '"':
            start = position
            value, position = scanstring(text, start)
            if is_key:
                path[-1] = value
            elif value.strip() or keep_blank:
                yield JSONValue(tuple(path), value, start, True)
        elif token != "null":
            yield JSONValue(tuple(path), token, match.start(1), False)


def find_shifts(text: str, value: JSONValue) -> tuple[tuple[int, int], ...]:
    """Find the positions after escapes, in the value and in the text.

    Two escapes, the halves of a surrogate pair, may stand for one character: the first for none.
    """
    if not value.is_string:
        return ()
    _, end = scanstring(text, value.start)
    if end - 1 - value.start == len(value.value):
        return ()
    shifts, surplus = [], 0  # how much longer the source is than the value
    for escape in _ESCAPE.finditer(text, value.start, end - 1):
        is_pair = _HIGH.match(escape.group()) and _LOW.match(text, escape.end())
        surplus += escape.end() - escape.start() - int(not is_pair)
        shifts.append((escape.end() - value.start - surplus, escape.end()))
    return tuple(shifts)
