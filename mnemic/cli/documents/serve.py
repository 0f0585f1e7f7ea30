"""``mnemic serve``: the page and the HTTP API, on this machine."""

import gc
import os
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from mnemic.cli import options as opt
from mnemic.cli.documents.common import choose_address
from mnemic.cli.documents.mcp import NO_LOG, WITHOUT_TORCH, end_on_signal, load_torch
from mnemic.cli.render.console import AS_JSON, is_installed, print_fields, print_json, print_status

if TYPE_CHECKING:
    from socket import socket

    from mnemic.mcp.audit import AuditLog
    from mnemic.web.server import ServerOptions

DEFAULT_PORT, DEFAULT_HOST = 8421, "127.0.0.1"
UNNAMED_HOSTS = (DEFAULT_HOST, "0.0.0.0", "::")  # addresses that no client calls a server by
MEMORIES_HELP = "Memories to serve: files, names or addresses; the first is the default one."
FOLDER_HELP = "Folder that may be remembered and shown; may be repeated."
NAME_HELP = "Name by which clients know this server, such as that of a proxy; may be repeated."
TOKEN_HELP = "The file of the token; made if it is missing."
HOST_HELP = (
    "Address to listen on. Whoever reaches another than 127.0.0.1 can try tokens: put a proxy with TLS before it."
)
LOG_HELP = "Log of the calls, or none."


def serve(
    memories: Annotated[list[str] | None, opt.Argument("MEMORIES", MEMORIES_HELP)] = None,
    port: Annotated[int, opt.Option("--port", "The port; 0: any free one.")] = DEFAULT_PORT,
    host: Annotated[str, opt.Option("--host", HOST_HELP)] = DEFAULT_HOST,
    names: Annotated[list[str] | None, opt.Option("--name NAME", NAME_HELP)] = None,
    folder: Annotated[list[Path] | None, opt.Option("--folder DIR", FOLDER_HELP)] = None,
    model: Annotated[list[Path] | None, opt.Option("--model DIR", "A network to show; may be repeated.")] = None,
    token_file: Annotated[Path | None, opt.Option("--token-file FILE", TOKEN_HELP, "among your memories")] = None,
    log: Annotated[str | None, opt.Option("--log FILE", LOG_HELP, "among your memories")] = None,
    no_open: Annotated[bool, opt.Option("--no-open", "Do not open the page, also on a desktop.")] = False,
    embedder: opt.Embedder = None,
    reader: opt.Reader = opt.DEFAULT_READER,
) -> int:
    """Serve a page and an HTTP API for your memories, on this machine.

    It prints a link that is good once; the page asks for the token otherwise.

    Example: mnemic serve

    Some memories, and a folder: mnemic serve work notes.db --folder ~/Documents
    """
    if not is_installed("fastapi"):
        raise ValueError("serving the page needs FastAPI: pip install 'mnemic[web]'")
    from mnemic.web.run import bind_address, raise_descriptor_limit

    folders, models = (check_folders(paths or [], name) for paths, name in ((folder, "--folder"), (model, "--model")))
    check_models(models)
    raise_descriptor_limit()
    with bind_address(host, port) as listener:
        from mnemic.web.server import ServerOptions

        port, home = listener.getsockname()[1], prepare_home()
        options = ServerOptions(
            token=load_token(token_file, home),
            port=port,
            state_folder=home / f"serve-{port}",
            memories=tuple(choose_memories(memories or [])),
            folders=folders,
            models=models,
            names=(*(names or []), *([] if host in UNNAMED_HOSTS else [name_host(host)])),
            embedder=embedder,
            reader=reader,
            log=open_log(log, home),
        )
        if embedder not in WITHOUT_TORCH or reader not in WITHOUT_TORCH:
            load_torch()
        address = f"http://{name_host(host)}:{port}"
        return serve_until_end(options, listener, address, open_page=not no_open and has_desktop())


def check_folders(paths: list[Path], option: str) -> tuple[Path, ...]:
    """Resolve folders; raise if one does not exist."""
    folders = tuple(path.expanduser().resolve() for path in paths)
    if missing := [path for path in folders if not path.is_dir()]:
        raise ValueError(f"{option} must be an existing folder, not {missing[0]}")
    return folders


def check_models(folders: tuple[Path, ...]) -> None:
    """Raise unless each folder holds a network: one without would break the list of all."""
    if folders:
        from mnemic.checkpoint.folder import find_checkpoint

        for folder in folders:
            find_checkpoint(folder)


def name_host(host: str) -> str:
    """Return the name by which clients on this machine call an address to listen on."""
    if host in UNNAMED_HOSTS:
        return DEFAULT_HOST
    return f"[{host}]" if ":" in host else host


def choose_memories(addresses: list[str]) -> list[str]:
    """Return the addresses of the memories; none: the default and all named ones."""
    if addresses:
        return addresses
    default = choose_address(None)
    return [] if default is None else [default]


def has_desktop() -> bool:
    """Return whether a person sits before a screen that can show the page."""
    has_screen = sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    return has_screen and sys.stdout.isatty() and not AS_JSON.get()


def prepare_home() -> Path:
    """Return the folder of the named memories, and make it."""
    from mnemic.store.locate import find_home_folder

    home = find_home_folder()
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    return home


def load_token(token_file: Path | None, home: Path) -> str:
    """Load the token from its file, by default one among the memories."""
    from mnemic.mcp.http import read_token

    return read_token(token_file.expanduser() if token_file else home / "serve.token")


def open_log(log: str | None, home: Path) -> "AuditLog | None":
    """Open the log of the calls."""
    from mnemic.mcp.audit import AuditLog

    return None if log == NO_LOG else AuditLog(Path(log).expanduser() if log else home / "serve.log")


def serve_until_end(options: "ServerOptions", listener: "socket", address: str, *, open_page: bool) -> int:
    """Serve until Ctrl-C or SIGTERM; return the exit code."""
    import anyio

    from mnemic.web.app import build_app
    from mnemic.web.run import serve_app

    app, server = build_app(options)
    link = f"{address}/link#{server.keys.make_code()}"
    print_json({"url": address, "link": link, "memories": [served.name for served in server.memories.list_all()]})
    print_fields({"page": link, "good": "once, for 10 minutes; afterwards the page knows you", "stop": "Ctrl-C"})
    sys.stdout.flush()
    if open_page:  # other users can see the browser's arguments, so that this code is for this user alone
        webbrowser.open(f"{address}/link#{server.keys.make_code(os.geteuid())}")
    gc.freeze()  # else the collector walks the modules again and again, and all threads stand still
    with end_on_signal():
        try:
            anyio.run(serve_app, app, listener)
        except KeyboardInterrupt:
            print_status("stopped; jobs that were running go on with a retry")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # a thread may still read a document: what it has not committed is read again
