"""Build rows of values with paths, one per record of a list."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from mnemic.text.documents.data.rows import RowBuilder, RowField
from mnemic.text.documents.piece import DocumentPiece

MAX_ROW_LENGTH = 2_000  # characters of values; a longer record is several rows


class PathValue(NamedTuple):
    """A value with its path of keys and indices."""

    path: tuple[str | int, ...]
    field: RowField


def build_records(values: Iterable[PathValue]) -> Iterator[DocumentPiece]:
    """Build pieces of rows from values in the order of the file."""
    builder = RowBuilder()
    for _, items in groupby(values, key=lambda value: find_record(value.path)):
        for row in split_row(items):
            builder.add_row(row, row[0].origin)
            if builder.is_full:
                yield from builder.take_piece()
    yield from builder.take_piece()


def find_record(path: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """Return the path of the record that a value belongs to.

    That is the item of the outermost list; a plain list and any other value are their own record.
    """
    index = next((number for number, key in enumerate(path) if isinstance(key, int)), len(path))
    return path[:index] if index + 1 >= len(path) else path[: index + 1]


def split_row(items: Iterable[PathValue]) -> Iterator[list[RowField]]:
    """Yield rows of at most ``MAX_ROW_LENGTH``."""
    row: list[RowField] = []
    size = 0
    for path, field in items:
        if row and size + len(field.value) > MAX_ROW_LENGTH:
            yield row
            row, size = [], 0
        row.append(field._replace(name=join_path(path)))
        size += len(field.value)
    if row:
        yield row


def join_path(path: tuple[str | int, ...]) -> str:
    """Join the keys of a path by dots; the indices of lists are left out."""
    return ".".join(key for key in path if isinstance(key, str))
