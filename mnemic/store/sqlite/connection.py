"""A SQLite file, opened with care: who may read it, how it is synced, and its errors in words."""

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mnemic.store.contract import StoreError
from mnemic.store.sqlite.migrations import migrate, show, version_of

PATIENCE = 5  # seconds to wait for another process that is committing
CACHE = 32_768  # KiB of pages kept in memory
AT_ONCE = 500  # rows
OWNER = 0o600

# What SQLite says, and what a person can do about it. Whatever was committed is still there.
WORDS = {
    "SQLITE_FULL": "the disk is full; make room and do it again",
    "SQLITE_READONLY": "the file or its folder is read-only; reading it still works",
    "SQLITE_BUSY": "another process is writing into it; wait for it to end",
    "SQLITE_NOTADB": "this is no SQLite file, or its beginning was overwritten; put a backup back",
    "SQLITE_CORRUPT": "the file is damaged or was cut short; put a backup back, or save what can "
    "still be read with `mnemic export-memory`",
    "SQLITE_CANTOPEN": "the file cannot be opened; is its folder there, and may you read it?",
    "SQLITE_IOERR": "the disk refuses to read or write it",
    "SQLITE_TOOBIG": "a text is too long for one row",
}


class Connection:
    """A connection whose errors are ``StoreError``, saying what to do."""

    def __init__(self, path: Path, *, create: bool) -> None:
        self.path = path
        if not path.exists() and not create:
            raise StoreError(
                f"there is no memory {path}; begin one: mnemic remember FILE_OR_FOLDER"
            )
        if not create and not path.stat().st_size:
            raise StoreError(
                f"{path} is an empty file: nothing was remembered in it yet, or it was cut off. "
                "mnemic remember FILE_OR_FOLDER begins anew; a copy, if there is one, goes on"
            )
        if path.is_dir():
            raise StoreError(f"{path} is a folder; a memory is a file, such as {path}/memory.db")
        self.writable = create or (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))
        journal = path.with_name(f"{path.name}-wal")
        self.alone = not self.writable and not journal.exists()
        self.opened = stamp(path) if self.alone else None
        with self.worded():
            if not path.exists():
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                os.close(os.open(path, os.O_CREAT | os.O_RDWR, OWNER))
            self.raw = sqlite3.connect(self.address(), uri=True, isolation_level=None)
            try:
                self.prepare()
            except BaseException:
                self.raw.close()
                raise

    def address(self) -> str:
        """Where SQLite finds it; a journal beside it cannot be made in a read-only folder.

        Without one it is read as a file that nobody writes: whether somebody does, goes unnoticed.
        """
        escaped = str(self.path.absolute()).replace("%", "%25").replace("?", "%3f")
        escaped = escaped.replace("#", "%23")
        how = "rw" if self.writable else "ro"
        return f"file:{escaped}?mode={how}" + ("&immutable=1" if self.alone else "")

    def prepare(self) -> None:
        self.raw.execute(f"PRAGMA busy_timeout = {PATIENCE * 1000}")
        if not self.writable:
            version = version_of(self.raw, str(self.path))
            if version == 0:
                raise StoreError(f"{self.path} is empty, not a memory")
            show(self.raw, version)
            return
        version_of(self.raw, str(self.path))  # before anything is changed
        for pragma in (
            "journal_mode = WAL",
            "synchronous = FULL",  # what was acknowledged survives a power cut
            "secure_delete = ON",  # what is deleted is overwritten
            "foreign_keys = ON",
            "temp_store = MEMORY",  # nothing of a memory lies in a folder of temporary files
            f"cache_size = -{CACHE}",
        ):
            self.raw.execute(f"PRAGMA {pragma}")
        migrate(self.raw, str(self.path))

    def execute(self, sql: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        with self.worded():
            return self.raw.execute(sql, values)

    def many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        with self.worded():
            self.raw.executemany(sql, rows)

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self.worded():
            return self.raw.execute(sql, values).fetchall()

    def blocks(self, sql: str, values: Sequence[Any] = ()) -> Iterator[list[tuple[Any, ...]]]:
        """All rows, ``AT_ONCE`` at a time."""
        with self.worded():
            cursor = self.raw.execute(sql, values)
        while True:
            with self.worded():
                block = cursor.fetchmany(AT_ONCE)
            if not block:
                return
            yield block

    def value(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """The first column of the first row; None if there is no row."""
        found = self.rows(sql, values)
        return found[0][0] if found else None

    def state(self) -> tuple[int, int]:
        """Two numbers, one of which is another after any change, by others or by ourselves."""
        return self.value("PRAGMA data_version"), self.raw.total_changes

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that happens in the block, for good, or nothing of it."""
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            if self.raw.in_transaction:  # a full disk may have ended it already
                self.raw.execute("ROLLBACK")
            raise

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """See one state of the memory throughout the block, whatever others write meanwhile."""
        if self.raw.in_transaction:
            yield
            return
        self.execute("BEGIN")
        try:
            yield
        finally:
            if self.raw.in_transaction:
                self.raw.execute("ROLLBACK")  # works even on a damaged file

    def expect_unchanged(self) -> None:
        """An error if what was read may be half old and half new."""
        if self.alone and stamp(self.path) != self.opened:
            raise StoreError(
                f"{self.path} was written by another process while it was open here; open it again"
            )

    @contextmanager
    def worded(self) -> Iterator[None]:
        """SQLite's errors in words."""
        try:
            yield
        except sqlite3.Error as error:
            name = getattr(error, "sqlite_errorname", None) or ""
            for start, words in WORDS.items():
                if name.startswith(start):
                    raise StoreError(f"{self.path}: {words} ({error})") from error
            raise StoreError(f"{self.path}: {error}") from error
        except OSError as error:
            raise StoreError(f"{self.path}: {error.strerror or error}") from error

    def close(self) -> None:
        self.raw.close()


def stamp(path: Path) -> tuple[int, int]:
    """What is another after a file was written."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns
