"""The tables of the PostgreSQL engine, as the steps that lead to them.

As in ``schema``: the first script makes a new memory, each later one brings the version before it
up to date, all in one transaction. A script that was released is never changed again.

Every memory has a schema of its own. The columns that hold what a person told are stored as they
are, not compressed, so that traces of what was forgotten can be looked for; and no statistics are
made of them, because those are copies. ``lexicon`` has the stems of a passage with their places, in
the type that PostgreSQL's index for full text knows; Porter's stemmer is SQLite's.
"""

from typing import TYPE_CHECKING

from mnemic.store.contract import StoreError

if TYPE_CHECKING:
    from mnemic.store.postgres.connection import Connection

SCHEMAS = (
    """
    CREATE TABLE facts (name text PRIMARY KEY, value text NOT NULL);
    CREATE TABLE documents (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        digest text NOT NULL,
        kind text NOT NULL,
        title text NOT NULL,
        notes text NOT NULL,
        previous bigint REFERENCES documents (id) ON DELETE SET NULL,
        remembered text NOT NULL,
        retired text,
        passages bigint NOT NULL DEFAULT 0,
        characters bigint NOT NULL DEFAULT 0
    );
    CREATE UNIQUE INDEX documents_read ON documents (digest) WHERE retired IS NULL;
    CREATE INDEX documents_previous ON documents (previous);
    CREATE TABLE places (
        path text COLLATE "C" PRIMARY KEY,
        document bigint NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
        size bigint NOT NULL,
        modified bigint NOT NULL
    );
    CREATE INDEX places_document ON places (document);
    CREATE TABLE events (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        document bigint NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
        at text COLLATE "C" NOT NULL,
        what text NOT NULL,
        path text NOT NULL
    );
    CREATE INDEX events_document ON events (document);
    CREATE INDEX events_path ON events USING hash (path);
    CREATE TABLE passages (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        document bigint NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
        number bigint NOT NULL,
        page bigint,
        text text NOT NULL,
        sentences bigint[] NOT NULL,
        UNIQUE (document, number)
    );
    CREATE TABLE lexicon (
        passage bigint PRIMARY KEY REFERENCES passages (id) ON DELETE CASCADE,
        stems tsvector NOT NULL,
        length bigint NOT NULL
    );
    CREATE INDEX lexicon_stems ON lexicon USING gin (stems) WITH (gin_pending_list_limit = 1024);
    CREATE TABLE vectors (
        passage bigint PRIMARY KEY REFERENCES passages (id) ON DELETE CASCADE,
        vector halfvec NOT NULL
    );
    CREATE TEXT SEARCH DICTIONARY stem (TEMPLATE = pg_catalog.snowball, Language = porter);
    ALTER TABLE documents ALTER title SET STORAGE EXTERNAL, ALTER title SET STATISTICS 0,
        ALTER notes SET STORAGE EXTERNAL, ALTER notes SET STATISTICS 0,
        ALTER digest SET STATISTICS 0;
    ALTER TABLE places ALTER path SET STATISTICS 0;
    ALTER TABLE events ALTER path SET STATISTICS 0;
    ALTER TABLE passages ALTER text SET STORAGE EXTERNAL, ALTER text SET STATISTICS 0;
    ALTER TABLE lexicon ALTER stems SET STORAGE EXTERNAL, ALTER stems SET STATISTICS 0;
    ALTER TABLE vectors ALTER vector SET STORAGE PLAIN, ALTER vector SET STATISTICS 0;
    """,
    # See ``keys`` for what is in it. NULL: written before there were keys.
    """
    ALTER TABLE vectors ADD COLUMN keys bytea;
    ALTER TABLE vectors ALTER keys SET STORAGE EXTERNAL, ALTER keys SET STATISTICS 0;
    """,
)
LOCK = "SELECT pg_advisory_xact_lock(hashtext(%s))"


def migrate(connection: "Connection") -> None:
    """Bring a memory, or none, to today's schema; others who would do the same wait."""
    if version_of(connection) == len(SCHEMAS):
        return
    schema = connection.address.schema
    with connection.transaction():
        connection.execute(LOCK, (schema,))
        version = version_of(connection)
        if version == 0 and not there(connection):
            connection.execute(f'CREATE SCHEMA "{schema}"')
        for script in SCHEMAS[version:]:
            connection.execute(script)
        connection.execute(
            "INSERT INTO facts VALUES ('schema', %s) "
            "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (str(len(SCHEMAS)),),
        )


def there(connection: "Connection") -> bool:
    sql = "SELECT 1 FROM pg_namespace WHERE nspname = %s"
    return bool(connection.rows(sql, (connection.address.schema,)))


def version_of(connection: "Connection") -> int:
    """Which version a memory has; 0 if it is not there, or is an empty schema made for it."""
    address = connection.address
    tables = "SELECT tablename FROM pg_tables WHERE schemaname = %s"
    found = {name for (name,) in connection.rows(tables, (address.schema,))}
    if not found:
        return 0
    if not {"facts", "documents", "passages"} <= found:
        raise StoreError(
            f"{address}: the schema {address.schema} of the database has tables of another program "
            "in it; it was left as it is: give another name, as in postgresql://…#NAME"
        )
    version = int(
        connection.value(f"SELECT value FROM \"{address.schema}\".facts WHERE name = 'schema'")
    )
    if version > len(SCHEMAS):
        raise StoreError(
            f"{address} was written by a newer mnemic (its schema is {version}, this one knows "
            f"{len(SCHEMAS)}); it was left as it is: upgrade mnemic"
        )
    return version
