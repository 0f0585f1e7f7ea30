"""The tables of the SQLite engine, as the steps that lead to them.

``SCHEMAS[0]`` makes a new memory; each later script brings a memory of the version before it up to
date. They run in one transaction, so that a kill leaves the old version or the new one. A script
that was released is never changed again.
"""

import sqlite3

from mnemic.store.contract import StoreError

APPLICATION = 0x6D6E656D  # "mnem": whose file this is, in its header

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
    # See ``keys`` for what is in it. No row: written before there were keys. They have a table of
    # their own because all vectors are read in a first look, and few keys in a second one.
    """
    CREATE TABLE keys (
        passage INTEGER PRIMARY KEY REFERENCES vectors (passage) ON DELETE CASCADE,
        keys BLOB NOT NULL
    );
    """,
)
# What makes an older memory that may not be changed look like today's, from its version on.
SHOWN = (
    "",
    "CREATE TEMP VIEW keys AS SELECT passage, x'' AS keys FROM main.vectors WHERE FALSE",
)


def migrate(connection: sqlite3.Connection, location: str) -> None:
    """Bring a memory, or an empty file, to today's schema; refuse what is not ours or is newer."""
    version = version_of(connection, location)
    if version == len(SCHEMAS):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for script in SCHEMAS[version_of(connection, location) :]:
            for statement in statements(script):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {len(SCHEMAS)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def show(connection: sqlite3.Connection, version: int) -> None:
    """Let a memory of an older version be read as one of today; it is left as it is."""
    for statement in SHOWN[version:]:
        connection.execute(statement)


def version_of(connection: sqlite3.Connection, location: str) -> int:
    """Which schema a file has; 0 for an empty one."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application != APPLICATION and (tables or version or application):
        raise StoreError(
            f"{location} is a SQLite file of another program, not a memory; it was left as it is: "
            "give another path"
        )
    if version > len(SCHEMAS):
        raise StoreError(
            f"{location} was written by a newer mnemic (its schema is {version}, this one knows "
            f"{len(SCHEMAS)}); it was left as it is: upgrade mnemic"
        )
    return version


def statements(script: str) -> list[str]:
    """The statements of a script, one by one: ``executescript`` would commit before it begins."""
    return [statement for text in script.split(";") if (statement := text.strip())]
