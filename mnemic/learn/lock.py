"""One training a folder: a lock that goes with the process, however it ends."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

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
    path = folder / ".lock"
    with path.open("w", encoding="utf-8") as held:
        if fcntl is not None:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ConfigError(
                    f"another process is writing into {folder}; wait for it or give another --out"
                ) from None
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
            with suppress(OSError):  # a folder that is not empty stays
                for place in made:
                    place.rmdir()
