"""The tables of the SQLite engine: one migration script per schema version.

The first script of ``schemas`` creates a new memory; each later one migrates a memory of the
version before. They run in one transaction, so that a kill leaves the old version or the new one. A
released script is never changed.
"""

from pathlib import Path

from mnemic.store.connection import Connection, check_version, read_schemas
from mnemic.store.contract import StoreError

APPLICATION_ID = 0x6D6E656D  # "mnem", in the header of the file
SCHEMAS = read_schemas(Path(__file__).with_name("schemas"))
# Views that make a read-only memory of an older version look like the current one, by version.
COMPATIBILITY_VIEWS = (
    "",
    "CREATE TEMP VIEW keys AS SELECT passage, x'' AS keys FROM main.vectors WHERE FALSE",
    "CREATE TEMP VIEW boxes AS SELECT passage, 0 AS number, 0 AS x_min, 0 AS top, 0 AS x_max, 0 AS bottom "
    "FROM main.sentences WHERE FALSE",
    "CREATE TEMP VIEW questions AS SELECT passage, '' AS text, x'' AS keys FROM main.sentences WHERE FALSE",
)


def migrate(connection: Connection) -> None:
    """Migrate a memory or an empty file to the current schema; refuse foreign files."""
    if read_version(connection) == len(SCHEMAS):
        return
    with connection.transaction():
        for script in SCHEMAS[read_version(connection) :]:
            for statement in script.rstrip(";\n").split(";"):  # ``executescript`` would commit first
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(SCHEMAS)}")


def read_version(connection: Connection) -> int:
    """Return the schema version of a file; 0 for an empty one."""
    version, application = map(connection.fetch_value, ("PRAGMA user_version", "PRAGMA application_id"))
    has_tables = connection.fetch_value("SELECT count(*) FROM sqlite_master")
    if application != APPLICATION_ID and (has_tables or version or application):
        raise StoreError(
            f"{connection.location} is a SQLite file of another program, not a memory; it was left as it is: "
            "give another path"
        )
    return check_version(version, len(SCHEMAS), connection.location)
