"""Find the files that a person means by paths and patterns."""

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

from mnemic.text.documents.kinds import SUFFIXES
from mnemic.text.documents.piece import DocumentError

PASSED = {"node_modules", "__pycache__"}  # folders of what programs made
NOTHING = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)  # what is said where nothing lies


class Closed(NamedTuple):
    """A folder that cannot be looked into, and why."""

    path: Path
    reason: str


class Found(NamedTuple):
    """The files that were meant, in order, how many others were passed over, what stayed shut."""

    files: list[Path]
    others: int
    closed: list[Closed]


def find_files(
    paths: Sequence[str | Path], *, include: Sequence[str] = (), exclude: Sequence[str] = ()
) -> Found:
    """All files that are given, and those of folders whose kind is known or that are included.

    Patterns such as ``*.md`` or ``drafts/*`` are matched with the name and with the path within the
    folder. Hidden files and folders are passed over, and links that lead out of the folder. What
    may not be looked at is taken for a file: whoever opens it says what is wrong.
    """
    found: dict[Path, None] = {}
    others, closed = 0, list[Closed]()
    for path in map(Path, paths):
        if may_be_file(path):
            found[absolute(path)] = None
        elif path.is_dir():
            for file in inside(path, closed):
                if wanted(file, path, include) and not fits(file, path, exclude):
                    found[absolute(file)] = None
                else:
                    others += 1
        elif path.exists():
            raise DocumentError(
                f"{path} is no regular file but a device, a pipe or a socket; write what comes out "
                "of it into a file and give that"
            )
        else:
            raise DocumentError(f"there is no file or folder {path}")
    return Found(list(found), others, closed)


def may_be_file(path: str | Path) -> bool:
    """Whether a file lies there; also where nobody may look: it is not known to be gone."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError as error:
        return error.errno not in NOTHING


def wanted(file: Path, folder: Path, include: Sequence[str]) -> bool:
    return fits(file, folder, include) if include else file.suffix.lower() in SUFFIXES


def inside(folder: Path, closed: list[Closed]) -> Iterator[Path]:
    """The files of a folder and of the folders in it, in the order of their names."""
    root = folder.resolve()

    def shut(error: OSError) -> None:
        reason = f"the folder cannot be opened: {error.strerror}"
        closed.append(Closed(absolute(Path(error.filename)), reason))

    for place, folders, files in os.walk(folder, onerror=shut):
        folders[:] = sorted({name for name in folders if not name.startswith(".")} - PASSED)
        for name in sorted(files):
            file = Path(place, name)
            if name.startswith(".") or not may_be_file(file):
                continue
            if not os.path.islink(file) or file.resolve().is_relative_to(root):
                yield file


def fits(file: Path, folder: Path, patterns: Sequence[str]) -> bool:
    within = file.relative_to(folder).as_posix()
    return any(fnmatch(within, pattern) or fnmatch(file.name, pattern) for pattern in patterns)


def absolute(path: Path) -> Path:
    """The path from the root, without dots; links stay as they are."""
    return Path(os.path.abspath(path))
