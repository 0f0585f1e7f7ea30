"""Open a memory of documents, and cite what it holds."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from mnemic.cli.config import load_config
from mnemic.cli.options import DEFAULT_READER
from mnemic.cli.render.console import print_warnings
from mnemic.cli.render.format import escape_blanks
from mnemic.store import answers

if TYPE_CHECKING:
    from mnemic.store import Memory


def open_memory(address: str | None, embedder: str | None = None, reader: str = DEFAULT_READER) -> "Memory":
    """Open the memory at an address; None is the default memory."""
    from mnemic.store import Memory

    return Memory(choose_address(address), embedder=embedder, reader=reader, on_notice=print_warnings)


def choose_address(address: str | None) -> str | None:
    """Return an address, or that of the settings where no project has its own memory."""
    from mnemic.store.locate import find_project_memory

    if address is not None or os.environ.get("MNEMIC_MEMORY"):
        return address
    configured = load_config().get("memory")
    return None if configured is None or find_project_memory(Path.cwd()) else configured


def shorten_path(path: str) -> str:
    """Shorten an absolute path relative to the current or home folder; keep titles.

    Line ends in the name of a file are escaped, so that it cannot look like another line.
    """
    if not os.path.isabs(path):
        return path
    path = escape_blanks(path)
    home = str(Path.home())
    home_path = f"~{path[len(home) :]}" if path.startswith(f"{home}{os.sep}") else path
    return min(os.path.relpath(path), home_path, key=len)


def format_citation(name: str, page: int | None, line: int) -> str:
    """Format the file, as short as possible, and the page or line of a sentence."""
    return answers.format_citation(shorten_path(name), page, line)
