"""Find the files that a person means by paths and patterns."""

import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

from mnemic.text.documents.kinds import SUFFIXES
from mnemic.text.documents.piece import DocumentError

PASSED = {"node_modules", "__pycache__"}  # folders of what programs made


class Found(NamedTuple):
    """The files that were meant, in order, and how many others were passed over."""

    files: list[Path]
    others: int


def find_files(
    paths: Sequence[str | Path], *, include: Sequence[str] = (), exclude: Sequence[str] = ()
) -> Found:
    """All files that are given, and those of folders whose kind is known or that are included.

    Patterns such as ``*.md`` or ``drafts/*`` are matched with the name and with the path within the
    folder. Hidden files and folders are passed over, and links that lead out of the folder.
    """
    found: dict[Path, None] = {}
    others = 0
    for path in map(Path, paths):
        if path.is_file():
            found[absolute(path)] = None
        elif path.is_dir():
            for file in inside(path):
                known = (
                    file.suffix.lower() in SUFFIXES if not include else fits(file, path, include)
                )
                if known and not fits(file, path, exclude):
                    found[absolute(file)] = None
                else:
                    others += 1
        else:
            raise DocumentError(f"there is no file or folder {path}")
    return Found(list(found), others)


def wanted(file: Path, folder: Path, include: Sequence[str]) -> bool:
    return fits(file, folder, include) if include else file.suffix.lower() in SUFFIXES


def inside(folder: Path) -> Iterator[Path]:
    """The files of a folder and of the folders in it, in the order of their names."""
    root = folder.resolve()
    for place, folders, files in os.walk(folder):
        folders[:] = sorted({name for name in folders if not name.startswith(".")} - PASSED)
        for name in sorted(files):
            file = Path(place, name)
            out = file.is_symlink() and not file.resolve().is_relative_to(root)
            if not name.startswith(".") and file.is_file() and not out:
                yield file


def fits(file: Path, folder: Path, patterns: Sequence[str]) -> bool:
    within = file.relative_to(folder).as_posix()
    return any(fnmatch(within, pattern) or fnmatch(file.name, pattern) for pattern in patterns)


def absolute(path: Path) -> Path:
    """The path from the root, without dots; links stay as they are."""
    return Path(os.path.abspath(path))
