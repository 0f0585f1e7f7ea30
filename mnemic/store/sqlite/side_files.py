"""Guard the journals, the lock and the cache of a SQLite memory.

A repository or folder that came from elsewhere may hold links in their place, and SQLite follows
some of them.
"""

import errno
import os
from contextlib import suppress
from pathlib import Path
from stat import S_IMODE, S_IRWXU

from mnemic.files import UnsafeFileError, check_private

SIDE_FILES = ("-wal", "-shm", "-journal", "-writer", "-codes")
JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")  # ends a journal that names another file


def list_side_files(memory: Path) -> list[Path]:
    """Return the paths of the files beside a memory that exist, if only as links."""
    paths = (memory.with_name(f"{memory.name}{end}") for end in SIDE_FILES)
    return [path for path in paths if os.path.lexists(path)]


def check_side_files(memory: Path) -> None:
    """Raise ``UnsafeFileError`` if a file beside a memory may be planted."""
    for path in list_side_files(memory):
        with suppress(FileNotFoundError):  # another process has just removed it
            check_private(path.lstat(), path, any_owner=True)
            if path.name.endswith("-journal"):
                check_journal(path)


def check_journal(path: Path) -> None:
    """Raise ``UnsafeFileError`` if a rollback journal names a file, which SQLite would delete.

    Only a change of several databases at once makes such a journal; mnemic makes none.
    """
    with path.open("rb") as file:
        file.seek(max(os.fstat(file.fileno()).st_size - len(JOURNAL_MAGIC), 0))
        if file.read() == JOURNAL_MAGIC:
            raise UnsafeFileError(errno.EPERM, "this journal names another file to delete; remove it", str(path))


def make_private(memory: Path) -> None:
    """Take the rights of all others from the files of a memory."""
    for path in (memory, *list_side_files(memory)):
        with suppress(FileNotFoundError):
            mode = S_IMODE(path.stat().st_mode)
            if mode & ~S_IRWXU:
                path.chmod(mode & S_IRWXU)
