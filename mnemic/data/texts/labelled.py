"""Texts with labels from tables (.tsv) and from JSON lines (.jsonl), as GLUE and others have them.

GLUE's files have no quoting: a ``"`` is a character like any other. Their columns differ by task,
MRPC's begin with a byte order mark, and CoLA's have no header.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from mnemic.data.texts.examples import Labelled, TextError
from mnemic.data.texts.files import lines

Column = str | int

# What columns are usually called; the first that a file has is taken.
USUAL: Mapping[str, tuple[str, ...]] = {
    "text": ("sentence", "text", "sentence1", "text_a", "#1 String", "review"),
    "pair": ("sentence2", "text_b", "#2 String"),
    "label": ("label", "score", "Quality"),
}


class Columns(NamedTuple):
    """Where a file has its texts and labels: names, or numbers from 1 without a header."""

    text: Column
    pair: Column | None
    label: Column


def read_labelled(path: Path, columns: Mapping[str, Any], *, paired: bool) -> list[Labelled]:
    """All examples of a file; ``columns`` says where they are, if not where they usually are."""
    check_columns(columns, paired)
    rows = json_rows(path) if ".jsonl" in path.suffixes else table_rows(path, columns)
    found: list[Labelled] = []
    chosen: Columns | None = None
    for number, row in rows:
        if chosen is None:
            chosen = choose(row, columns, f"{path}, line {number}", paired=paired)
        for column in chosen:
            if column is not None and column not in row:
                have = ", ".join(map(str, row))
                raise TextError(f"{path}, line {number}: no column {column!r}; it has {have}")
        pair = None if chosen.pair is None else row[chosen.pair]
        found.append(Labelled(row[chosen.text], pair, row[chosen.label]))
    if not found:
        raise TextError(f"{path} holds no examples")
    return found


def check_columns(columns: Mapping[str, Any], paired: bool) -> None:
    """A recipe's ``data.columns``: known names, and either names or numbers."""
    known = ("text", "pair", "label") if paired else ("text", "label")
    if strange := [key for key in columns if key not in known]:
        raise TextError(f"data.columns takes {', '.join(known)}, not {strange[0]!r}")
    numbers = [isinstance(value, int) for value in columns.values()]
    if any(numbers) and not (all(numbers) and len(numbers) == len(known)):
        raise TextError(
            f"data.columns has numbers for all of {', '.join(known)} (a file without a header), "
            f"or names; not {dict(columns)}"
        )


def choose(
    row: Mapping[Any, str], columns: Mapping[str, Any], where: str, *, paired: bool
) -> Columns:
    """Which columns to take, told or usual."""
    chosen: dict[str, Column | None] = {"pair": None}
    for part in ("text", "pair", "label") if paired else ("text", "label"):
        names = [columns[part]] if part in columns else [n for n in USUAL[part] if n in row]
        if not names:
            have = ", ".join(map(str, row))
            raise TextError(
                f"{where}: no column for the {part} (such as {', '.join(USUAL[part])}); it has "
                f"{have}. Name it with data.columns.{part}, or number all columns from 1"
            )
        chosen[part] = names[0]
    return Columns(**chosen)  # type: ignore[arg-type]


def table_rows(path: Path, columns: Mapping[str, Any]) -> Iterator[tuple[int, dict[Any, str]]]:
    """The rows of a table by the names of its header, or by numbers from 1."""
    numbered = any(isinstance(value, int) for value in columns.values())
    header: list[Any] | None = None
    for number, line in lines(path):
        if not line.strip():
            continue
        cells = line.split("\t")
        if numbered:
            yield number, dict(enumerate(cells, start=1))
        elif header is None:
            header = cells
        elif len(cells) != len(header):
            raise TextError(
                f"{path}, line {number}: {len(cells)} columns, but the header has {len(header)}"
            )
        else:
            yield number, dict(zip(header, cells))


def json_rows(path: Path) -> Iterator[tuple[int, dict[Any, str]]]:
    """The objects of JSON lines; a label may be a text or a number."""
    for number, line in lines(path):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise TextError(f"{path}, line {number}: no valid JSON ({error.msg})") from None
        if not isinstance(row, dict):
            raise TextError(f'{path}, line {number}: expected {{"text": …, "label": …}}')
        yield number, {key: spelled(value) for key, value in row.items() if plain(value)}


def plain(value: Any) -> bool:
    return isinstance(value, str | int | float)


def spelled(value: str | float) -> str:
    return value if isinstance(value, str) else json.dumps(value)
