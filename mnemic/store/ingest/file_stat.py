"""What a file on the disk is known by: its size, its time, the digest of what it says."""

import os
import time
from hashlib import sha256
from pathlib import Path

from mnemic.store.contract import Place

SETTLED = 2_000_000_000  # nanoseconds after which a file that changes again has another time
BLOCK = 1 << 20


def placed(path: Path, document: int, stat: os.stat_result) -> Place:
    """A file that changed just now may do so again within the clock's grain: look at it again."""
    fresh = time.time_ns() - stat.st_mtime_ns < SETTLED
    return Place(str(path), document, stat.st_size, 0 if fresh else stat.st_mtime_ns)


def digest_of(path: Path) -> str:
    found = sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            found.update(block)
    return found.hexdigest()


def size_of(path: Path) -> int:
    """In bytes; 0 if nobody may look."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
