"""Locate a memory: by path, name or address, or that of the project.

In a folder below one with a ``.mnemic`` folder, the memory in that folder is used, as git finds
``.git``. An address such as ``postgresql://host/database#name`` is a memory on a server. All other
memories are in ``$MNEMIC_HOME``, by default ``~/.local/share/mnemic``.
"""

import os
from contextlib import suppress
from pathlib import Path

from mnemic.files import write_text
from mnemic.store.contract import StoreError
from mnemic.store.postgres.address import DEFAULT_NAME, Address, is_address, parse_address
from mnemic.store.trust import PROJECT_FOLDER, check_project

PROJECT_PATH = Path(PROJECT_FOLDER, "memory.db")
DATABASE_SUFFIXES = (".db", ".sqlite", ".sqlite3")


def find_home_folder() -> Path:
    """Return the folder of the named memories."""
    if configured := os.environ.get("MNEMIC_HOME"):
        return Path(configured).expanduser()
    data = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(data).expanduser() / "mnemic"


def locate_memory(memory: str | Path | None = None, start: Path | None = None) -> Path | Address:
    """Return the path or address of a memory.

    A path has a slash or a suffix such as .db; anything else is a name. Without ``memory`` it is
    that of the project above ``start``, or the default one.
    """
    if memory is None:
        memory = os.environ.get("MNEMIC_MEMORY") or None
    if memory is None:
        return find_project_memory(start or Path.cwd()) or find_home_folder() / f"{DEFAULT_NAME}.db"
    if isinstance(memory, str) and is_address(memory):
        return parse_address(memory)
    path = Path(memory).expanduser()
    if isinstance(memory, Path) or os.sep in memory or path.suffix in DATABASE_SUFFIXES:
        return path
    if not memory.strip() or memory.startswith("."):
        raise StoreError(f"a memory is a path such as notes.db or a name such as work: {memory!r}")
    return find_home_folder() / f"{memory}.db"


def find_project_memory(start: Path) -> Path | None:
    """Return the memory of ``start`` or of its nearest parent folder that has one.

    It must be this user's, or one that the user trusts.
    """
    for folder in (start, *start.parents):
        with suppress(PermissionError):  # nobody uses what one may not even see
            if (folder / PROJECT_PATH).is_file():
                return check_project(folder / PROJECT_PATH)
    return None


def hide_from_git(memory: Path) -> None:
    """Keep the memory of a project out of git, with a ``.gitignore`` beside it."""
    path = memory.with_name(".gitignore")
    if memory.parent.name == PROJECT_FOLDER and not os.path.lexists(path):
        with suppress(OSError):  # in a folder that is read-only, or made meanwhile
            write_text(path, "*\n")


def list_named_memories() -> dict[str, Path]:
    """Return the paths of all named memories by their names."""
    return {path.stem: path for path in sorted(find_home_folder().glob("*.db"))}
