"""The tables of the PostgreSQL engine: one migration script per schema version.

As in ``sqlite.migrations``: the first script creates a new memory, each later one migrates the
version before, all in one transaction. A released script is never changed.

Every memory has its own schema. Columns with the user's text are stored uncompressed, so that
traces of erased documents can be searched, and without statistics, because those are copies.
``lexicon`` has the stems of a passage with their positions as a ``tsvector``; the stemmer is
Porter's, as in SQLite.
"""

from pathlib import Path

from mnemic.store.connection import Connection, check_version, read_schemas
from mnemic.store.contract import StoreError
from mnemic.store.postgres.address import Address
from mnemic.store.postgres.locks import lock_transaction
from mnemic.store.postgres.strangers import check_owners

SCHEMAS = read_schemas(Path(__file__).with_name("schemas"))


def migrate(connection: Connection, address: Address) -> None:
    """Migrate or create a memory, under a lock on which other processes wait."""
    schema = address.schema
    with connection.transaction():
        lock_transaction(connection, schema)
        version = read_version(connection, schema)
        # Who may not create a schema may have been given one.
        if version == 0 and not connection.fetch_all("SELECT 1 FROM pg_namespace WHERE nspname = ?", (schema,)):
            connection.execute(f'CREATE SCHEMA "{schema}"')
        check_owners(connection, address)  # somebody else may have created it meanwhile
        for script in SCHEMAS[version:]:
            connection.execute(script)
        connection.execute(
            "INSERT INTO facts VALUES ('schema', %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (str(len(SCHEMAS)),),
        )


def is_migrated(version: int) -> bool:
    """Return whether a memory of this schema version needs no migration."""
    return version == len(SCHEMAS)


def read_version(connection: Connection, schema: str) -> int:
    """Return the schema version of a memory; 0 without tables."""
    tables = "SELECT tablename FROM pg_tables WHERE schemaname = %s"
    table_names = {name for (name,) in connection.fetch_all(tables, (schema,))}
    if not table_names:
        return 0
    if not {"facts", "documents", "passages"} <= table_names:
        raise StoreError(
            f"{connection.location}: the schema {schema} of the database has tables of another program "
            "in it; it was left as it is: give another name, as in postgresql://…#NAME"
        )
    version = int(connection.fetch_value(f"SELECT value FROM \"{schema}\".facts WHERE name = 'schema'"))
    return check_version(version, len(SCHEMAS), connection.location)
