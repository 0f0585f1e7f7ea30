"""The locks on which writers of one memory wait for each other.

Writers run side by side; only these things make one wait. ``ROW_LOCK`` holds the rows on which a
decision depends until the transaction ends, ``SHARED_ROW_LOCK`` the choice of embedder. An advisory
lock, on a name, is held by whoever creates or migrates a memory, enables pgvector, builds the index
of vectors, or erases and scrubs. Deadlocks and lost races end in ``RaceError``
(``connection.CONFLICT_CODES``), and the caller tries again (``store.ingest.retry``). Rewriting
tables waits at most ``scrub``'s timeout.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from mnemic.store.connection import Connection

ROW_LOCK = " FOR UPDATE"  # the end of a SELECT
SHARED_ROW_LOCK = " FOR SHARE"
POLL_S = 0.05  # between two tries


def lock_transaction(connection: Connection, name: str) -> None:
    """Hold the advisory lock ``name`` until the transaction ends; wait for it."""
    connection.execute("SELECT pg_advisory_xact_lock(hashtext(?))", (name,))


@contextmanager
def try_lock(connection: Connection, name: str, timeout_s: float = 0.0) -> Iterator[bool]:
    """Hold the advisory lock ``name`` in the block; False if another process has it.

    Until ``timeout_s`` it is tried again and again: a statement that waits would look like a reader
    of what another process erases.
    """
    select, deadline = "SELECT pg_try_advisory_lock(hashtext(?))", time.monotonic() + timeout_s
    while not (is_locked := bool(connection.fetch_value(select, (name,)))) and time.monotonic() < deadline:
        time.sleep(POLL_S)
    try:
        yield is_locked
    finally:
        if is_locked:
            connection.execute("SELECT pg_advisory_unlock(hashtext(?))", (name,))
