"""Lock a folder or file for one writer; the lock ends with its process."""

import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from mnemic.recipe import ConfigError

try:
    import fcntl
except ImportError:  # Windows has no such locks; there nothing is locked
    fcntl = None  # type: ignore[assignment]

POLL_S = 0.02  # between two tries


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock ``folder`` for this process; raise an error if another process holds it.

    Folders that were created for this and are still empty at the end are removed again.
    """
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is a file; give a folder that is new or holds a run")
    new_folders = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with hold_lock(folder / ".lock", folder, "wait for it or give another --out"):
            yield
    finally:
        with suppress(OSError):  # a folder that is not empty stays
            for path in new_folders:
                path.rmdir()


def lock_file(path: Path, advice: str) -> AbstractContextManager[None]:
    """Lock the file ``path`` for writing; readers are not locked out.

    ``advice`` ends the error message if another process holds the lock. The lock file is removed.
    """
    return hold_lock(path.with_name(f".{path.name}.lock"), path, advice)


@contextmanager
def hold_lock(lock_path: Path, target: Path, advice: str) -> Iterator[None]:
    """Hold the lock file ``lock_path`` of ``target``, and remove it at the end."""
    try:
        descriptor = acquire_lock(lock_path)
    except BlockingIOError:
        raise ConfigError(f"another process is writing into {target}; {advice}") from None
    except OSError as error:
        raise ConfigError(f"{target} cannot be written: {error.strerror}") from None
    try:
        yield
    finally:
        lock_path.unlink(missing_ok=True)
        os.close(descriptor)


def acquire_lock(path: Path, *, timeout_s: float = 0.0, mode: int = 0o666) -> int:
    """Lock a file, created with ``mode`` if missing; return its descriptor.

    Closing the descriptor ends the lock, as does the end of the process. The file says which
    process holds it. After ``timeout_s`` that is the message of the ``BlockingIOError``.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, mode)
    deadline = time.monotonic() + timeout_s
    try:
        while not try_lock(descriptor):
            if time.monotonic() >= deadline:
                raise BlockingIOError(os.read(descriptor, 32).decode("ascii", "replace").strip())
            time.sleep(POLL_S)
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"process {os.getpid()}".encode("ascii"))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def try_lock(descriptor: int) -> bool:
    """Try to lock a file; return False if another process has or just removed it."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return os.fstat(descriptor).st_nlink > 0
