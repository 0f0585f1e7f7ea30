"""One writer a folder, or a file: a lock that goes with the process, however it ends."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from mnemic.recipe import ConfigError

try:
    import fcntl
except ImportError:  # Windows has no such locks; there nobody is kept out
    fcntl = None  # type: ignore[assignment]


@contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Have ``folder`` for oneself; an error if another process has it.

    Folders that were made for this and stayed empty, since nothing came of it, go again.
    """
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is a file; give a folder that is new or holds a run")
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with held(folder / ".lock", folder, "wait for it or give another --out"):
            yield
    finally:
        with suppress(OSError):  # a folder that is not empty stays
            for place in made:
                place.rmdir()


@contextmanager
def lock_file(path: Path, otherwise: str) -> Iterator[None]:
    """Be the only one who writes the file ``path``; ``otherwise``: what to do if another does.

    Nothing is left behind, and who only reads it is not kept out.
    """
    with held(path.with_name(f".{path.name}.lock"), path, otherwise):
        yield


@contextmanager
def held(path: Path, what: Path, otherwise: str) -> Iterator[None]:
    """Hold the lock ``path`` of ``what``, and remove it in the end."""
    try:
        file = path.open("w", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{what} cannot be written: {error.strerror}") from None
    with file:
        if not taken(file):
            raise ConfigError(f"another process is writing into {what}; {otherwise}")
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def taken(file: TextIO) -> bool:
    """Take the lock, unless another has it, or had it and has just removed it."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return os.fstat(file.fileno()).st_nlink > 0
