"""Reader of labeled texts in tables (.tsv, .csv), JSON lines (.jsonl) and lines of label and text.

GLUE's .tsv files have no quoting: a ``"`` is a character like any other. Their columns differ by
task, MRPC's start with a byte order mark, and CoLA's have no header.
"""

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from mnemic.data.text_tasks.examples import LabeledExample, TextError
from mnemic.data.text_tasks.files import read_lines

TableRow = dict[Any, Any]  # column name or number → text, or a JSON value

# Usual names of columns; the first that a file has is used.
DEFAULT_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "text": ("sentence", "text", "sentence1", "text_a", "#1 String", "review"),
    "pair": ("sentence2", "text_b", "#2 String"),
    "label": ("label", "score", "Quality"),
}


def read_labeled(path: Path, columns: Mapping[str, Any], *, paired: bool) -> list[LabeledExample]:
    """Read all examples of a file; ``columns`` overrides the usual column names."""
    roles = ("text", "pair", "label") if paired else ("text", "label")
    check_columns(columns, roles)
    examples: list[LabeledExample] = []
    column_of_role: dict[str, Any] = {}  # names, or numbers from 1 without a header
    first_type, first_label = "", ""  # of the first label, and where it stands
    for number, row in read_rows(path, columns):
        location = f"{path}, line {number}"
        column_of_role = column_of_role or choose_columns(row, columns, roles, location)
        if missing := [column for column in column_of_role.values() if column not in row]:
            raise TextError(f"{location}: no column {missing[0]!r}; it has {', '.join(map(str, row))}")
        values = {role: row[column] for role, column in column_of_role.items()}
        label = values["label"]
        if is_missing(label):
            raise TextError(f"{location}: the label is missing, {json.dumps(label)} stands there")
        first_type = first_type or label_type(label)
        first_label = first_label or f"{json.dumps(label)} in line {number}"
        if label_type(label) != first_type:
            raise TextError(
                f"{location}: the label {json.dumps(label)} is {label_type(label)}, but "
                f"{first_label} is {first_type}; write all labels in one way"
            )
        pair = format_value(values["pair"]) if paired else None
        examples.append(LabeledExample(format_value(values["text"]), pair, format_value(label)))
    if not examples:
        raise TextError(f"{path} holds no examples")
    return examples


def read_label_first(path: Path) -> list[LabeledExample]:
    """Read lines of a label, a blank and a text, such as those of SST-5."""
    examples = []
    for number, line in ((number, line.strip()) for number, line in read_lines(path)):
        label, _, text = line.partition(" ")
        if line and not text:
            raise TextError(f"{path}, line {number}: {line[:40]!r}; expected a label, a blank and a text")
        examples += [LabeledExample(text.strip(), None, label)] if line else []
    if not examples:
        raise TextError(f"{path} holds no examples")
    return examples


def read_rows(path: Path, columns: Mapping[str, Any]) -> Iterator[tuple[int, TableRow]]:
    """Read the rows of a .jsonl, .csv or .tsv file, with their line numbers."""
    if ".jsonl" in path.suffixes:
        return parse_json_lines(read_lines(path), str(path))
    return parse_table(path, read_csv(path) if ".csv" in path.suffixes else read_tsv(path), columns)


def check_columns(columns: Mapping[str, Any], roles: Sequence[str]) -> None:
    """Check a recipe's ``data.columns``: known keys, and either all names or all numbers."""
    if unknown := [key for key in columns if key not in roles]:
        raise TextError(f"data.columns takes {', '.join(roles)}, not {unknown[0]!r}")
    numbers = [isinstance(value, int) for value in columns.values()]
    if any(numbers) and not (all(numbers) and len(numbers) == len(roles)):
        raise TextError(
            f"data.columns has numbers for all of {', '.join(roles)} (a file without a header), "
            f"or names; not {dict(columns)}"
        )


def choose_columns(row: TableRow, columns: Mapping[str, Any], roles: Sequence[str], location: str) -> dict[str, Any]:
    """Choose the column of each role: that of the recipe, or a usual one."""
    usual_columns = {role: [name for name in names if name in row] for role, names in DEFAULT_COLUMNS.items()}
    for role in roles:
        if role not in columns and not usual_columns[role]:
            hint = "; if each line is a label, a blank and a text, set data.label_first=true" * (len(row) == 1)
            raise TextError(
                f"{location}: no column for the {role} (such as "
                f"{', '.join(DEFAULT_COLUMNS[role])}); it has {', '.join(map(str, row))}. Name it with "
                f"data.columns.{role}, or number all columns from 1{hint}"
            )
    if "pair" not in roles and "text" not in columns and usual_columns["pair"]:
        raise TextError(
            f"{location}: two texts, {usual_columns['text'][0]} and {usual_columns['pair'][0]}; train on "
            "pairs with the recipe bert-pairs (numbers: bert-numbers), or name the one to read "
            "with data.columns.text"
        )
    return {role: columns[role] if role in columns else usual_columns[role][0] for role in roles}


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
