"""The routes of the folders that the server was started with."""

import asyncio
from pathlib import Path

from fastapi import APIRouter

from mnemic.web.jobs.table import RunningJob, make_record
from mnemic.web.problems import Problem, document_problems
from mnemic.web.routes.uploads import remember_files
from mnemic.web.schemas.jobs import JobAccepted
from mnemic.web.schemas.server import FolderInfo, FolderList, Watch, WatchedFolder
from mnemic.web.server import Served, Server, WebServer

PROBLEMS = document_problems(404, 422, 429)
router = APIRouter(prefix="/v1", tags=["folders"])


def find_folder(server: WebServer, folder_id: str) -> Path:
    """Return a folder of the server, or raise a problem."""
    if (folder := server.folders.get(folder_id)) is None:
        names = ", ".join(server.folders) or "none; start it with --folder DIR"
        raise Problem(404, f"The server has no folder {folder_id[:80]!r}; it has: {names}.")
    return folder


@router.get("/folders")
async def list_folders(server: Server) -> FolderList:
    """List the folders that may be remembered."""
    return FolderList(folders=[FolderInfo(id=name, name=folder.name) for name, folder in server.folders.items()])


@router.post("/memories/{m}/folders/{folder_id}", status_code=202, responses=PROBLEMS)
async def remember_folder(folder_id: str, served: Served, server: Server) -> JobAccepted:
    """Remember a folder: what is new or has changed in it, and what is gone."""
    record = make_record("remember", served.name, paths=[str(find_folder(server, folder_id))])
    job = await asyncio.to_thread(server.jobs.start, record, remember_files(served, None))
    return JobAccepted(job=job.describe())


@router.get("/memories/{m}/folders/{folder_id}/watch", responses=PROBLEMS)
async def get_watch(folder_id: str, served: Served, server: Server) -> WatchedFolder:
    """Report whether the changes of a folder are remembered."""
    folder = find_folder(server, folder_id)
    return WatchedFolder(id=folder_id, name=folder.name, watching=server.watches.is_watched(served.name, folder_id))


@router.put("/memories/{m}/folders/{folder_id}/watch", responses=PROBLEMS)
async def watch_folder(folder_id: str, body: Watch, served: Served, server: Server) -> WatchedFolder:
    """Begin or end to remember the changes of a folder, also after a restart."""
    folder = find_folder(server, folder_id)
    await asyncio.to_thread(server.watches.set, served, folder_id, folder, is_on=body.on)
    return WatchedFolder(id=folder_id, name=folder.name, watching=body.on)


@router.post("/memories/{m}/reindex", status_code=202, responses=PROBLEMS)
async def reindex(served: Served, server: Server) -> JobAccepted:
    """Compute the vectors that are missing, or those of another model, anew."""

    def run(job: RunningJob) -> None:
        with served.turns.take(is_urgent=False, stop=job.stop):
            for done, total in [] if job.stop.is_set() else served.memory.reindex():
                job.update(done=done, total=total)
                if job.stop.is_set():
                    break
        served.is_current = None

    job = await asyncio.to_thread(server.jobs.start, make_record("reindex", served.name), run)
    return JobAccepted(job=job.describe())
