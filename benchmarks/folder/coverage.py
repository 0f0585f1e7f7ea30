"""Compare the files of a folder with what ``remember`` reported: read, named, or passed over."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from mnemic.store.ingest.remember import RememberStep

READ_OUTCOMES = frozenset({"new", "changed", "moved", "copied", "unchanged"})
# These cannot or must not be read: a reader that reads them is wrong.
NOT_READABLE = frozenset(
    {
        ".cache/thumbnails/index.txt",
        ".secret-diary.txt",
        "attic/bookmarks.sqlite",
        "attic/broken.xlsx",
        "attic/empty.pdf",
        "attic/empty.txt",
        "attic/film.mp4",
        "attic/firmware.bin",
        "attic/half-a-download.zip",
        "attic/song.mp3",
        "attic/truncated.docx",
        "attic/truncated.png",
        "code/__pycache__/rain_gauge.cpython-311.pyc",
        "code/node_modules/left-pad/index.js",
        "code/node_modules/left-pad/package.json",
        "finance/salary-2025-02.pdf",  # needs its password
        "links/host-name.txt",
        "links/nowhere.txt",
        "links/round",
        "travel/fog.jpg",  # a picture without text
    }
)
# To read these, or to name them with a reason, is right.
READ_OR_NAMED = frozenset(
    {
        "attic/broken.ics",
        "attic/broken.json",
        "attic/not-really.pdf",
        "attic/truncated.pdf",
        "code/Makefile",
        "home/old-lease.doc",
        "links/lease.txt",
        "travel/walk.gpx",
        "work/gaugeweb.css",
        "work/sources.bib",
    }
)


def walk_folder(folder: Path) -> Iterator[str]:
    """Yield the relative paths of all files and links of a folder."""
    for current, folders, files in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(current, name))]
        for name in sorted([*files, *links]):
            yield Path(current, name).relative_to(folder).as_posix()


def list_coverage(folder: Path, steps: Iterable[RememberStep]) -> dict[str, list[str]]:
    """Sort the files of a folder by what ``remember`` did with them.

    A file inside a folder that is named with a reason is named.
    """
    outcome_of, reason_of = dict[str, str](), dict[str, str]()
    for step in steps:
        name = os.path.relpath(step.path, folder)
        outcome_of[name], reason_of[name] = step.outcome, "; ".join(step.notes)
    groups: dict[str, list[str]] = {
        name: [] for name in ("read", "named", "passed over", "named without a reason", "read in part")
    }
    groups |= {"readable but not read": [], "not readable but read": []}
    for name in walk_folder(folder):
        reported = next((path for path in (name, *map(str, Path(name).parents)) if path in outcome_of), None)
        is_read = reported == name and outcome_of[name] in READ_OUTCOMES
        if is_read:
            groups["read"].append(name)
            if reason_of[name]:
                groups["read in part"].append(f"{name}: {reason_of[name]}")
        elif reported is None:
            groups["passed over"].append(name)
        elif reason_of[reported]:
            groups["named"].append(f"{name}: {reason_of[reported]}")
        else:
            groups["named without a reason"].append(name)
        if is_read and name in NOT_READABLE:
            groups["not readable but read"].append(name)
        if not is_read and name not in NOT_READABLE | READ_OR_NAMED:
            groups["readable but not read"].append(name)
    return groups
