"""Options, paths and citations that the commands of a document memory share."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

from mnemic.cli.declare import Argument, Option

if TYPE_CHECKING:
    from mnemic.store import Memory

DEFAULT_READER = "reader"
MEMORY_HELP = "The memory: a file such as notes.db, a name such as work, or postgresql://…"
EMBEDDER_HELP = "The embedding model: reader, hashed-ngrams, minilm, none, or a model's folder."
READER_HELP = (
    "The model that answers from passages: reader, which ships with mnemic, a folder, or none, "
    "which answers with the best matching sentence."
)
MemoryOption: TypeAlias = Annotated[
    str | None,
    Option("--memory PATH|NAME|ADDRESS", MEMORY_HELP, "this project's (.mnemic), else your own", "MNEMIC_MEMORY"),
]
EmbedderOption: TypeAlias = Annotated[
    str | None, Option("--embedder NAME|DIR", EMBEDDER_HELP, "the memory's own; reader for a new memory")
]
ReaderOption: TypeAlias = Annotated[str, Option("--reader NAME|DIR", READER_HELP)]
DocumentArgument: TypeAlias = Annotated[str, Argument("ID|PATH", "A document's number or its file.")]


def open_memory(address: str | None, embedder: str | None = None, reader: str = DEFAULT_READER) -> "Memory":
    """Open the memory at an address; None is the default memory."""
    from mnemic.store import Memory

    return Memory(address, embedder=embedder, reader=reader)


def shorten_path(path: str) -> str:
    """Shorten an absolute path relative to the current or home folder; keep titles."""
    if not os.path.isabs(path):
        return path
    relative_path = os.path.relpath(path)
    home = str(Path.home())
    home_path = f"~{path[len(home) :]}" if path.startswith(f"{home}{os.sep}") else path
    return min(relative_path, home_path, key=len)


def format_citation(name: str, page: int | None, line: int) -> str:
    """Format the file and the page or line of a sentence."""
    position = f", page {page}" if page else f", line {line}" if line else ""
    return shorten_path(name) + position
