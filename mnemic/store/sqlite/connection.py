"""A SQLite connection: permissions, durability, migration and readable errors."""

import json
import os
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import finalize

from mnemic.files import is_owner, open_private
from mnemic.store.connection import Connection, Values
from mnemic.store.contract import BEGIN_ADVICE, MissingMemoryError, StoreError
from mnemic.store.sqlite.migrations import COMPATIBILITY_VIEWS, migrate, read_version
from mnemic.store.sqlite.side_files import check_side_files, make_private
from mnemic.store.sqlite.strangers import check_schema
from mnemic.store.trust import is_trusted

BUSY_TIMEOUT_S = 5  # wait for another process that is committing
FETCH_SIZE = 500  # rows per block
CACHE_KIB = 32_768  # of pages kept in memory

# SQLite's error names, and what a user can do. Whatever was committed is still there.
ERROR_HINTS = {
    "SQLITE_FULL": "the disk is full; free some space and try again",
    "SQLITE_READONLY": "the file or its folder is read-only; reading it still works",
    "SQLITE_BUSY": "another process is writing into it; wait for it to end",
    "SQLITE_NOTADB": "this is no SQLite file, or its header was overwritten; restore a backup",
    "SQLITE_CORRUPT": "the file is damaged or truncated; restore a backup, or save what can "
    "still be read with `mnemic export-memory`",
    "SQLITE_CANTOPEN": "the file cannot be opened; is its folder there, and may you read it?",
    "SQLITE_IOERR": "the disk cannot read or write it",
    "SQLITE_TOOBIG": "a text is too long for one row",
}


