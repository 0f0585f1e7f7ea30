"""The cache file of quantized vectors beside a memory.

A page with one line of JSON, then slot ids, scales and codes as raw arrays. It is written to a
temporary file, synced and renamed; reading it verifies its SHA-256. An invalid file is ignored.
"""

import json
import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

import numpy
from numpy.typing import NDArray

from mnemic.checkpoint.atomic_files import flush_to_disk
from mnemic.store.sqlite.quantized_codes import QuantizedVectors

VERSION = 1
HEADER_BYTES = 4096  # before the first array
OWNER_ONLY = 0o600


def temporary_path(path: Path) -> Path:
    """Return the path to which a cache is written before it is renamed."""
    return path.with_name(f"{path.name}.new")


def write_quantized(path: Path, quantized: QuantizedVectors, stamp: str) -> None:
    """Write a cache that is valid while the memory has this stamp."""
    temporary = temporary_path(path)
    with open(os.open(temporary, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, OWNER_ONLY), "wb") as file:
        file.write(bytes(HEADER_BYTES))
        digest = sha256()
        for array in quantized:
            content = view_bytes(array)
            digest.update(content)
            file.write(content)
        count, width = quantized.codes.shape
        header = {"version": VERSION, "stamp": stamp, "count": count, "width": width}
        file.seek(0)
        file.write(json.dumps(header | {"sha256": digest.hexdigest()}).encode("ascii"))
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    flush_to_disk(path.parent)


def read_quantized(path: Path, stamp: str, width: int) -> QuantizedVectors | None:
    """Read a cache; return None if it is damaged or has another stamp."""
    try:
        with path.open("rb") as file:
            header = read_header(file)
            if (header.get("version"), header.get("stamp"), header.get("width")) != (VERSION, stamp, width):
                return None
            return read_arrays(file, int(header["count"]), width, str(header["sha256"]))
    except (OSError, ValueError, KeyError):
        return None


def read_header(file: BinaryIO) -> dict[str, Any]:
    """Read the JSON header of a cache file."""
    header = json.loads(file.read(HEADER_BYTES).rstrip(b"\0"))
    if not isinstance(header, dict):
        raise ValueError("the header is not a JSON object")
    return header


def read_arrays(file: BinaryIO, count: int, width: int, digest: str) -> QuantizedVectors | None:
    """Read the three arrays; return None if their size or digest is wrong."""
    size = os.fstat(file.fileno()).st_size
    if count < 1 or size != HEADER_BYTES + count * (8 + 4 + width):
        return None
    quantized = QuantizedVectors(
        numpy.empty(count, numpy.int64), numpy.empty(count, numpy.float32), numpy.empty((count, width), numpy.int8)
    )
    actual_digest = sha256()
    for array in quantized:
        content = view_bytes(array)
        file.readinto(content)  # type: ignore[attr-defined]
        actual_digest.update(content)
    return quantized if actual_digest.hexdigest() == digest else None


def view_bytes(array: NDArray[Any]) -> memoryview:
    """Return a view of the bytes of an array."""
    return array.reshape(-1).view(numpy.uint8).data


def delete_cache(path: Path) -> None:
    """Delete a cache, and the temporary file of a killed writer."""
    for file in (path, temporary_path(path)):
        with suppress(FileNotFoundError):
            file.unlink()
