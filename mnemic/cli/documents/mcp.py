"""``mnemic mcp``: a lasting memory for assistants, over standard input and output."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from mnemic import __version__
from mnemic.cli.documents.common import READER, Embedder, Reader, Where, memory_at


def mcp(
    memory: Where = None,
    folder: Annotated[
        list[Path] | None,
        typer.Option(
            "--folder",
            metavar="DIR",
            help="The assistant may have files of this folder remembered; repeated.",
        ),
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="The assistant may only search, ask and list.")
    ] = False,
    embedder: Embedder = None,
    reader: Reader = READER,
) -> None:
    """Serve a memory to assistants that speak the Model Context Protocol, over stdio.

    The assistant starts this command itself; nothing listens on the network.

    Example: mnemic mcp --memory work --folder ~/notes
    """
    from mnemic.mcp.protocol import Server
    from mnemic.mcp.tools import INSTRUCTIONS, tools_of

    folders = [path.expanduser().resolve() for path in folder or []]
    if missing := [path for path in folders if not path.is_dir()]:
        raise ValueError(f"--folder is a folder that is there, not {missing[0]}")
    if read_only and folders:
        raise ValueError("--read-only and --folder: what is only read remembers no files")
    about = {"name": "mnemic", "version": __version__}
    with memory_at(memory, embedder, reader) as lasting, protocol_alone() as output:
        tools = tools_of(lasting, folders, read_only=read_only)
        Server(tools, about, INSTRUCTIONS, output).serve(sys.stdin.buffer)


@contextmanager
def protocol_alone() -> Iterator[BinaryIO]:
    """Standard output for the protocol; whatever else is printed goes to standard error."""
    sys.stdout.flush()
    with os.fdopen(os.dup(1), "wb") as output:
        os.dup2(2, 1)
        try:
            yield output
        finally:
            sys.stdout.flush()
            output.flush()
            os.dup2(output.fileno(), 1)
