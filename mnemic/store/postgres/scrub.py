"""Clear a memory on a PostgreSQL server of what was deleted from it, and look for what remains.

A deleted row stays in its table's file until the file is written anew. That takes the table for
itself, and it keeps rows that somebody's older transaction may still see.
"""

import time
from collections.abc import Iterator, Sequence
from itertools import count

import numpy

from mnemic.store.contract import StoreError
from mnemic.store.postgres.connection import Connection, driver
from mnemic.store.postgres.vectors import HEADER, drop
from mnemic.store.sqlite.vectors import STORED

PATIENCE = 3.0  # seconds, until others have let go of what was erased
BLOCK, OVERLAP = 1 << 24, 256
AT_ONCE = 1000
TABLES = ("documents", "places", "events", "passages", "lexicon", "vectors", "facts")
BEYOND = (
    "the server may still hold it outside the memory: in its write-ahead log until that is "
    "overwritten, in archives of it, on replicas, and in its own log if that quotes statements"
)
MARK = """
    INSERT INTO facts VALUES ('remains', pg_current_xact_id()::xid::text)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""
# Whoever may still see what was there before the transaction that erased it.
SEEING = """
    SELECT count(*) FROM (
        SELECT backend_xmin AS seen FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()
        UNION ALL SELECT backend_xid FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()
        UNION ALL SELECT xmin FROM pg_replication_slots
    ) AS others, facts
    WHERE name = 'remains' AND seen IS NOT NULL AND age(seen) >= age(value::xid)
"""
FILES = """
    SELECT pg_relation_filepath(oid) FROM pg_class AS own
    WHERE pg_relation_filepath(oid) IS NOT NULL AND (
        relnamespace = %(schema)s::regnamespace
        OR oid IN (SELECT reltoastrelid FROM pg_class WHERE relnamespace = %(schema)s::regnamespace)
        OR oid IN (
            SELECT indexrelid FROM pg_index JOIN pg_class AS t ON t.reltoastrelid = indrelid
            WHERE t.relnamespace = %(schema)s::regnamespace
        )
    )
"""
READ = "SELECT pg_read_binary_file(%s, %s, %s, true)"
MAY = """
    SELECT has_function_privilege('pg_read_binary_file(text,bigint,bigint,boolean)', 'EXECUTE')
        AND (pg_has_role('pg_read_server_files', 'USAGE') OR usesuper)
    FROM pg_user WHERE usename = current_user
"""
# What is remembered may have a trace in common with what was forgotten.
HELD = """
    SELECT EXISTS (SELECT 1 FROM passages WHERE strpos(text, %(own)s) > 0
        OR strpos(lower(text), %(own)s) > 0)
    OR EXISTS (SELECT 1 FROM documents WHERE strpos(title, %(own)s) > 0
        OR strpos(digest, %(own)s) > 0 OR strpos(notes, %(own)s) > 0)
    OR EXISTS (SELECT 1 FROM places WHERE strpos(path, %(own)s) > 0)
    OR EXISTS (SELECT 1 FROM events WHERE strpos(path, %(own)s) > 0)
    OR EXISTS (SELECT 1 FROM facts WHERE strpos(value, %(own)s) > 0)
"""


def scrub(connection: Connection) -> bool:
    """Write every table anew; False if another process keeps us from it."""
    end = time.monotonic() + PATIENCE
    while connection.value(SEEING):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    connection.execute(f"SET lock_timeout = {int(PATIENCE * 1000)}")
    try:
        drop(connection)  # the next writer makes it again; meanwhile every vector is looked at
        for table in TABLES:
            connection.execute(f"VACUUM FULL {table}")
        connection.execute("DELETE FROM facts WHERE name = 'remains'")
    except StoreError as error:
        if isinstance(error.__cause__, driver().errors.LockNotAvailable):
            return False
        raise
    finally:
        connection.execute("RESET lock_timeout")
    return True


def remains(connection: Connection, traces: Sequence[bytes]) -> list[bytes]:
    """Which traces are in the files of the memory's tables and indexes, and belong to nothing."""
    if not connection.value(MAY):
        raise StoreError(
            f"{connection.address}: this user may not read the server's files, so that traces "
            "cannot be looked for; nothing was changed. A superuser can, or do without --verify"
        )
    if not traces:
        return []
    connection.execute("CHECKPOINT")  # what is in memory goes into the files
    found = {one for block in raw(connection) for one in traces if one in block}
    left = [one for one in sorted(found) if not held(connection, one)]
    return [one for one in left if not in_vector(connection, one)]


def raw(connection: Connection) -> Iterator[bytes]:
    """The bytes of every table and index, in blocks that overlap."""
    for (path,) in connection.rows(FILES, {"schema": f'"{connection.address.schema}"'}):
        for number in count():  # a large table lies in several files
            start = 0
            while block := connection.value(READ, (name(path, number), start, BLOCK)):
                yield block
                start += max(len(block) - OVERLAP, 1) if len(block) == BLOCK else len(block)
            if block is None:
                break


def name(path: str, number: int) -> str:
    return f"{path}.{number}" if number else path


def held(connection: Connection, trace: bytes) -> bool:
    """Whether these bytes belong to something that is remembered."""
    text = trace.decode("utf-8", "ignore").replace("\0", "")
    return bool(text) and bool(connection.value(HELD, {"own": text}))


def in_vector(connection: Connection, trace: bytes) -> bool:
    """Whether these bytes are part of a vector or key that is there, which others may have too."""
    if connection.value("SELECT 1 FROM vectors WHERE position(%s IN keys) > 0 LIMIT 1", (trace,)):
        return True
    sql = (
        "SELECT passage, halfvec_send(vector) FROM vectors WHERE passage > %s "
        "ORDER BY passage LIMIT %s"
    )
    last = 0
    while rows := connection.rows(sql, (last, AT_ONCE)):
        last = rows[-1][0]
        stored = (numpy.frombuffer(sent[HEADER:], ">f2").astype(STORED) for _, sent in rows)
        if any(trace in one.tobytes() for one in stored):
            return True
    return False
