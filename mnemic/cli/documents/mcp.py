"""``mnemic mcp``: serve a memory to assistants, over stdio or HTTP on this machine."""

import gc
import io
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

from mnemic.cli import options as opt
from mnemic.cli.documents.common import open_memory
from mnemic.cli.render.console import is_installed, print_fields, print_json

if TYPE_CHECKING:
    from mnemic.mcp.server import MemoryService
    from mnemic.store import Memory

FOLDER_HELP = "Folder with files that the assistant may remember; may be repeated."
LOG_HELP = "Log of the assistant's calls, or none."
TOKEN_HELP = "With --http: the file of the token; made if it is missing."
DEFAULT_PORT = 8765
NO_LOG = "none"
WITHOUT_TORCH = ("hashed-ngrams", "none")  # embedders that need no network


def mcp(
    address: opt.Memory = None,
    folder: Annotated[list[Path] | None, opt.Option("--folder DIR", FOLDER_HELP)] = None,
    read_only: Annotated[bool, opt.Option("--read-only", "The assistant may only search, ask and list.")] = False,
    http: Annotated[bool, opt.Option("--http", "Serve HTTP on 127.0.0.1 to clients with the token.")] = False,
    port: Annotated[int, opt.Option("--port", "With --http: the port; 0: any free one.")] = DEFAULT_PORT,
    token_file: Annotated[Path | None, opt.Option("--token-file FILE", TOKEN_HELP, "a new token, printed")] = None,
    log: Annotated[str | None, opt.Option("--log FILE", LOG_HELP, "beside the memory")] = None,
    embedder: opt.Embedder = None,
    reader: opt.Reader = opt.DEFAULT_READER,
) -> int:
    """Serve a memory to assistants that speak the Model Context Protocol.

    The assistant starts this command itself and talks to it over stdio; nothing listens on the
    network, unless you start it with --http.

    Example: mnemic mcp --memory work --folder ~/notes
    """
    if not is_installed("mcp"):
        raise ValueError("serving assistants needs the MCP SDK: pip install 'mnemic[mcp]'")
    folders = [path.expanduser().resolve() for path in folder or []]
    if missing := [path for path in folders if not path.is_dir()]:
        raise ValueError(f"--folder must be an existing folder, not {missing[0]}")
    if read_only and folders:
        raise ValueError("--read-only remembers no files: leave out --folder")
    if not http and token_file is not None:
        raise ValueError("--token-file is for --http: over stdio only the client that started it can ask")
    with open_memory(address, embedder, reader) as memory:
        if memory.reader is not None or embedder not in WITHOUT_TORCH:
            load_torch()
        service = build_service(memory, folders, read_only, log)
        return serve_until_end(service, port if http else None, token_file)


def load_torch() -> None:
    """Import torch before anything is served: other threads stand still for some of that time."""
    from mnemic.store.retrieve.models import import_torch

    import_torch()
    import torch  # noqa: F401


def build_service(memory: "Memory", folders: list[Path], read_only: bool, log: str | None) -> "MemoryService":
    """Build what is served, with its log."""
    from mnemic.mcp.audit import AuditLog, find_log_path
    from mnemic.mcp.server import MemoryService

    path = Path(log).expanduser() if log else find_log_path(memory.path)
    return MemoryService(memory, folders, read_only=read_only, log=None if log == NO_LOG else AuditLog(path))


def serve_until_end(service: "MemoryService", port: int | None, token_file: Path | None) -> int:
    """Serve over HTTP, or without a port over stdio; return the exit code."""
    gc.freeze()  # else the collector walks the modules again and again, and all threads stand still
    with end_on_signal():
        if port is None:
            serve_pipes(service)
        else:
            serve_port(service, port, token_file)
    return 0


@contextmanager
def end_on_signal() -> Iterator[None]:
    """End the block at SIGTERM as Ctrl-C does, but without an error."""
    is_terminated = False

    def terminate(number: int, frame: FrameType | None) -> None:
        nonlocal is_terminated
        if is_terminated:  # impatient: a kill loses nothing that is remembered
            os._exit(0)
        is_terminated = True
        signal.raise_signal(signal.SIGINT)

    signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    except KeyboardInterrupt:
        if not is_terminated:
            raise


def serve_pipes(service: "MemoryService") -> None:
    """Serve the client that started this process, over standard input and output."""
    import anyio

    from mnemic.mcp.stdio import serve_stdio

    # Unbuffered: nothing is left to write if nobody reads. Not closed: a thread may still write.
    sink = io.FileIO(os.dup(1), "w", closefd=False)
    os.dup2(2, 1)  # standard output is for the protocol alone
    # Not sys.stdin: a thread waits in it, and the interpreter could not close it at its end.
    source = io.BufferedReader(io.FileIO(0, closefd=False))
    anyio.run(serve_stdio, service.build_server(), source, sink)


def serve_port(service: "MemoryService", port: int, token_file: Path | None) -> None:
    """Serve clients on this machine that have the token, over HTTP."""
    import anyio

    from mnemic.mcp.http import HOST, PATH, bind_port, read_token, serve_http

    token = read_token(token_file.expanduser() if token_file else None)
    with bind_port(port) as listener:
        fields = {"url": f"http://{HOST}:{listener.getsockname()[1]}{PATH}"}
        fields |= {"token file": str(token_file)} if token_file else {"token": token}
        print_json(fields)
        print_fields(fields)
        sys.stdout.flush()
        anyio.run(serve_http, service.build_server(), listener, token)
