"""The locks on which writers of one memory wait for each other.

Writers run side by side; only these things make one wait. ``ROW_LOCK`` holds the rows on which a
decision depends until the transaction ends, ``SHARED_ROW_LOCK`` the choice of embedder. An advisory
lock, on a name, is held by whoever creates or migrates a memory, enables pgvector, or builds the
index of vectors. Deadlocks and lost races end in ``RaceError`` (``connection.CONFLICT_CODES``), and
the caller tries again (``store.ingest.retry``). Rewriting tables waits at most ``scrub``'s timeout.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from mnemic.store.connection import Connection

ROW_LOCK = " FOR UPDATE"  # the end of a SELECT
SHARED_ROW_LOCK = " FOR SHARE"


def lock_transaction(connection: Connection, name: str) -> None:
    """Hold the advisory lock ``name`` until the transaction ends; wait for it."""
    connection.execute("SELECT pg_advisory_xact_lock(hashtext(?))", (name,))


@contextmanager
def try_lock(connection: Connection, name: str) -> Iterator[bool]:
    """Hold the advisory lock ``name`` in the block; False if another process has it."""
    is_locked = bool(connection.fetch_value("SELECT pg_try_advisory_lock(hashtext(?))", (name,)))
    try:
        yield is_locked
    finally:
        if is_locked:
            connection.execute("SELECT pg_advisory_unlock(hashtext(?))", (name,))
