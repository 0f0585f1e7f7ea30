"""Find the files that paths and patterns select, and say which others are passed over."""

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

from mnemic.text.documents.kinds import find_path_kind
from mnemic.text.documents.piece import DocumentError

GENERATED_FOLDERS = {"node_modules", "__pycache__"}  # written by programs
MISSING_ERRORS = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)  # errors for a path that does not exist

# Why a file of a folder is not read.
HIDDEN = "hidden"
HIDDEN_FOLDER = "hidden folder"
GENERATED_FOLDER = "folder of generated files"
LINKED_FOLDER = "link to a folder"
LINK_OUT = "link out of the folder"
HIDDEN_TARGET = "link to a hidden file"
NO_FILE = "no regular file"
EXCLUDED = "excluded"
NOT_SELECTED = "not selected"
UNKNOWN_KIND = "unknown kind"


class SkippedFile(NamedTuple):
    """A file or folder that is passed over, and why."""

    path: Path
    reason: str


class UnreadableFolder(NamedTuple):
    """A folder that cannot be opened, and why."""

    path: Path
    reason: str


class FileListing(NamedTuple):
    """The selected files in order, the files passed over, and unreadable folders."""

    files: list[Path]
    skipped: list[SkippedFile]
    unreadable: list[UnreadableFolder]
    roots: dict[Path, Path]  # by file: the folder, or file, that it must still be in when it is opened

    def is_given(self, path: Path) -> bool:
        """Return whether a file was given itself, not found in a folder."""
        return not os.path.isdir(self.roots[path])


def find_files(
    paths: Sequence[str | Path], *, include: Sequence[str] = (), only: Sequence[str] = (), exclude: Sequence[str] = ()
) -> FileListing:
    """List the given files and, in given folders, the files of known kinds.

    ``include`` adds to the known kinds and ``only`` replaces them: patterns such as ``*.md`` or
    ``drafts/*`` are matched with the name and with the path within the folder; ``exclude`` works
    alike. Hidden files and folders are passed over, and so are links to them and links that lead
    out of the folder. A path without permission counts as a file: opening it reports the error.
    """
    listing = FileListing([], [], [], {})
    for path in map(Path, paths):
        if may_be_file(path):
            add_file(listing, path, Path(os.path.realpath(path)))
        elif path.is_dir():
            root = path.resolve()
            for file in walk_files(path, root, listing):
                if reason := find_reason(file, path, include, only, exclude):
                    listing.skipped.append(SkippedFile(make_absolute(file), reason))
                else:
                    add_file(listing, file, root)
        elif path.exists():
            raise DocumentError(
                f"{path} is no regular file but a device, a pipe or a socket; write what comes out "
                "of it into a file and give that"
            )
        else:
            raise DocumentError(f"there is no file or folder {path}")
    return listing


def add_file(listing: FileListing, path: Path, root: Path) -> None:
    """Add a file to a listing once; one that is given may be anywhere."""
    path = make_absolute(path)
    if path not in listing.roots:
        listing.files.append(path)
    if path not in listing.roots or not root.is_dir():
        listing.roots[path] = root


def find_reason(file: Path, folder: Path, include: Sequence[str], only: Sequence[str], exclude: Sequence[str]) -> str:
    """Return why a file of a folder is not read; empty if it is."""
    if matches_patterns(file, folder, exclude):
        return EXCLUDED
    if only:
        return "" if matches_patterns(file, folder, only) else NOT_SELECTED
    if find_path_kind(file) is None and not matches_patterns(file, folder, include):
        return f"{UNKNOWN_KIND} {file.suffix.lower() or 'without a suffix'}"
    return ""


def may_be_file(path: str | Path) -> bool:
    """Check whether a path is a file, or cannot be examined.

    Without permission a file is not known to be missing.
    """
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError as error:
        return error.errno not in MISSING_ERRORS


def walk_files(folder: Path, root: Path, listing: FileListing) -> Iterator[Path]:
    """Yield the files of a folder and its subfolders, sorted by name.

    What is passed over and folders that cannot be opened are added to ``listing``.
    """

    def report_unreadable(error: OSError) -> None:
        reason = f"the folder cannot be opened: {error.strerror}"
        listing.unreadable.append(UnreadableFolder(make_absolute(Path(error.filename)), reason))

    for current, folders, files in os.walk(folder, onerror=report_unreadable):
        reasons = {name: find_folder_reason(os.path.join(current, name)) for name in sorted(folders)}
        folders[:] = [name for name, reason in reasons.items() if not reason]
        for name in sorted(files):
            file = Path(current, name)
            if reason := find_file_reason(file, root):
                reasons[name] = reason
            else:
                yield file
        for name, reason in reasons.items():
            if reason:
                listing.skipped.append(SkippedFile(make_absolute(Path(current, name)), reason))


def find_folder_reason(folder: str) -> str:
    """Return why a folder is not entered; empty if it is."""
    name = os.path.basename(folder)
    if name.startswith("."):
        return HIDDEN_FOLDER
    if name in GENERATED_FOLDERS:
        return GENERATED_FOLDER
    return LINKED_FOLDER if os.path.islink(folder) else ""


def find_file_reason(file: Path, root: Path) -> str:
    """Return why a file of any kind is passed over; empty: it is not."""
    if file.name.startswith("."):
        return HIDDEN
    if not may_be_file(file):
        return NO_FILE
    if not os.path.islink(file):
        return ""
    target = file.resolve()
    if not target.is_relative_to(root):
        return LINK_OUT
    return HIDDEN_TARGET if any(name.startswith(".") for name in target.relative_to(root).parts) else ""


def matches_patterns(file: Path, folder: Path, patterns: Sequence[str]) -> bool:
    """Check whether a file's name or relative path matches any pattern."""
    relative_path = file.relative_to(folder).as_posix()
    return any(fnmatch(relative_path, pattern) or fnmatch(file.name, pattern) for pattern in patterns)


def make_absolute(path: Path) -> Path:
    """Make a path absolute and remove dots; links stay as they are."""
    return Path(os.path.abspath(path))
