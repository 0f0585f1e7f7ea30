"""The lock of a memory file's only writer; readers never wait.

Within a transaction SQLite's own lock holds the whole file, so that no row needs one.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mnemic.checkpoint.lock import acquire_lock
from mnemic.store.contract import StoreError

LOCK_TIMEOUT_S = 1.0


@contextmanager
def lock_writer(memory: Path, timeout_s: float = LOCK_TIMEOUT_S, *, any_owner: bool = False) -> Iterator[None]:
    """Hold the lock of the single writer of a memory; readers are not affected.

    The lock file stays beside the memory: if it were removed, two writers could lock two files of
    the same name. It waits a moment because a killed writer may have started a process that still
    holds the lock. ``any_owner``: the lock may be that of another user, whom the user trusts.
    """
    path = memory.with_name(f"{memory.name}-writer")
    try:
        descriptor = acquire_lock(path, timeout_s=timeout_s, any_owner=any_owner)
    except BlockingIOError as writer:
        raise StoreError(
            f"another process ({writer}) is writing into {memory}; wait for it to end "
            "(reading works meanwhile), or use another memory: --memory PATH"
        ) from None
    except OSError as error:
        raise StoreError(f"{memory} cannot be written: {error.strerror}: {path}; reading it still works") from None
    try:
        yield
    finally:
        os.close(descriptor)
