"""A connection to a memory's tables: what all engines do alike."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from mnemic.store.contract import StoreError

# By table, what has the text of documents: a stored one may share a trace with an erased one.
SHARED_TEXT_COLUMNS = {
    "passages": ("text", "lower(text)"),
    "questions": ("text", "lower(text)"),
    "documents": ("title", "digest", "notes"),
    "places": ("path",),
    "events": ("path",),
}
BATCH_SIZE = 256  # rows per statement
Values: TypeAlias = Sequence[Any] | Mapping[str, Any]


class Connection(Protocol):
    """One thread's connection to a memory's tables; any thread may close it."""

    location: str  # of the memory, as text for the user
    in_ids: str  # the condition that a column is one of the ids of ``pack_ids``
    find_function: str  # the function for the position of a value in another one, from 1
    path_array: str  # the aggregate of ``path`` as a JSON array
    row_lock: str  # the end of a SELECT that locks its rows until the transaction ends
    is_writing: bool = False  # within ``Store.write_session``
    in_transaction: bool = False  # within ``transaction``, which may be rolled back
    unchanged_row: tuple[object, tuple[Any, ...]] = (None, ())  # state of the memory, row

    def close(self) -> None:
        """Close the connection."""

    def transaction(self) -> AbstractContextManager[None]:
        """Run the block in a transaction; roll it back on any exception."""

    def snapshot(self) -> AbstractContextManager[None]:
        """Read one consistent state throughout the block, whatever others write."""

    def translate_errors(self) -> AbstractContextManager[None]:
        """Raise errors of the driver as ``StoreError`` with advice."""

    def execute(self, sql: str, values: Values = ()) -> Any:
        """Execute a statement."""

    def insert_row(self, sql: str, values: Sequence[Any]) -> int:
        """Execute an INSERT of one row and return the row's id."""

    def pack_ids(self, ids: Sequence[int]) -> Any:
        """Convert ids to the value that ``in_ids`` takes."""

    def read_state(self) -> object:
        """Return a value that changes with every commit."""

    def fetch_all(self, sql: str, values: Values = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a query."""
        with self.translate_errors():
            return list(self.execute(sql, values))

    def fetch_value(self, sql: str, values: Values = ()) -> Any:
        """Return the first column of the first row; None if there is no row."""
        rows = self.fetch_all(sql, values)
        return rows[0][0] if rows else None

    def fetch_unchanged(self, sql: str) -> tuple[Any, ...]:
        """Return the only row of a query, cached until the memory changes."""
        state = (sql, self.read_state())
        if self.in_transaction or self.unchanged_row[0] != state:
            self.unchanged_row = (None if self.in_transaction else state, self.fetch_all(sql)[0])
        return self.unchanged_row[1]

    def contains(self, columns: Mapping[str, Sequence[str]], value: str | bytes) -> bool:
        """Return whether a value occurs in one of these columns, given by table."""
        for table, names in columns.items():
            condition = " OR ".join(f"{self.find_function}({name}, ?) > 0" for name in names)
            if self.fetch_value(f"SELECT 1 FROM {table} WHERE {condition} LIMIT 1", [value] * len(names)):
                return True
        return False

    def fetch_blobs(self, expression: str, table: str, slot_ids: Sequence[int]) -> dict[int, bytes]:
        """Return packed vectors by slot id; slots without a row are left out."""
        select = f"SELECT passage, {expression} FROM {table} WHERE passage {self.in_ids}"
        return dict(self.fetch_all(select, (self.pack_ids(slot_ids),)))

    def stream_rows(self, sql: str, last: Any) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query whose first column, its order, is above ``last``.

        No statement stays open.
        """
        while rows := self.fetch_all(f"{sql} LIMIT {BATCH_SIZE}", (last,)):
            yield from rows
            last = rows[-1][0]


def read_schemas(folder: Path) -> tuple[str, ...]:
    """Read the migration scripts of an engine, in the order of schema versions."""
    scripts = tuple(path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.sql")))
    assert scripts, f"{folder} has no scripts: the installation of mnemic is not complete"
    return scripts


def check_version(version: int, known_version: int, location: str) -> int:
    """Return the schema version of a memory, or raise ``StoreError`` if it is newer."""
    if version > known_version:
        raise StoreError(
            f"{location} was written by a newer mnemic (its schema is {version}, this one knows "
            f"{known_version}); it was left as it is: upgrade mnemic"
        )
    return version
