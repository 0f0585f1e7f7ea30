"""Open a memory of documents, and cite what it holds."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from mnemic.cli.options import DEFAULT_READER

if TYPE_CHECKING:
    from mnemic.store import Memory


def open_memory(address: str | None, embedder: str | None = None, reader: str = DEFAULT_READER) -> "Memory":
    """Open the memory at an address; None is the default memory."""
    from mnemic.store import Memory

    return Memory(address, embedder=embedder, reader=reader)


def shorten_path(path: str) -> str:
    """Shorten an absolute path relative to the current or home folder; keep titles."""
    if not os.path.isabs(path):
        return path
    home = str(Path.home())
    home_path = f"~{path[len(home) :]}" if path.startswith(f"{home}{os.sep}") else path
    return min(os.path.relpath(path), home_path, key=len)


def format_citation(name: str, page: int | None, line: int) -> str:
    """Format the file and the page or line of a sentence."""
    return shorten_path(name) + (f", page {page}" if page else f", line {line}" if line else "")
