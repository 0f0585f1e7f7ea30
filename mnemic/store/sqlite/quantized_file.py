"""Codes in a file beside the memory: a cache, never the truth, and on any doubt not there.

A page with a line of JSON, then slots, steps and rows as they lie in memory. It is written beside,
synced and renamed into place, and its SHA-256 is taken whenever it is read.
"""

import json
import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

import numpy
from numpy.typing import NDArray

from mnemic.checkpoint.atomic_files import flush
from mnemic.store.sqlite.quantized_codes import Codes

VERSION = 1
PAGE = 4096  # bytes before the first array
OWNER = 0o600


def beside(path: Path) -> Path:
    """Where a cache lies before it is whole."""
    return path.with_name(f"{path.name}.new")


def write_codes(path: Path, codes: Codes, stamp: str) -> None:
    """Write a cache that is good for as long as the memory bears this stamp."""
    fresh = beside(path)
    with open(os.open(fresh, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, OWNER), "wb") as file:
        file.write(bytes(PAGE))
        whole = sha256()
        for array in codes:
            content = content_of(array)
            whole.update(content)
            file.write(content)
        count, width = codes.rows.shape
        told = {"version": VERSION, "stamp": stamp, "count": count, "width": width}
        file.seek(0)
        file.write(json.dumps(told | {"sha256": whole.hexdigest()}).encode("ascii"))
        file.flush()
        os.fsync(file.fileno())
    os.replace(fresh, path)
    flush(path.parent)


def read_codes(path: Path, stamp: str, width: int) -> Codes | None:
    """The codes of a memory that bears this stamp; None if the file is not whole, or not of it."""
    try:
        with path.open("rb") as file:
            told = header(file)
            if (told.get("version"), told.get("stamp"), told.get("width")) != (
                VERSION,
                stamp,
                width,
            ):
                return None
            return arrays(file, int(told["count"]), width, str(told["sha256"]))
    except (OSError, ValueError, KeyError):
        return None


def header(file: BinaryIO) -> dict[str, Any]:
    told = json.loads(file.read(PAGE).rstrip(b"\0"))
    if not isinstance(told, dict):
        raise ValueError("no table")
    return told


def arrays(file: BinaryIO, count: int, width: int, digest: str) -> Codes | None:
    """The three arrays, if they are all there and what was written."""
    size = os.fstat(file.fileno()).st_size
    if count < 1 or size != PAGE + count * (8 + 4 + width):
        return None
    codes = Codes(
        numpy.empty(count, numpy.int64),
        numpy.empty(count, numpy.float32),
        numpy.empty((count, width), numpy.int8),
    )
    whole = sha256()
    for array in codes:
        content = content_of(array)
        file.readinto(content)  # type: ignore[attr-defined]
        whole.update(content)
    return codes if whole.hexdigest() == digest else None


def content_of(array: NDArray[Any]) -> memoryview:
    """The bytes of an array, in place."""
    return array.reshape(-1).view(numpy.uint8).data


def drop_codes(path: Path) -> None:
    """Remove the cache, and what a writer that was killed left of one."""
    for each in (path, beside(path)):
        with suppress(FileNotFoundError):
            each.unlink()
