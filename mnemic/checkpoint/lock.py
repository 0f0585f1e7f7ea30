"""Lock a folder or file for one writer; the lock ends with its process."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from mnemic.recipe import ConfigError

try:
    import fcntl
except ImportError:  # Windows has no such locks; there nothing is locked
    fcntl = None  # type: ignore[assignment]


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


@contextmanager
def lock_file(path: Path, advice: str) -> Iterator[None]:
    """Lock the file ``path`` for writing; readers are not locked out.

    ``advice`` ends the error message if another process holds the lock. The lock file is removed.
    """
    with hold_lock(path.with_name(f".{path.name}.lock"), path, advice):
        yield


@contextmanager
def hold_lock(lock_path: Path, target: Path, advice: str) -> Iterator[None]:
    """Hold the lock file ``lock_path`` of ``target``, and remove it at the end."""
    try:
        file = lock_path.open("w", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{target} cannot be written: {error.strerror}") from None
    with file:
        if not try_lock(file):
            raise ConfigError(f"another process is writing into {target}; {advice}")
        try:
            yield
        finally:
            lock_path.unlink(missing_ok=True)


def try_lock(file: TextIO) -> bool:
    """Try to lock a file; return False if another process has or just removed it."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return os.fstat(file.fileno()).st_nlink > 0
