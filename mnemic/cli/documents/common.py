"""What the commands of the lasting memory share: which memory is meant, and how places are told."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

if TYPE_CHECKING:
    from mnemic.store import Memory

Where: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--memory",
        metavar="PATH|NAME|ADDRESS",
        envvar="MNEMIC_MEMORY",
        help="Which memory: a file such as notes.db, a name such as work, or postgresql://…",
        show_default="the one of this project (.mnemic), or your own",
    ),
]
Embedder: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--embedder",
        metavar="NAME|DIR",
        help="What makes the vectors: reader, hashed-ngrams, minilm, none, or a model's folder.",
        show_default="the memory's own; of a new one, reader",
    ),
]
Reader: TypeAlias = Annotated[
    str,
    typer.Option(
        "--reader",
        metavar="NAME|DIR",
        help="What answers from passages: reader, which came with mnemic, a folder, or none: then "
        "the answer is the sentence that fits best.",
    ),
]
READER = "reader"
Target: TypeAlias = Annotated[
    str, typer.Argument(metavar="ID|PATH", help="A document's number, or its file.")
]


def memory_at(where: str | None, embedder: str | None = None, reader: str = READER) -> "Memory":
    # Threads that wait for work should sleep: texts are short, and on a busy machine torch's
    # threads take more time from each other, spinning, than the whole answer needs.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    from mnemic.store import Memory

    return Memory(where, embedder=embedder, reader=reader)


def short(path: str) -> str:
    """A path as a person would type it here; a title as it is."""
    if not os.path.isabs(path):
        return path
    near = os.path.relpath(path)
    home = str(Path.home())
    far = f"~{path[len(home) :]}" if path.startswith(f"{home}{os.sep}") else path
    return min(near, far, key=len)


def place(name: str, page: int | None, line: int) -> str:
    """Where a sentence stands: file, page, line."""
    told = [short(name)] + ([f"page {page}"] if page else [])
    return ", ".join(told + ([f"line {line}"] if line and not page else []))
