"""Open files for writing without being led astray, and read those that other programs wrote.

A folder that others can write, or a repository that came from elsewhere, may hold a link in place
of a file that mnemic is about to write. So no link is followed, no file of another owner or with a
second name is touched, nothing is truncated before it was looked at, and a temporary file has a
random name.
"""

import errno
import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import Any, BinaryIO

try:
    import fcntl
except ImportError:  # Windows has no such locks
    fcntl = None  # type: ignore[assignment]

OWNER_ONLY = 0o600  # the mode of files with what a user remembers
ANYONE = 0o666  # the mode of networks, logs and tables, less the umask
LINK_REASON = "this is a link, which may lead anywhere; remove it"
IRREGULAR_REASON = "this is no regular file"
_SAFE_FLAGS = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC"))


class UnsafeFileError(PermissionError):
    """Refuse to write a file that may not be what its name says."""


def open_private(
    path: Path, flags: int = os.O_RDWR | os.O_CREAT, *, mode: int = OWNER_ONLY, any_owner: bool = False
) -> int:
    """Open a file for writing, created with ``mode`` if missing; return its descriptor.

    It is never truncated. A link, a file with several names or, without ``any_owner``, one of
    another user raises ``UnsafeFileError``.
    """
    try:
        descriptor = os.open(path, flags | _SAFE_FLAGS, mode)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):  # FreeBSD says the second
            raise UnsafeFileError(errno.EPERM, LINK_REASON, str(path)) from None
        if error.errno == errno.ENXIO:  # a pipe that nobody reads, or a socket
            raise UnsafeFileError(errno.EPERM, IRREGULAR_REASON, str(path)) from None
        raise
    try:
        check_private(os.fstat(descriptor), path, any_owner=any_owner)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def make_private_folder(path: Path) -> None:
    """Make a folder, and those above it that are missing, for this user alone."""
    for folder in (*reversed(path.parents), path):
        if not folder.is_dir():
            folder.mkdir(mode=0o700, exist_ok=True)


def check_private(status: os.stat_result, path: Path, *, any_owner: bool = False) -> None:
    """Raise ``UnsafeFileError`` unless this is a regular file of this user, with one name."""
    reason = ""
    if stat.S_ISLNK(status.st_mode):
        reason = LINK_REASON
    elif not stat.S_ISREG(status.st_mode):
        reason = IRREGULAR_REASON
    elif status.st_nlink > 1:
        reason = "this file has a second name (a hard link), which may belong elsewhere; remove it"
    elif not any_owner and not is_owner(status):
        reason = f"this file belongs to another user ({status.st_uid})"
    if reason:
        raise UnsafeFileError(errno.EPERM, reason, str(path))


def is_owner(status: os.stat_result) -> bool:
    """Return whether a file belongs to the user who runs this process."""
    return os.name == "nt" or status.st_uid == os.geteuid()


def open_for_writing(path: Path, *, append: bool = False, mode: int = ANYONE) -> BinaryIO:
    """Open a file safely, to write it anew or to append to it."""
    flags = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if append else 0)
    file = os.fdopen(open_private(path, flags, mode=mode), "ab" if append else "wb")
    if not append:
        file.truncate(0)
    return file


def write_text(path: Path, text: str, *, append: bool = False, mode: int = ANYONE) -> None:
    """Write a text to a file safely, or append it."""
    with open_for_writing(path, append=append, mode=mode) as file:
        file.write(text.encode("utf-8"))


@contextmanager
def replace_file(path: Path, *, mode: int = OWNER_ONLY) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces ``path`` after the block, whole and on the disk.

    It is locked until then: what a killed process left is not, and the next call removes it.
    """
    if path.exists() and not path.is_file():
        raise UnsafeFileError(errno.EPERM, "this is no regular file; give another name", str(path))
    remove_leftovers(path)
    file, temporary = create_temporary(path, mode)
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            os.replace(temporary, path)
        flush_to_disk(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def create_temporary(path: Path, mode: int) -> tuple[BinaryIO, Path]:
    """Create and lock a file of a random name beside ``path``."""
    while True:
        temporary = path.with_name(f".{path.name}.{token_hex(8)}.new")
        file = os.fdopen(open_private(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode=mode), "wb")
        with suppress(OSError):  # a file system without locks
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_nlink:  # else it was taken for a leftover before it was locked
            return file, temporary
        file.close()


def list_temporaries(path: Path) -> list[Path]:
    """List the temporary files of ``path`` that ``replace_file`` made and did not rename."""
    pattern = re.compile(rf"\.{re.escape(path.name)}\.([0-9a-f]{{8,16}}\.)?new")  # that of 0.1 was not random
    names = os.listdir(path.parent) if path.parent.is_dir() else []
    return [path.with_name(name) for name in sorted(names) if pattern.fullmatch(name)]


def remove_leftovers(path: Path) -> None:
    """Remove the temporary files of ``path`` that killed processes left."""
    for temporary in list_temporaries(path) if fcntl is not None else ():
        with suppress(OSError):  # it is locked, not ours, or gone
            descriptor = open_private(temporary, os.O_RDWR)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                temporary.unlink()
            finally:
                os.close(descriptor)


def flush_to_disk(path: Path) -> None:
    """Flush a file or folder to the disk with ``fsync``."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_json(path: Path, *, error: type[ValueError] = ValueError, hint: str = "") -> dict[str, Any]:
    """Read a JSON object from a file, or raise ``error``.

    ``hint`` ends the message about a file that is missing.
    """
    if not path.is_file():
        raise error(f"{path} is missing{hint}")
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except RecursionError:
        raise error(f"{path} is nested too deeply to be read") from None
    except ValueError as problem:  # a JSONDecodeError or UnicodeDecodeError is one
        raise error(f"{path} is no valid JSON: {problem}") from None
    if not isinstance(value, dict):
        raise error(f"{path} holds a {type(value).__name__}; expected a JSON object")
    return value