class SQLiteConnection(Connection):
    """A connection to a SQLite file that raises ``StoreError`` with advice."""

    in_ids = "IN (SELECT value FROM json_each(?))"
    find_function = "instr"
    path_array = "json_group_array(path)"
    row_lock = ""  # a transaction has the whole file for itself

    def __init__(self, path: Path, *, create: bool) -> None:
        self.path, self.location = path, str(path)
        if not path.exists() and not create:
            raise MissingMemoryError(f"there is no memory {path}; {BEGIN_ADVICE}")
        if not create and not path.stat().st_size:
            raise MissingMemoryError(
                f"{path} is an empty file: nothing was remembered in it yet, or it was truncated. "
                "Start a new memory with `mnemic remember FILE_OR_FOLDER`, or restore a backup"
            )
        if path.is_dir():
            raise StoreError(f"{path} is a folder; a memory is a file, such as {path}/memory.db")
        self.is_foreign = path.exists() and not is_owner(path.stat())
        self.read_only_reason = self.find_read_only_reason(create=create)
        self.writable = not self.read_only_reason
        journal = path.with_name(f"{path.name}-wal")
        self.is_immutable = not self.writable and not journal.exists()
        self.stamp_at_open = read_file_stamp(path) if self.is_immutable else None
        with self.translate_errors():
            if not path.exists():
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                os.close(open_private(path, any_owner=True))  # some drives give all files to one user
            check_side_files(path)
            if self.writable and not self.is_foreign:
                make_private(path)
            self.raw = sqlite3.connect(self.build_uri(), uri=True, isolation_level=None, check_same_thread=False)
            finalize(self, self.raw.close)  # at the latest when its thread ends
            try:
                self.prepare()
            except BaseException:
                self.raw.close()
                raise

    def find_read_only_reason(self, *, create: bool) -> str:
        """Return why the file cannot be written; empty if it can."""
        if not create and not (os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK)):
            return "is read-only"
        if self.is_foreign and not is_trusted(self.path):
            return f"belongs to another user, and is not written; if you trust it: mnemic trust {self.path}"
        return ""

    def build_uri(self) -> str:
        """Build the URI for SQLite, which cannot create a journal in a read-only folder.

        Without a journal the file is opened as immutable: SQLite does not notice other writers.
        """
        escaped = str(self.path.absolute()).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
        return f"file:{escaped}?mode={'rw' if self.writable else 'ro'}{'&immutable=1' if self.is_immutable else ''}"

    def prepare(self) -> None:
        """Set the pragmas and migrate the file, if it may be written."""
        for pragma in (
            f"busy_timeout = {BUSY_TIMEOUT_S * 1000}",
            "trusted_schema = OFF",  # the file may come from anywhere
            "cell_size_check = ON",
        ):
            self.raw.execute(f"PRAGMA {pragma}")
        if sys.version_info >= (3, 12):
            self.raw.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE)
        with self.snapshot():
            version = read_version(self)  # raises for a foreign file, before any change
            check_schema(self, version)
        if not self.writable:
            if version == 0:
                raise StoreError(f"{self.path} is empty, not a memory")
            for view in COMPATIBILITY_VIEWS[version:]:
                self.raw.execute(view)
            return
        for pragma in (
            "journal_mode = WAL",
            "synchronous = FULL",  # committed data survives a power cut
            "secure_delete = ON",  # deleted data is overwritten
            "foreign_keys = ON",
            "temp_store = MEMORY",  # no text is written to temporary files
            f"cache_size = -{CACHE_KIB}",
        ):
            self.raw.execute(f"PRAGMA {pragma}")
        migrate(self)

    def execute(self, sql: str, values: Values = ()) -> sqlite3.Cursor:
        """Execute a statement."""
        with self.translate_errors():
            return self.raw.execute(sql, values)

    def fetch_blocks(self, sql: str, values: Values = ()) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the rows of a query in blocks of ``FETCH_SIZE``."""
        with self.translate_errors():
            cursor = self.raw.execute(sql, values)
            while block := cursor.fetchmany(FETCH_SIZE):
                yield block

    def insert_row(self, sql: str, values: Sequence[Any]) -> int:
        """Execute an INSERT of one row and return the row's id."""
        row_id = self.execute(sql, values).lastrowid
        assert row_id is not None
        return row_id

    def pack_ids(self, ids: Sequence[int]) -> str:
        """Convert ids to the value that ``in_ids`` takes."""
        return json.dumps(list(ids))

    def read_state(self) -> object:
        """Return two numbers: one changes with commits of others, one with changes of our own."""
        return self.fetch_value("PRAGMA data_version"), self.raw.total_changes

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the block in a transaction; roll it back on any exception."""
        self.execute("BEGIN IMMEDIATE")
        self.in_transaction = True
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            if self.raw.in_transaction:  # a full disk may have ended it already
                self.raw.execute("ROLLBACK")
            raise
        finally:
            self.in_transaction = False

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read one consistent state throughout the block, whatever others write."""
        if self.raw.in_transaction:
            yield
            return
        self.execute("BEGIN")
        try:
            yield
        finally:
            if self.raw.in_transaction:
                self.raw.execute("ROLLBACK")  # works even on a damaged file

    def check_unchanged(self) -> None:
        """Raise ``StoreError`` if an immutable file was written since it was opened."""
        if self.is_immutable and read_file_stamp(self.path) != self.stamp_at_open:
            raise StoreError(f"{self.path} was written by another process while it was open here; open it again")

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Raise errors of SQLite and the system as ``StoreError`` with advice."""
        try:
            yield
        except sqlite3.Error as error:
            name = getattr(error, "sqlite_errorname", None) or ""
            for prefix, hint in ERROR_HINTS.items():
                if name.startswith(prefix):
                    raise StoreError(f"{self.path}: {hint} ({error})") from error
            raise StoreError(f"{self.path}: {error}") from error
        except OSError as error:
            culprit = f": {error.filename}" if error.filename not in (None, str(self.path)) else ""
            raise StoreError(f"{self.path}: {error.strerror or error}{culprit}") from error

    def close(self) -> None:
        self.raw.close()


def read_file_stamp(path: Path) -> tuple[int, int]:
    """Return size and time of a file, which change when it is written."""
    stat = path.stat()
    return stat.st_size, stat.st_mtime_ns
