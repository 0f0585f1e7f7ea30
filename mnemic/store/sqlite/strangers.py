"""Compare the tables of a SQLite file with those that mnemic makes.

A memory from elsewhere may have a trigger that copies all that is remembered, or a view in place of
a table. mnemic makes no triggers and one view; a file with anything else is not opened.
"""

import sqlite3
from functools import cache

from mnemic.store.connection import Connection
from mnemic.store.contract import StoreError
from mnemic.store.sqlite.migrations import SCHEMAS

SELECT_OBJECTS = "SELECT type, name, tbl_name, sql FROM sqlite_master"
STATISTICS = {("table", f"sqlite_stat{number}", f"sqlite_stat{number}") for number in (1, 3, 4)}  # of ANALYZE
SHADOW_PREFIXES = ("lexicon_", "question_lexicon_")  # tables of FTS5, whose SQL may differ between versions of SQLite
Objects = dict[tuple[str, str, str], str]  # type, name, table → SQL


@cache
def make_objects(version: int) -> Objects:
    """Return what the scripts of a schema version make."""
    connection = sqlite3.connect(":memory:")
    try:
        for script in SCHEMAS[:version]:
            connection.executescript(script)
        return normalize_objects(connection.execute(SELECT_OBJECTS).fetchall())
    finally:
        connection.close()


def normalize_objects(rows: list[tuple[str, str, str, str | None]]) -> Objects:
    """Return objects with their SQL, without white space that says nothing."""
    return {
        (kind, name, table): "" if name.startswith(SHADOW_PREFIXES) else " ".join((sql or "").split())
        for kind, name, table, sql in rows
    }


def check_schema(connection: Connection, version: int) -> None:
    """Raise ``StoreError`` if a memory has anything that mnemic did not make, or lacks it."""
    objects, expected = normalize_objects(connection.fetch_all(SELECT_OBJECTS)), make_objects(version)
    for key in sorted(objects.keys() | expected.keys()):
        if key in STATISTICS or objects.get(key) == expected.get(key):
            continue
        kind, name, table = key
        reason = (
            f"a {kind} {name!r} on {table!r} that mnemic did not make, which could copy or change what is remembered"
            if key not in expected
            else f"no {kind} {name!r} as mnemic makes it"
        )
        raise StoreError(
            f"{connection.location} has {reason}; it was left as it is. Restore a backup, or, if you "
            "know the file, put it right with sqlite3"
        )
