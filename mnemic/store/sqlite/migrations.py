"""The tables of the SQLite engine: one migration script per schema version.

The first script of ``schemas`` creates a new memory; each later one migrates a memory of the
version before. They run in one transaction, so that a kill leaves the old version or the new one. A
released script is never changed.
"""

import sqlite3
from pathlib import Path

from mnemic.store.contract import StoreError
from mnemic.store.relational import check_version, read_schemas

APPLICATION_ID = 0x6D6E656D  # "mnem", in the header of the file
SCHEMAS = read_schemas(Path(__file__).with_name("schemas"))
# Views that make a read-only memory of an older version look like the current one, by version.
COMPATIBILITY_VIEWS = ("", "CREATE TEMP VIEW keys AS SELECT passage, x'' AS keys FROM main.vectors WHERE FALSE")


def migrate(connection: sqlite3.Connection, location: str) -> None:
    """Migrate a memory or an empty file to the current schema; refuse foreign files."""
    version = read_version(connection, location)
    if version == len(SCHEMAS):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for script in SCHEMAS[read_version(connection, location) :]:
            for statement in script.rstrip(";\n").split(";"):  # ``executescript`` would commit first
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(SCHEMAS)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def read_version(connection: sqlite3.Connection, location: str) -> int:
    """Return the schema version of a file; 0 for an empty one."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application != APPLICATION_ID and (tables or version or application):
        raise StoreError(
            f"{location} is a SQLite file of another program, not a memory; it was left as it is: give another path"
        )
    return check_version(version, len(SCHEMAS), location)
