"""The tables of the SQLite engine: one migration script per schema version.

``SCHEMAS[0]`` creates a new memory; each later script migrates a memory of the version before. They
run in one transaction, so that a kill leaves the old version or the new one. A released script is
never changed.
"""

import sqlite3

from mnemic.store.contract import StoreError

APPLICATION_ID = 0x6D6E656D  # "mnem", in the header of the file

SCHEMAS = (
    """
    CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE documents (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        digest TEXT NOT NULL,
        kind TEXT NOT NULL,
        title TEXT NOT NULL,
        notes TEXT NOT NULL,
        previous INTEGER REFERENCES documents (id) ON DELETE SET NULL,
        remembered TEXT NOT NULL,
        retired TEXT,
        passages INTEGER NOT NULL DEFAULT 0,
        characters INTEGER NOT NULL DEFAULT 0
    );
    CREATE UNIQUE INDEX documents_read ON documents (digest) WHERE retired IS NULL;
    CREATE INDEX documents_previous ON documents (previous);
    CREATE TABLE places (
        path TEXT PRIMARY KEY,
        document INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
        size INTEGER NOT NULL,
        modified INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX places_document ON places (document);
    CREATE TABLE events (
        id INTEGER PRIMARY KEY,
        document INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
        at TEXT NOT NULL,
        what TEXT NOT NULL,
        path TEXT NOT NULL
    );
    CREATE INDEX events_document ON events (document);
    CREATE TABLE passages (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        document INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
        number INTEGER NOT NULL,
        page INTEGER,
        text TEXT NOT NULL,
        words TEXT,
        UNIQUE (document, number)
    );
    CREATE TABLE sentences (
        passage INTEGER NOT NULL REFERENCES passages (id) ON DELETE CASCADE,
        start INTEGER NOT NULL,
        "end" INTEGER NOT NULL,
        line INTEGER NOT NULL,
        first INTEGER NOT NULL,
        last INTEGER NOT NULL,
        PRIMARY KEY (passage, start)
    ) WITHOUT ROWID;
    CREATE TABLE vectors (
        passage INTEGER PRIMARY KEY REFERENCES passages (id) ON DELETE CASCADE,
        vector BLOB NOT NULL
    );
    CREATE VIEW words_read AS
        SELECT passages.id AS id, coalesce(passages.words, passages.text) AS words
        FROM passages JOIN documents ON documents.id = passages.document
        WHERE documents.retired IS NULL;
    CREATE VIRTUAL TABLE lexicon USING fts5 (
        words, content = 'words_read', content_rowid = 'id',
        tokenize = 'porter unicode61 remove_diacritics 2'
    );
    """,
    # Sentence vectors, as ``sentence_keys`` packs them. No row: written by an older version. They
    # have their own table because a search reads all passage vectors, but few sentence vectors.
    """
    CREATE TABLE keys (
        passage INTEGER PRIMARY KEY REFERENCES vectors (passage) ON DELETE CASCADE,
        keys BLOB NOT NULL
    );
    """,
)
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
            for statement in split_statements(script):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(SCHEMAS)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def create_compatibility_views(connection: sqlite3.Connection, version: int) -> None:
    """Create temporary views so that an older memory reads like a current one."""
    for statement in COMPATIBILITY_VIEWS[version:]:
        connection.execute(statement)


def read_version(connection: sqlite3.Connection, location: str) -> int:
    """Return the schema version of a file; 0 for an empty one."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application != APPLICATION_ID and (tables or version or application):
        raise StoreError(
            f"{location} is a SQLite file of another program, not a memory; it was left as it is: give another path"
        )
    if version > len(SCHEMAS):
        raise StoreError(
            f"{location} was written by a newer mnemic (its schema is {version}, this one knows "
            f"{len(SCHEMAS)}); it was left as it is: upgrade mnemic"
        )
    return version


def split_statements(script: str) -> list[str]:
    """Split a script into statements: ``executescript`` would commit first."""
    return [statement for text in script.split(";") if (statement := text.strip())]
