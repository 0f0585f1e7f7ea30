"""Which memory is meant: a path, a name, the one of this project, or the person's own.

``mnemic remember`` in a folder below one with a ``.mnemic`` folder uses the memory in it, as git
finds ``.git``. An address such as ``postgresql://host/database#name`` is a memory on a server.
Otherwise memories lie in ``$MNEMIC_HOME``, usually ``~/.local/share/mnemic``.
"""

import os
from pathlib import Path

from mnemic.store.contract import StoreError
from mnemic.store.postgres.address import Address, address_of, is_address

PROJECT = Path(".mnemic", "memory.db")
ENDINGS = (".db", ".sqlite", ".sqlite3")
OWN = "default"


def home() -> Path:
    """Where named memories lie."""
    if told := os.environ.get("MNEMIC_HOME"):
        return Path(told).expanduser()
    data = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(data).expanduser() / "mnemic"


def locate(memory: str | Path | None = None, start: Path | None = None) -> Path | Address:
    """Where a memory is. A path has a slash or an ending such as .db; all else is a name."""
    if memory is None:
        memory = os.environ.get("MNEMIC_MEMORY") or None
    if memory is None:
        return project(start or Path.cwd()) or home() / f"{OWN}.db"
    if isinstance(memory, str) and is_address(memory):
        return address_of(memory)
    path = Path(memory).expanduser()
    if isinstance(memory, Path) or os.sep in memory or path.suffix in ENDINGS:
        return path
    if not memory.strip() or memory.startswith("."):
        raise StoreError(f"a memory is a path such as notes.db or a name such as work: {memory!r}")
    return home() / f"{memory}.db"


def project(start: Path) -> Path | None:
    """The memory of the nearest folder above that has one."""
    for folder in (start, *start.parents):
        if (folder / PROJECT).is_file():
            return folder / PROJECT
    return None


def named() -> dict[str, Path]:
    """All memories that have a name."""
    return {path.stem: path for path in sorted(home().glob("*.db"))}
