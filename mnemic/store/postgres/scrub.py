"""Scrub deleted data from a PostgreSQL memory, and search the files for traces of it.

A deleted row stays in its table's file until the table is rewritten. Rewriting needs an exclusive
lock, and keeps rows that an older transaction may still see.
"""

import time
from collections.abc import Iterator, Sequence
from itertools import count

import numpy

from mnemic.store.connection import SHARED_TEXT_COLUMNS
from mnemic.store.contract import StoreError
from mnemic.store.postgres.connection import PostgresConnection, import_psycopg
from mnemic.store.postgres.vectors import VECTOR_BYTES, VECTOR_DTYPE, drop_index
from mnemic.store.retrieve.sentence_keys import STORED_DTYPE

READER_TIMEOUT_S = 3.0  # wait for transactions that may still see erased rows
ERASER_TIMEOUT_S = 60.0  # wait for another process that erases
BLOCK_BYTES, OVERLAP_BYTES = 1 << 24, 256
TABLES = ("documents", "places", "events", "passages", "lexicon", "vectors", "questions",
          "question_lexicon", "facts")  # fmt: skip
UNREACHABLE_TRACES = (
    "the server may still hold it outside the memory: in its write-ahead log until that is "
    "overwritten, in archives of it, on replicas, and in its own log if that quotes statements"
)
MARK_UNSCRUBBED = """
    INSERT INTO facts VALUES ('remains', pg_current_xact_id()::xid::text)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""
# Transactions that may still see rows from before the erasing one.
COUNT_OLD_SNAPSHOTS = """
    SELECT count(*) FROM (
        SELECT backend_xmin AS seen FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()
        UNION ALL SELECT backend_xid FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()
        UNION ALL SELECT xmin FROM pg_replication_slots
    ) AS others, facts
    WHERE name = 'remains' AND seen IS NOT NULL AND age(seen) >= age(value::xid)
"""
SELECT_FILES = """
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
READ_BLOCK = "SELECT pg_read_binary_file(%s, %s, %s, true)"
CAN_READ_FILES = """
    SELECT has_function_privilege('pg_read_binary_file(text,bigint,bigint,boolean)', 'EXECUTE')
        AND (pg_has_role('pg_read_server_files', 'USAGE') OR usesuper)
    FROM pg_user WHERE usename = current_user
"""
TEXT_COLUMNS = SHARED_TEXT_COLUMNS | {"facts": ("value",)}


def scrub_memory(connection: PostgresConnection, timeout_s: float | None = None) -> bool:
    """Rewrite every table; return False if another process prevents it."""
    deadline = time.monotonic() + (READER_TIMEOUT_S if timeout_s is None else timeout_s)
    while connection.fetch_value(COUNT_OLD_SNAPSHOTS):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    connection.execute(f"SET lock_timeout = {int(READER_TIMEOUT_S * 1000)}")
    try:
        drop_index(connection)  # the next writer builds it again; until then search is exact
        for table in TABLES:
            connection.execute(f"VACUUM FULL {table}")
        connection.execute("DELETE FROM facts WHERE name = 'remains'")
    except StoreError as error:
        if isinstance(error.__cause__, import_psycopg().errors.LockNotAvailable):
            return False
        raise
    finally:
        connection.execute("RESET lock_timeout")
    return True


def find_traces(connection: PostgresConnection, traces: Sequence[bytes]) -> list[bytes]:
    """Return the traces in the memory's files that belong to no stored document."""
    if not connection.fetch_value(CAN_READ_FILES):
        raise StoreError(
            f"{connection.address}: this user may not read the server's files, so they cannot be "
            "searched for traces; nothing was changed. A superuser can, or omit --verify"
        )
    if not traces:
        return []
    connection.execute("CHECKPOINT")  # writes what is in memory to the files
    matches = {trace for block in read_file_blocks(connection) for trace in traces if trace in block}
    unexplained = [trace for trace in sorted(matches) if not is_remembered(connection, trace)]
    return [trace for trace in unexplained if not is_in_embedding(connection, trace)]


def read_file_blocks(connection: PostgresConnection) -> Iterator[bytes]:
    """Yield the bytes of all tables and indexes, in overlapping blocks."""
    for (path,) in connection.fetch_all(SELECT_FILES, {"schema": f'"{connection.address.schema}"'}):
        for number in count():  # a large table has several files
            start, segment = 0, f"{path}.{number}" if number else path
            while block := connection.fetch_value(READ_BLOCK, (segment, start, BLOCK_BYTES)):
                yield block
                start += max(len(block) - OVERLAP_BYTES, 1) if len(block) == BLOCK_BYTES else len(block)
            if block is None:
                break


def is_remembered(connection: PostgresConnection, trace: bytes) -> bool:
    """Return whether a trace occurs in a stored document."""
    text = trace.decode("utf-8", "ignore").replace("\0", "")
    return bool(text) and connection.contains(TEXT_COLUMNS, text)


def is_in_embedding(connection: PostgresConnection, trace: bytes) -> bool:
    """Return whether a trace occurs in a stored passage or sentence vector."""
    for table in ("vectors", "questions"):
        if connection.fetch_value(f"SELECT 1 FROM {table} WHERE position(%s IN keys) > 0 LIMIT 1", (trace,)):
            return True
    rows = connection.stream_rows(f"SELECT passage, {VECTOR_BYTES} FROM vectors WHERE passage > ? ORDER BY passage", 0)
    return any(trace in numpy.frombuffer(row[1], VECTOR_DTYPE).astype(STORED_DTYPE).tobytes() for row in rows)
