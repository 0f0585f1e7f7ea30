"""One writer a memory: a lock that goes with the process, however it ends."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mnemic.store.contract import StoreError

try:
    import fcntl
except ImportError:  # Windows has no such locks; there the engine's own lock must do
    fcntl = None  # type: ignore[assignment]

PATIENCE = 1.0  # seconds


@contextmanager
def sole_writer(memory: Path, patience: float = PATIENCE) -> Iterator[None]:
    """Be the only one who writes into ``memory``; readers are not kept out.

    The lock is a file beside the memory that stays: removing it would let two writers lock two
    files of the same name.
    """
    path = memory.with_name(f"{memory.name}-writer")
    try:
        held = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StoreError(
            f"{memory} cannot be written: {error.strerror}: {path}; reading it still works"
        ) from None
    try:
        if not taken(held, patience):
            writer = os.read(held, 32).decode("ascii", "replace").strip()
            raise StoreError(
                f"another process ({writer}) is writing into {memory}; wait for it to end "
                "(reading works meanwhile), or use another memory: --memory PATH"
            )
        os.ftruncate(held, 0)
        os.lseek(held, 0, os.SEEK_SET)
        os.write(held, f"process {os.getpid()}".encode("ascii"))
        yield
    finally:
        os.close(held)


def taken(file: int, patience: float) -> bool:
    """Take the lock; a moment's patience, for what a writer that was killed had just started."""
    end = time.monotonic() + patience
    while fcntl is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                return False
            time.sleep(0.02)
        else:
            return True
    return True
