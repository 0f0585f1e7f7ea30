"""Files that are whole or not there: written beside, renamed into place, known by their SHA-256."""

import json
import os
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any


class CheckpointError(ValueError):
    """A checkpoint cannot be read; the message names the file and what is wrong with it."""


def replace(beside: Path, folder: Path) -> None:
    """Put a finished folder in another's place; at every moment one of the two is whole."""
    old = old_of(folder)
    if folder.exists():
        shutil.rmtree(old, ignore_errors=True)
        os.rename(folder, old)
    os.rename(beside, folder)
    flush(folder.parent)
    shutil.rmtree(old, ignore_errors=True)


def old_of(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.old")


def flush(path: Path) -> None:
    """Make sure that a file or folder has reached the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def digest(path: Path) -> str:
    with path.open("rb") as file:
        whole = sha256()
        while part := file.read(1 << 20):
            whole.update(part)
    return whole.hexdigest()


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise CheckpointError(f"{path} is missing")
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path} is no valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise CheckpointError(f"{path} holds no table")
    return value
