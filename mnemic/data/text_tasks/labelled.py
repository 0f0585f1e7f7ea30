"""Reader of labeled texts in tables (.tsv, .csv) and JSON lines (.jsonl), such as GLUE.

GLUE's .tsv files have no quoting: a ``"`` is a character like any other. Their columns differ by
task, MRPC's start with a byte order mark, and CoLA's have no header.
"""

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from mnemic.data.text_tasks.examples import LabeledExample, TextError
from mnemic.data.text_tasks.files import read_lines

Column = str | int
TableRow = dict[Any, Any]  # column name or number → text, or a JSON value

# Usual names of columns; the first that a file has is used.
DEFAULT_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "text": ("sentence", "text", "sentence1", "text_a", "#1 String", "review"),
    "pair": ("sentence2", "text_b", "#2 String"),
    "label": ("label", "score", "Quality"),
}


class TableColumns(NamedTuple):
    """The columns of texts and labels: names, or numbers from 1 without a header."""

    text: Column
    pair: Column | None
    label: Column


def read_labeled(path: Path, columns: Mapping[str, Any], *, paired: bool) -> list[LabeledExample]:
    """Read all examples of a file; ``columns`` overrides the usual column names."""
    check_columns(columns, paired)
    examples: list[LabeledExample] = []
    chosen_columns: TableColumns | None = None
    first_type, first_label = "", ""  # of the first label, and where it stands
    for number, row in read_rows(path, columns):
        location = f"{path}, line {number}"
        if chosen_columns is None:
            chosen_columns = choose_columns(row, columns, location, paired=paired)
        for column in chosen_columns:
            if column is not None and column not in row:
                column_names = ", ".join(map(str, row))
                raise TextError(f"{location}: no column {column!r}; it has {column_names}")
        label = row[chosen_columns.label]
        if is_missing(label):
            raise TextError(f"{location}: the label is missing, {json.dumps(label)} stands there")
        first_type = first_type or label_type(label)
        first_label = first_label or f"{json.dumps(label)} in line {number}"
        if label_type(label) != first_type:
            raise TextError(
                f"{location}: the label {json.dumps(label)} is {label_type(label)}, but "
                f"{first_label} is {first_type}; write all labels in one way"
            )
        pair = None if chosen_columns.pair is None else format_value(row[chosen_columns.pair])
        examples.append(LabeledExample(format_value(row[chosen_columns.text]), pair, format_value(label)))
    if not examples:
        raise TextError(f"{path} holds no examples")
    return examples


def read_rows(path: Path, columns: Mapping[str, Any]) -> Iterator[tuple[int, TableRow]]:
    """Read the rows of a .jsonl, .csv or .tsv file, with their line numbers."""
    if ".jsonl" in path.suffixes:
        return parse_json_lines(read_lines(path), str(path))
    return parse_table(path, read_csv(path) if ".csv" in path.suffixes else read_tsv(path), columns)


def check_columns(columns: Mapping[str, Any], paired: bool) -> None:
    """Check a recipe's ``data.columns``: known keys, and either all names or all numbers."""
    known = ("text", "pair", "label") if paired else ("text", "label")
    if unknown := [key for key in columns if key not in known]:
        raise TextError(f"data.columns takes {', '.join(known)}, not {unknown[0]!r}")
    numbers = [isinstance(value, int) for value in columns.values()]
    if any(numbers) and not (all(numbers) and len(numbers) == len(known)):
        raise TextError(
            f"data.columns has numbers for all of {', '.join(known)} (a file without a header), "
            f"or names; not {dict(columns)}"
        )


def choose_columns(row: TableRow, columns: Mapping[str, Any], location: str, *, paired: bool) -> TableColumns:
    """Choose the columns to read: those of the recipe, or the usual ones."""
    chosen_columns: dict[str, Column | None] = {"pair": None}
    for role in ("text", "pair", "label") if paired else ("text", "label"):
        names = [columns[role]] if role in columns else [n for n in DEFAULT_COLUMNS[role] if n in row]
        if not names:
            column_names = ", ".join(map(str, row))
            raise TextError(
                f"{location}: no column for the {role} (such as "
                f"{', '.join(DEFAULT_COLUMNS[role])}); it has {column_names}. Name it with "
                f"data.columns.{role}, or number all columns from 1"
            )
        chosen_columns[role] = names[0]
    second_texts = [name for name in DEFAULT_COLUMNS["pair"] if name in row]
    if second_texts and not paired and "text" not in columns:
        raise TextError(
            f"{location}: two texts, {chosen_columns['text']} and {second_texts[0]}; train on "
            "pairs with the recipe bert-pairs (numbers: bert-numbers), or name the one to read "
            "with data.columns.text"
        )
    return TableColumns(**chosen_columns)  # type: ignore[arg-type]


def parse_table(
    path: Path, table: Iterable[tuple[int, list[str]]], columns: Mapping[str, Any]
) -> Iterator[tuple[int, TableRow]]:
    """Key the cells of each row by the header's names, or by numbers from 1."""
    is_numbered = any(isinstance(value, int) for value in columns.values())
    header: list[str] | None = None
    for number, cells in table:
        if is_numbered:
            yield number, dict(enumerate(cells, start=1))
        elif header is None:
            header = cells
        elif len(cells) != len(header):
            raise TextError(f"{path}, line {number}: {len(cells)} columns, but the header has {len(header)}")
        else:
            yield number, dict(zip(header, cells))


def read_tsv(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Read tab-separated rows without quoting, with their line numbers."""
    return ((number, line.split("\t")) for number, line in read_lines(path) if line.strip())


def read_csv(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Read comma-separated rows, in which quoted text may span lines, with line numbers."""
    reader = csv.reader((f"{line}\n" for _, line in read_lines(path)), strict=True)
    try:
        yield from ((reader.line_num, row) for row in reader if row)
    except csv.Error as error:
        raise TextError(
            f"{path}, line {reader.line_num}: no valid CSV ({error}); JSON lines (.jsonl) hold any text"
        ) from None


def parse_json_lines(lines: Iterable[tuple[int, str]], path: str) -> Iterator[tuple[int, TableRow]]:
    """Parse JSON lines into rows; keep only texts and numbers."""
    for number, line in ((number, line) for number, line in lines if line.strip()):
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise TextError(f"{path}, line {number}: no valid JSON ({error.msg})") from None
        if not isinstance(row, dict):
            start = line.strip()[:40]
            raise TextError(f'{path}, line {number}: expected an object, {{"text": …}}, not {start}')
        cells = {key: value for key, value in row.items() if isinstance(value, str | int | float)}
        for key, value in cells.items():
            if isinstance(value, str) and not is_unicode(value):
                raise TextError(
                    f"{path}, line {number}: {key!r} is no unicode text: it has half a character, a lone surrogate"
                )
        yield number, cells


def is_unicode(text: str) -> bool:
    """Return whether a text can be encoded: a lone surrogate cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_missing(label: str | float) -> bool:
    """Return whether a label is an empty cell, or NaN, which programs write into one."""
    return not label.strip() if isinstance(label, str) else not isfinite(label)


def label_type(label: str | float) -> str:
    """Name the JSON type of a label: 1 and "1" are not the same."""
    if isinstance(label, bool):
        return "true or false"
    return "a text" if isinstance(label, str) else "a number"


def format_value(value: str | float) -> str:
    """Format a value as text; 1 and 1.0 are the same."""
    if isinstance(value, str):
        return value
    is_integer = isinstance(value, float) and value.is_integer()
    return json.dumps(int(value) if is_integer else value)
