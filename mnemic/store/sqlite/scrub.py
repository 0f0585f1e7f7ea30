"""Scrub deleted data from a SQLite file, and test whether bytes are still stored."""

from mnemic.store.sqlite.connection import SQLiteConnection

FIND_IN_EMBEDDINGS = (
    "SELECT EXISTS (SELECT 1 FROM vectors WHERE instr(vector, ?1)) OR EXISTS (SELECT 1 FROM keys WHERE instr(keys, ?1))"
)


def scrub_memory(connection: SQLiteConnection) -> bool:
    """Rewrite index and file, empty the journal; False if a reader prevents it.

    SQLite overwrites deleted rows at once (``secure_delete``); rewriting makes sure that no page
    keeps an old copy of them.
    """
    run = connection.execute
    run("INSERT INTO lexicon (lexicon) VALUES ('optimize')")
    run("PRAGMA temp_store = DEFAULT")  # the copy may be larger than the RAM
    run("VACUUM")
    run("PRAGMA temp_store = MEMORY")
    if empty_journal(connection):
        run("DELETE FROM facts WHERE name = 'remains'")
    return empty_journal(connection)


def empty_journal(connection: SQLiteConnection) -> bool:
    """Truncate the write-ahead log; return False if a reader uses it."""
    (busy, _, _), *_ = connection.fetch_all("PRAGMA wal_checkpoint(TRUNCATE)")
    return not busy


def is_remembered(connection: SQLiteConnection, trace: bytes) -> bool:
    """Return whether a trace occurs in a stored document."""
    text = trace.decode("utf-8", "ignore")
    conditions = {
        "passages": "instr(text, ?1) OR instr(lower(text), ?1) OR instr(words, ?1)",
        "documents": "instr(title, ?1) OR instr(digest, ?1) OR instr(notes, ?1)",
        "places": "instr(path, ?1)",
        "events": "instr(path, ?1)",
        "sqlite_master": "instr(lower(sql), ?1)",
    }
    queries = (f"SELECT 1 FROM {table} WHERE {where} LIMIT 1" for table, where in conditions.items())
    return any(connection.fetch_value(sql, (text,)) for sql in queries) or bool(
        connection.fetch_value(FIND_IN_EMBEDDINGS, (trace,))
    )
