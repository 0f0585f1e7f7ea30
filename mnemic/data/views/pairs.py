"""Read pairs of texts that belong together, and their hard negatives."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mnemic.data.text_tasks.examples import TextError
from mnemic.data.text_tasks.files import read_lines
from mnemic.data.text_tasks.tables import TableRow, format_value, read_rows

# Usual names of columns; the first that a file has is used.
USUAL_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "first": ("question", "query", "sentence1", "text_a", "first"),
    "second": ("answer", "text", "passage", "sentence2", "text_b", "second"),
}


class TextPair(NamedTuple):
    """Two texts that belong together, such as a question and its answer."""

    first: str
    second: str


def read_pairs(path: Path, columns: Mapping[str, Any]) -> list[TextPair]:
    """Read all pairs of a file; ``columns`` overrides the usual column names of a text."""
    if unknown := [role for role in columns if role not in USUAL_COLUMNS]:
        raise TextError(f"data.columns takes first and second, not {unknown[0]!r}")
    pairs = []
    for number, row in read_rows(path, {}):
        texts = [join_columns(row, role, columns, f"{path}, line {number}") for role in USUAL_COLUMNS]
        pairs.append(TextPair(*texts))
    if not pairs:
        raise TextError(f"{path} holds no pairs of texts")
    return pairs


def join_columns(row: TableRow, role: str, columns: Mapping[str, Any], location: str) -> str:
    """Join the texts of a role's columns, those that a row has, with blanks."""
    usual = [name for name in USUAL_COLUMNS[role] if name in row][:1]
    choice = columns.get(role, usual)
    names = [name for name in ([choice] if isinstance(choice, str) else choice) if name in row]
    if not names:
        expected = f"{choice!r}" if choice else f"for the {role} text"
        raise TextError(
            f"{location}: no column {expected}; it has {', '.join(map(str, row))}. Name it with data.columns.{role}"
        )
    text = " ".join(format_value(row[name]) for name in names).strip()
    if not text:
        raise TextError(f"{location}: the {role} text is empty; leave the pair out")
    return text


def read_negatives(path: Path) -> dict[TextPair, Sequence[str]]:
    """Read mined hard negatives: ``{"first": …, "second": …, "negatives": [texts]}`` a line."""
    if not path.is_file():
        raise TextError(f"no file {path} with hard negatives: make it with `mnemic data negatives`")
    negatives: dict[TextPair, Sequence[str]] = {}
    for number, line in read_lines(path):
        try:
            row = json.loads(line)
            pair, texts = TextPair(row["first"], row["second"]), row["negatives"]
            is_valid = all(isinstance(text, str) for text in [*pair, *texts]) and isinstance(texts, list)
        except (json.JSONDecodeError, KeyError, TypeError):
            is_valid = False
        if not is_valid:
            raise TextError(
                f'{path}, line {number}: expected {{"first": …, "second": …, "negatives": [texts]}}, not {line[:60]}'
            )
        negatives[pair] = texts
    return negatives
