"""The steps of remembering files, and how many files were not read."""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple

from mnemic.text.documents.find_files import UNKNOWN_KIND

Outcome = Literal["new", "changed", "moved", "copied", "unchanged", "gone", "broken", "skipped", "reading"]
MAX_SUFFIXES = 6  # that a summary names
_INSTALL = re.compile(r"pip install '[^']+'")


class RememberStep(NamedTuple):
    """The outcome of one file; what it reports as remembered is committed."""

    path: str
    outcome: Outcome  # "reading": a large file is still being read; "skipped": it was not read on purpose
    document: int | None
    passages: int
    notes: tuple[str, ...]  # why it is broken or skipped, or which parts could not be read
    done: int  # bytes of all files, so far
    total: int
    num_following: int = 0  # steps that follow, of files that were committed with this one


def find_install_command(reason: str) -> str:
    """Return the ``pip install`` command of a message; empty if it has none."""
    match = _INSTALL.search(reason)
    return match.group() if match else ""


def count_unread(steps: Iterable[RememberStep]) -> dict[str, int]:
    """Count the files that were not read, by reason, the most frequent first.

    >>> count_unread([RememberStep("/a/.b", "skipped", None, 0, ("hidden",), 0, 0)])
    {'hidden': 1}
    """
    counts, suffixes = Counter[str](), set[str]()
    for step in steps:
        reason = step.notes[0] if step.notes else ""
        if step.outcome == "skipped" and reason.startswith(UNKNOWN_KIND):
            suffixes.add(reason.removeprefix(UNKNOWN_KIND).strip())
            counts[UNKNOWN_KIND] += 1
        elif step.outcome == "skipped" and (command := find_install_command(reason)):
            counts[f"{Path(step.path).suffix.lower() or 'file'} ({command})"] += 1
        elif step.outcome in ("skipped", "broken"):
            counts[reason if step.outcome == "skipped" else "broken"] += 1
    names = sorted(suffixes)[:MAX_SUFFIXES]
    label = f"of unknown kinds ({', '.join(names)}{', …' if len(suffixes) > MAX_SUFFIXES else ''})"
    return {label if reason == UNKNOWN_KIND else reason: count for reason, count in counts.most_common()}
