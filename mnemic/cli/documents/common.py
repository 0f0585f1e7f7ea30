"""Options, paths and citations that the commands of a document memory share."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

if TYPE_CHECKING:
    from mnemic.store import Memory

MemoryOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--memory",
        metavar="PATH|NAME|ADDRESS",
        envvar="MNEMIC_MEMORY",
        help="The memory: a file such as notes.db, a name such as work, or postgresql://…",
        show_default="this project's (.mnemic), else your own",
    ),
]
EmbedderOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--embedder",
        metavar="NAME|DIR",
        help="The embedding model: reader, hashed-ngrams, minilm, none, or a model's folder.",
        show_default="the memory's own; reader for a new memory",
    ),
]
ReaderOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--reader",
        metavar="NAME|DIR",
        help="The model that answers from passages: reader, which ships with mnemic, a folder, or "
        "none, which answers with the best matching sentence.",
    ),
]
DEFAULT_READER = "reader"
DocumentArgument: TypeAlias = Annotated[str, typer.Argument(metavar="ID|PATH", help="A document's number or its file.")]


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
    fields = [shorten_path(name)] + ([f"page {page}"] if page else [])
    return ", ".join(fields + ([f"line {line}"] if line and not page else []))
