"""Texts with labels from tables (.tsv, .csv) and JSON lines (.jsonl), as GLUE and others have them.

GLUE's files have no quoting: a ``"`` is a character like any other. Their columns differ by task,
MRPC's begin with a byte order mark, and CoLA's have no header.
"""

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from mnemic.data.text_tasks.examples import Labelled, TextError
from mnemic.data.text_tasks.files import lines

Column = str | int
Row = dict[Any, Any]  # of names or numbers, to texts or what JSON has

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
    found: list[Labelled] = []
    chosen: Columns | None = None
    kind, known = "", ""  # of the first label, and where it stands
    for number, row in rows_of(path, columns):
        where = f"{path}, line {number}"
        if chosen is None:
            chosen = choose(row, columns, where, paired=paired)
        for column in chosen:
            if column is not None and column not in row:
                have = ", ".join(map(str, row))
                raise TextError(f"{where}: no column {column!r}; it has {have}")
        label = row[chosen.label]
        if missing(label):
            raise TextError(f"{where}: the label is missing, {json.dumps(label)} stands there")
        kind, known = kind or kind_of(label), known or f"{json.dumps(label)} in line {number}"
        if kind_of(label) != kind:
            raise TextError(
                f"{where}: the label {json.dumps(label)} is {kind_of(label)}, but {known} is "
                f"{kind}; write all labels in one way"
            )
        pair = None if chosen.pair is None else spelled(row[chosen.pair])
        found.append(Labelled(spelled(row[chosen.text]), pair, spelled(label)))
    if not found:
        raise TextError(f"{path} holds no examples")
    return found


def rows_of(path: Path, columns: Mapping[str, Any]) -> Iterator[tuple[int, Row]]:
    """The rows of a file by their columns, and their lines; its name says how it is written."""
    if ".jsonl" in path.suffixes:
        return json_objects(lines(path), str(path))
    return table_rows(path, csv_cells(path) if ".csv" in path.suffixes else cells(path), columns)


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


def choose(row: Row, columns: Mapping[str, Any], where: str, *, paired: bool) -> Columns:
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
    second = [name for name in USUAL["pair"] if name in row]
    if second and not paired and "text" not in columns:
        raise TextError(
            f"{where}: two texts, {chosen['text']} and {second[0]}; train on pairs with the recipe "
            "bert-pairs (numbers: bert-numbers), or name the one to read with data.columns.text"
        )
    return Columns(**chosen)  # type: ignore[arg-type]


def table_rows(
    path: Path, table: Iterable[tuple[int, list[str]]], columns: Mapping[str, Any]
) -> Iterator[tuple[int, Row]]:
    """The rows of a table by the names of its header, or by numbers from 1."""
    numbered = any(isinstance(value, int) for value in columns.values())
    header: list[str] | None = None
    for number, own in table:
        if numbered:
            yield number, dict(enumerate(own, start=1))
        elif header is None:
            header = own
        elif len(own) != len(header):
            raise TextError(
                f"{path}, line {number}: {len(own)} columns, but the header has {len(header)}"
            )
        else:
            yield number, dict(zip(header, own))


def cells(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The lines of a table without quoting, cut at tabs."""
    return ((number, line.split("\t")) for number, line in lines(path) if line.strip())


def csv_cells(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The rows of comma separated values, in which a quoted text may go on over lines."""
    reader = csv.reader((f"{line}\n" for _, line in lines(path)), strict=True)
    try:
        yield from ((reader.line_num, row) for row in reader if row)
    except csv.Error as error:
        raise TextError(
            f"{path}, line {reader.line_num}: no valid CSV ({error}); JSON lines (.jsonl) hold any "
            "text"
        ) from None


def json_objects(numbered: Iterable[tuple[int, str]], name: str) -> Iterator[tuple[int, Row]]:
    """The objects of JSON lines; a label may be a text or a number."""
    for number, line in numbered:
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise TextError(f"{name}, line {number}: no valid JSON ({error.msg})") from None
        if not isinstance(row, dict):
            came = line.strip()[:40]
            raise TextError(f'{name}, line {number}: expected an object, {{"text": …}}, not {came}')
        told = {key: own for key, own in row.items() if isinstance(own, str | int | float)}
        for key, own in told.items():
            if isinstance(own, str) and not is_unicode(own):
                raise TextError(
                    f"{name}, line {number}: {key!r} is no unicode text: it has half a character, "
                    "a lone surrogate"
                )
        yield number, told


def is_unicode(text: str) -> bool:
    """Whether a text can be written: half a character, a lone surrogate, cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def missing(label: str | float) -> bool:
    """An empty cell, or what programs write into one: NaN."""
    return not label.strip() if isinstance(label, str) else not isfinite(label)


def kind_of(label: str | float) -> str:
    """What JSON calls a label: 1 and "1" are not the same."""
    if isinstance(label, bool):
        return "true or false"
    return "a text" if isinstance(label, str) else "a number"


def spelled(value: str | float) -> str:
    """A text as it is; of a number 1 and 1.0 are the same."""
    if isinstance(value, str):
        return value
    whole = isinstance(value, float) and value.is_integer()
    return json.dumps(int(value) if whole else value)
