"""Clear a SQLite file of what was deleted from it, and tell what remains from what is there."""

from mnemic.store.sqlite.connection import Connection

MARKS = (
    "SELECT EXISTS (SELECT 1 FROM vectors WHERE instr(vector, ?1)) "
    "OR EXISTS (SELECT 1 FROM keys WHERE instr(keys, ?1))"
)


def scrub(connection: Connection) -> bool:
    """Merge the index, write the file anew, empty the journal; False if readers hold the journal.

    SQLite overwrites deleted rows at once (``secure_delete``); writing anew makes sure that no page
    keeps an old copy of them.
    """
    run = connection.execute
    run("INSERT INTO lexicon (lexicon) VALUES ('optimize')")
    run("PRAGMA temp_store = DEFAULT")  # the copy may be larger than the memory of the machine
    run("VACUUM")
    run("PRAGMA temp_store = MEMORY")
    if empty_journal(connection):
        run("DELETE FROM facts WHERE name = 'remains'")
    return empty_journal(connection)


def empty_journal(connection: Connection) -> bool:
    (busy, _, _), *_ = connection.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    return not busy


def held(connection: Connection, trace: bytes) -> bool:
    """Whether these bytes belong to something that is remembered."""
    text = trace.decode("utf-8", "ignore")
    places = {
        "passages": "instr(text, ?1) OR instr(lower(text), ?1) OR instr(words, ?1)",
        "documents": "instr(title, ?1) OR instr(digest, ?1) OR instr(notes, ?1)",
        "places": "instr(path, ?1)",
        "events": "instr(path, ?1)",
        "sqlite_master": "instr(lower(sql), ?1)",
    }
    asked = (f"SELECT 1 FROM {table} WHERE {where} LIMIT 1" for table, where in places.items())
    return any(connection.value(sql, (text,)) for sql in asked) or bool(
        connection.value(MARKS, (trace,))
    )
