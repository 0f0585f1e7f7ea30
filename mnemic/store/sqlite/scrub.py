"""Scrub deleted data from a SQLite memory, and search its files for traces."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from mnemic.store.connection import SHARED_TEXT_COLUMNS
from mnemic.store.sqlite.connection import SQLiteConnection
from mnemic.store.sqlite.quantized import find_quantized

BLOCK_BYTES = 1 << 24
FILE_HEADER = b"SQLite format 3\0"  # of every file: a part of "information" is in it
RESUME_TIMEOUT_MS = 200  # wait for readers, before something else is written
JOURNAL_REMAINS = "journal"  # the file is rewritten, the journal is not empty yet
SELECT_REMAINS = "SELECT value FROM facts WHERE name = 'remains'"
# Runs in a child process: closing a file that SQLite has open here would drop its locks.
SCAN_SCRIPT = """
import json, sys
paths, traces, block = json.load(sys.stdin)
traces = {bytes.fromhex(trace) for trace in traces}
overlap = max(map(len, traces), default=0)
matches = set()
for path in paths:
    with open(path, "rb") as file:
        tail = b""
        while new := file.read(block):
            window = tail + new
            matches |= {trace for trace in traces if trace in window}
            tail = window[-overlap:]
print(json.dumps([trace.hex() for trace in matches]))
"""
TEXT_COLUMNS = SHARED_TEXT_COLUMNS | {"passages": ("text", "lower(text)", "words"), "sqlite_master": ("lower(sql)",)}
VECTOR_COLUMNS = {"vectors": ("vector",), "keys": ("keys",), "questions": ("keys",)}


def scrub_memory(connection: SQLiteConnection) -> bool:
    """Rewrite index and file, empty the journal; False if a reader prevents it.

    SQLite overwrites deleted rows at once (``secure_delete``); rewriting makes sure that no page
    keeps an old copy of them.
    """
    run = connection.execute
    run("INSERT INTO lexicon (lexicon) VALUES ('optimize')")
    run("INSERT INTO question_lexicon (question_lexicon) VALUES ('optimize')")
    run("PRAGMA temp_store = DEFAULT")  # the copy may be larger than the RAM
    run("VACUUM")
    run("PRAGMA temp_store = MEMORY")
    run("UPDATE facts SET value = ? WHERE name = 'remains'", (JOURNAL_REMAINS,))
    return finish_journal(connection)


def finish_journal(connection: SQLiteConnection) -> bool:
    """Empty the journal after the file was rewritten; False if a reader prevents it."""
    if empty_journal(connection):
        connection.execute("DELETE FROM facts WHERE name = 'remains'")
    return empty_journal(connection)


def resume_scrub(connection: SQLiteConnection) -> bool:
    """Finish the scrub of another process, without waiting long for readers."""
    timeout_ms = connection.fetch_value("PRAGMA busy_timeout")
    connection.execute(f"PRAGMA busy_timeout = {min(timeout_ms, RESUME_TIMEOUT_MS)}")
    try:
        if connection.fetch_value(SELECT_REMAINS) == JOURNAL_REMAINS:
            return finish_journal(connection)
        can_scrub = empty_journal(connection)
    finally:
        connection.execute(f"PRAGMA busy_timeout = {timeout_ms}")
    return can_scrub and scrub_memory(connection)


def empty_journal(connection: SQLiteConnection) -> bool:
    """Truncate the write-ahead log; return False if a reader uses it."""
    (busy, _, _), *_ = connection.fetch_all("PRAGMA wal_checkpoint(TRUNCATE)")
    return not busy


def find_traces(connection: SQLiteConnection, files: Sequence[Path], traces: Sequence[bytes]) -> list[bytes]:
    """Return the traces in the memory's files that belong to no stored document."""
    matches = scan_files(files, traces) if traces else []
    unexplained = [trace for trace in matches if trace not in FILE_HEADER and not is_remembered(connection, trace)]
    quantized_traces = find_quantized(connection, unexplained) if unexplained else set()
    return [trace for trace in unexplained if trace not in quantized_traces]


def scan_files(files: Sequence[Path], traces: Sequence[bytes]) -> list[bytes]:
    """Return the traces that occur in the files."""
    request = json.dumps([[str(path) for path in files], [trace.hex() for trace in traces], BLOCK_BYTES])
    command = [sys.executable, "-I", "-c", SCAN_SCRIPT]
    process = subprocess.run(command, input=request, capture_output=True, text=True, check=True)
    return sorted(map(bytes.fromhex, json.loads(process.stdout)))


def is_remembered(connection: SQLiteConnection, trace: bytes) -> bool:
    """Return whether a trace occurs in a stored document."""
    text = trace.decode("utf-8", "ignore")
    return connection.contains(TEXT_COLUMNS, text) or connection.contains(VECTOR_COLUMNS, trace)
