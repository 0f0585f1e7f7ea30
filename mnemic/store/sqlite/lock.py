"""A file lock for the single writer of a memory; it ends with the process."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mnemic.store.contract import StoreError

try:
    import fcntl
except ImportError:  # Windows has no flock; SQLite's own lock must do there
    fcntl = None  # type: ignore[assignment]

LOCK_TIMEOUT_S = 1.0


@contextmanager
def lock_writer(memory: Path, timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[None]:
    """Hold the writer lock of a memory during the block; readers are not affected.

    The lock file stays beside the memory: if it were removed, two writers could lock two files of
    the same name.
    """
    path = memory.with_name(f"{memory.name}-writer")
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StoreError(f"{memory} cannot be written: {error.strerror}: {path}; reading it still works") from None
    try:
        if not acquire_lock(descriptor, timeout_s):
            writer = os.read(descriptor, 32).decode("ascii", "replace").strip()
            raise StoreError(
                f"another process ({writer}) is writing into {memory}; wait for it to end "
                "(reading works meanwhile), or use another memory: --memory PATH"
            )
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, f"process {os.getpid()}".encode("ascii"))
        yield
    finally:
        os.close(descriptor)


def acquire_lock(descriptor: int, timeout_s: float) -> bool:
    """Acquire the lock within ``timeout_s``; return whether that succeeded.

    It waits a moment because a killed writer may have started a process that still holds it.
    """
    deadline = time.monotonic() + timeout_s
    while fcntl is not None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        else:
            return True
    return True
