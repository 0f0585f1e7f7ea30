"""``mnemic mcp``: serve a memory to assistants over standard input and output."""

import io
import os
from pathlib import Path
from typing import Annotated

from mnemic import __version__
from mnemic.cli import options as opt
from mnemic.cli.documents.common import open_memory
from mnemic.mcp.protocol import ToolServer
from mnemic.mcp.tools import INSTRUCTIONS, build_tools

FOLDER_HELP = "Folder with files that the assistant may remember; may be repeated."


def mcp(
    address: opt.Memory = None,
    folder: Annotated[list[Path] | None, opt.Option("--folder DIR", FOLDER_HELP)] = None,
    read_only: Annotated[bool, opt.Option("--read-only", "The assistant may only search, ask and list.")] = False,
    embedder: opt.Embedder = None,
    reader: opt.Reader = opt.DEFAULT_READER,
) -> None:
    """Serve a memory to assistants that speak the Model Context Protocol, over stdio.

    The assistant starts this command itself; nothing listens on the network.

    Example: mnemic mcp --memory work --folder ~/notes
    """
    folders = [path.expanduser().resolve() for path in folder or []]
    if missing := [path for path in folders if not path.is_dir()]:
        raise ValueError(f"--folder must be an existing folder, not {missing[0]}")
    if read_only and folders:
        raise ValueError("--read-only remembers no files: leave out --folder")
    # Not sys.stdin: a thread waits in it, and the interpreter could not close it at its end.
    messages = io.BufferedReader(io.FileIO(0, closefd=False))
    with open_memory(address, embedder, reader) as memory, os.fdopen(os.dup(1), "wb") as output:
        os.dup2(2, 1)  # standard output is for the protocol alone
        tools = build_tools(memory, folders, read_only=read_only)
        ToolServer(tools, {"name": "mnemic", "version": __version__}, INSTRUCTIONS, output).serve(messages)
