"""The tables of the PostgreSQL engine: one migration script per schema version.

As in ``sqlite.migrations``: the first script creates a new memory, each later one migrates the
version before, all in one transaction. A released script is never changed.

Every memory has its own schema. Columns with the user's text are stored uncompressed, so that
traces of erased documents can be searched, and without statistics, because those are copies.
``lexicon`` has the stems of a passage with their positions as a ``tsvector``; the stemmer is
Porter's, as in SQLite.
"""

from mnemic.store.contract import StoreError
from mnemic.store.postgres.address import Address
from mnemic.store.relational import Connection

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
    # Sentence vectors, as ``sentence_keys`` packs them. NULL: written by an older version.
    """
    ALTER TABLE vectors ADD COLUMN keys bytea;
    ALTER TABLE vectors ALTER keys SET STORAGE EXTERNAL, ALTER keys SET STATISTICS 0;
    """,
)
ADVISORY_LOCK = "SELECT pg_advisory_xact_lock(hashtext(%s))"


def migrate(connection: Connection, address: Address) -> None:
    """Migrate or create a memory, under a lock on which other processes wait."""
    if read_version(connection, address) == len(SCHEMAS):
        return
    schema = address.schema
    with connection.transaction():
        connection.execute(ADVISORY_LOCK, (schema,))
        version = read_version(connection, address)
        if version == 0 and not has_schema(connection, address):
            connection.execute(f'CREATE SCHEMA "{schema}"')
        for script in SCHEMAS[version:]:
            connection.execute(script)
        connection.execute(
            "INSERT INTO facts VALUES ('schema', %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (str(len(SCHEMAS)),),
        )


def has_schema(connection: Connection, address: Address) -> bool:
    """Return whether the schema of the memory exists."""
    sql = "SELECT 1 FROM pg_namespace WHERE nspname = %s"
    return bool(connection.fetch_all(sql, (address.schema,)))


def read_version(connection: Connection, address: Address) -> int:
    """Return the schema version of a memory; 0 without tables."""
    tables = "SELECT tablename FROM pg_tables WHERE schemaname = %s"
    table_names = {name for (name,) in connection.fetch_all(tables, (address.schema,))}
    if not table_names:
        return 0
    if not {"facts", "documents", "passages"} <= table_names:
        raise StoreError(
            f"{address}: the schema {address.schema} of the database has tables of another program "
            "in it; it was left as it is: give another name, as in postgresql://…#NAME"
        )
    version = int(connection.fetch_value(f"SELECT value FROM \"{address.schema}\".facts WHERE name = 'schema'"))
    if version > len(SCHEMAS):
        raise StoreError(
            f"{address} was written by a newer mnemic (its schema is {version}, this one knows "
            f"{len(SCHEMAS)}); it was left as it is: upgrade mnemic"
        )
    return version
