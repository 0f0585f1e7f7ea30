"""``WebServer``: what the routes share; its memories, folders, pools of threads and jobs."""

import shutil
from pathlib import Path
from typing import Annotated, NamedTuple

from fastapi import Depends, Request
from starlette.applications import Starlette

from mnemic.checkpoint.shipped import READERS
from mnemic.mcp.audit import AuditLog
from mnemic.mcp.http import build_app
from mnemic.mcp.server import MemoryService
from mnemic.web.files import INCOMING
from mnemic.web.forget import remove_pending
from mnemic.web.jobs.pools import WorkerPool
from mnemic.web.jobs.table import JobTable
from mnemic.web.jobs.watches import WatchTable
from mnemic.web.limits import WebLimits
from mnemic.web.memories import MemoryTable, ServedMemory
from mnemic.web.networks import NetworkTable
from mnemic.web.pages import PageRenderer
from mnemic.web.session import SessionKeys
from mnemic.web.texts import TextTable

LOCAL_NAMES = ("127.0.0.1", "localhost", "[::1]")


class ServerOptions(NamedTuple):
    """What a server is started with."""

    token: str
    port: int
    state_folder: Path  # of its jobs and watched folders, for its owner alone
    memories: tuple[str, ...] = ()  # addresses; empty: the default one and all named ones
    folders: tuple[Path, ...] = ()  # that may be remembered and served
    models: tuple[Path, ...] = ()  # folders of networks, beside those that ship
    names: tuple[str, ...] = ()  # of this server, beside those of this machine
    embedder: str | None = None  # of new memories; None: the one that ships
    reader: str | None = READERS[0]
    limits: WebLimits = WebLimits()
    log: AuditLog | None = None

    @property
    def hosts(self) -> frozenset[str]:
        """The values of the header ``Host`` that mean this server."""
        names = [*LOCAL_NAMES, *(name.lower() for name in self.names)]
        return frozenset([f"{name}:{self.port}" for name in names] + [name.lower() for name in self.names])


class WebServer:
    """The state of a server, which ends with it."""

    def __init__(self, options: ServerOptions) -> None:
        self.options, limits = options, options.limits
        self.keys = SessionKeys(options.token, options.port)
        self.folders = name_folders(options.folders)
        self.memories = MemoryTable(options.memories, self.folders, embedder=options.embedder, reader=options.reader)
        self.readers = WorkerPool("read", limits.num_readers, limits.max_waiting, limits.answer_timeout_s)
        self.writers = WorkerPool("write", limits.num_writers, limits.max_waiting, None)
        self.jobs = JobTable(
            options.state_folder / "jobs", WorkerPool("job", limits.num_jobs, limits.max_waiting_jobs, None)
        )
        self.pages = PageRenderer(limits)
        self.networks = NetworkTable(options.models)
        self.texts = TextTable(options.state_folder / "texts", self.networks)
        self.watches = WatchTable(options.state_folder)
        self.num_uploads = self.num_streams = 0
        self.clean_up()

    def clean_up(self) -> None:
        """Remove what a killed server left: uploads that were not complete, files to be deleted."""
        waiting = {job.record.staging for job in self.jobs.list_all()}
        for served in self.memories.list_all():
            for folder in served.files.folder.glob(f"{INCOMING}/{self.options.port}-*"):
                if str(folder) not in waiting:
                    shutil.rmtree(folder, ignore_errors=True)
            remove_pending(served)
        for memory, folder_id in self.watches.list_stored():
            if folder_id in self.folders and memory in self.memories.memories:
                self.watches.set(self.memories.get(memory), folder_id, self.folders[folder_id], is_on=True)

    def build_assistant_app(self) -> Starlette:
        """Build the MCP server of the default memory, for the same token."""
        served = self.memories.get(self.memories.default)
        service = MemoryService(served.memory, tuple(self.folders.values()), log=self.options.log)
        return build_app(service.build_server(), self.options.token, sorted(self.options.hosts))

    def close(self) -> None:
        """End all work at the next commit, and close the memories."""
        self.watches.close()
        self.jobs.close()
        for pool in (self.readers, self.writers):
            pool.close()
        self.pages.close()
        self.memories.close()


def name_folders(folders: tuple[Path, ...]) -> dict[str, Path]:
    """Give each folder a name that is no path."""
    named: dict[str, Path] = {}
    for folder in folders:
        name, number = folder.name or "root", 2
        while name in named:
            name, number = f"{folder.name}-{number}", number + 1
        named[name] = folder
    return named


def get_server(request: Request) -> WebServer:
    """Return the server of a request."""
    server = request.app.state.server
    assert isinstance(server, WebServer)
    return server


def get_memory(m: str, server: Annotated[WebServer, Depends(get_server)]) -> ServedMemory:
    """Return the memory that a path names."""
    return server.memories.get(m)


Server = Annotated[WebServer, Depends(get_server)]
Served = Annotated[ServedMemory, Depends(get_memory)]
