"""Lock a folder or file for one writer; the lock ends with its process."""

import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from mnemic.files import open_private
from mnemic.recipe import ConfigError

try:
    import fcntl
except ImportError:  # Windows has no such locks; there nothing is locked
    fcntl = None  # type: ignore[assignment]

POLL_S = 0.02  # between two tries
NO_LOCKS_HINT = (
    "the file system cannot lock files, as some network drives cannot; nothing is written without a "
    "lock: put it on a local disk, or mount the drive with locks (NFS: version 4, or rpc.statd running)"
)


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
        raise ConfigError(f"{target} cannot be written: {error.strerror}: {lock_path}") from None
    try:
        yield
    finally:
        lock_path.unlink(missing_ok=True)
        os.close(descriptor)


def acquire_lock(path: Path, *, timeout_s: float = 0.0, any_owner: bool = False) -> int:
    """Lock a file, created if missing, for this user only; return its descriptor.

    Closing the descriptor ends the lock, as does the end of the process. The file says which
    process holds it. After ``timeout_s`` that is the message of the ``BlockingIOError``. A file
    that may lead elsewhere raises ``UnsafeFileError``; none is changed before it is locked.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        descriptor = open_private(path, any_owner=any_owner)
        try:
            if not try_lock(descriptor):
                holder = os.read(descriptor, 32).decode("ascii", "replace").strip()
                if time.monotonic() >= deadline:
                    raise BlockingIOError(holder)
            elif os.fstat(descriptor).st_nlink > 0:  # else its last holder has just removed it
                os.ftruncate(descriptor, 0)
                os.write(descriptor, f"process {os.getpid()}".encode("ascii"))
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        time.sleep(POLL_S)


def try_lock(descriptor: int) -> bool:
    """Try to lock a file; return False if another process has locked it."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror}: {NO_LOCKS_HINT}") from None
    return True
