"""Size, modification time and digest of files on disk, to notice changes."""

import os
import time
from hashlib import sha256
from pathlib import Path

from mnemic.store.contract import FileRecord

SETTLED_NS = 2_000_000_000  # after this time, another change gives a file another timestamp
BLOCK_BYTES = 1 << 20


def make_file_record(path: Path, document_id: int, stat: os.stat_result) -> FileRecord:
    """Make the record of a file that holds a document.

    The time of a file that changed just now is stored as 0, so that it is read again: within the
    clock's resolution it may change once more.
    """
    is_recent = time.time_ns() - stat.st_mtime_ns < SETTLED_NS
    return FileRecord(str(path), document_id, stat.st_size, 0 if is_recent else stat.st_mtime_ns)


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file's content, in hex."""
    digest = sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def get_file_size(path: Path) -> int:
    """Return the size of a file in bytes; 0 if it cannot be read."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
