"""Write files and folders atomically: write, flush, rename; and hash them with SHA-256."""

import json
import os
import shutil
from hashlib import file_digest
from pathlib import Path
from typing import Any

from mnemic.files import flush_to_disk, write_text


class CheckpointError(ValueError):
    """Report a checkpoint that cannot be read: which file, and why."""


def replace_folder(new_folder: Path, folder: Path) -> None:
    """Flush the finished ``new_folder`` to the disk and replace ``folder`` by it.

    At every moment either the old or the new folder is complete on disk.
    """
    for path in [*new_folder.iterdir(), new_folder]:
        flush_to_disk(path)
    backup = backup_path_of(folder)
    if folder.exists():
        shutil.rmtree(backup, ignore_errors=True)
        os.rename(folder, backup)
    os.rename(new_folder, folder)
    flush_to_disk(folder.parent)
    shutil.rmtree(backup, ignore_errors=True)


def backup_path_of(folder: Path) -> Path:
    """The path of the old folder while ``replace_folder`` replaces it."""
    return folder.with_name(f".{folder.name}.old")


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file as hexadecimal digits."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def write_json(path: Path, value: Any) -> None:
    """Write a value to a file as indented JSON."""
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")
