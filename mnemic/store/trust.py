"""Decide whose memories are used: those of this user, and those that the user trusts.

A memory that another user made, or put in place, could take what is remembered, or answer with
what its maker wants. As git does with ``safe.directory``, such a memory is not used before the user
says so; the paths are in ``trusted.json`` of the configuration folder.
"""

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from mnemic.files import is_owner, read_json, replace_file
from mnemic.store.contract import StoreError

PROJECT_FOLDER = ".mnemic"
TRUST_FILE = "trusted.json"


def find_config_folder() -> Path:
    """Return the folder of the user's settings."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser() / "mnemic"


def list_trusted_paths() -> list[Path]:
    """Return the folders and files that the user trusts."""
    path = find_config_folder() / TRUST_FILE
    if not os.access(path, os.R_OK):
        return []
    paths = read_json(path, error=StoreError).get("paths")
    if not isinstance(paths, list) or not all(isinstance(name, str) for name in paths):
        raise StoreError(f"{path} should hold a list of paths; remove it, and run `mnemic trust` again")
    return [Path(name) for name in paths]


def trust_path(path: Path) -> Path:
    """Trust the memory of a folder, or a memory's file; return its full path."""
    resolved = resolve_target(path)
    if not resolved.exists():
        raise StoreError(f"there is no {path}; give a folder with a memory, or a memory's file")
    write_trusted_paths([*list_trusted_paths(), resolved])
    return resolved


def distrust_path(path: Path) -> Path:
    """No longer trust a path; return it in full."""
    resolved, trusted_paths = resolve_target(path), list_trusted_paths()
    if resolved not in trusted_paths:
        raise StoreError(f"{resolved} is not trusted; `mnemic trust --list` lists what is")
    write_trusted_paths([trusted for trusted in trusted_paths if trusted != resolved])
    return resolved


def resolve_target(path: Path) -> Path:
    """Return a full path; a folder ``.mnemic`` stands for its parent."""
    resolved = path.expanduser().resolve()
    return resolved.parent if resolved.name == PROJECT_FOLDER else resolved


def write_trusted_paths(paths: list[Path]) -> None:
    """Write the list of trusted paths."""
    folder = find_config_folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with replace_file(folder / TRUST_FILE) as file:
        file.write(json.dumps({"paths": sorted({str(path) for path in paths})}, indent=1).encode() + b"\n")


def is_trusted(memory: Path) -> bool:
    """Return whether the user trusts a memory: its file, its folder or its project."""
    file = memory.resolve()
    project = file.parent.parent if file.parent.name == PROJECT_FOLDER else file.parent
    return not {file, project}.isdisjoint(list_trusted_paths())


def check_project(memory: Path) -> Path:
    """Return the memory of a project; raise ``StoreError`` if it may be a stranger's."""
    project = memory.parent.parent.resolve()
    reason = next(find_dangers(project, memory.parent, memory), "")
    if reason and not is_trusted(memory):
        raise StoreError(
            f"{reason}, so the memory {memory} is not used: what you remember there, others may "
            f"read, and what it answers, others may have written. If you trust it: mnemic trust {project}; "
            "if not, name another memory with --memory, such as --memory default"
        )
    return memory


def find_dangers(*paths: Path) -> Iterator[str]:
    """Yield why others may have made, or can change, one of these folders and files."""
    for path in paths:
        try:
            status = path.lstat()
        except FileNotFoundError:
            continue
        if stat.S_ISLNK(status.st_mode):
            yield f"{path} is a link, which may lead anywhere"
        elif not is_owner(status):
            yield f"{path} belongs to another user"
        elif status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
            yield f"everybody can write into {path}"
