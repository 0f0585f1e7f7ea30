"""The route of uploads: files become a job that remembers them."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request

from mnemic.files import make_private_folder
from mnemic.web.files import INCOMING
from mnemic.web.jobs.remember import RememberJob
from mnemic.web.jobs.table import RunningJob, make_record
from mnemic.web.memories import ServedMemory
from mnemic.web.problems import Problem, document_problems, make_busy_problem
from mnemic.web.schemas.jobs import JobAccepted
from mnemic.web.server import Served, Server, WebServer
from mnemic.web.uploads import HIDDEN, UploadReceiver

PROBLEMS = document_problems(404, 415, 422, 429, 507)
UPLOAD_SCHEMA: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["files"],
                    "properties": {
                        "files": {
                            "type": "array",
                            "minItems": 1,
                            "items": {"type": "string", "format": "binary"},
                            "description": "Files; a name may be a path relative to a folder.",
                        },
                        "password": {"type": "string", "description": "Opens files that are locked with it."},
                    },
                }
            }
        },
    }
}
router = APIRouter(prefix="/v1/memories/{m}", tags=["documents"])


def remember_files(served: ServedMemory, password: str | None) -> Callable[[RunningJob], None]:
    """Return what a job does that remembers files."""
    return lambda job: RememberJob(job, served, password).run()


async def receive_files(request: Request, staging: Path, server: WebServer) -> UploadReceiver:
    """Receive the files of an upload into a folder of their own."""
    content_type = request.headers.get("content-type", "")
    receiver = UploadReceiver(content_type, staging, server.options.limits)
    try:
        await asyncio.to_thread(make_private_folder, staging)
        async for chunk in request.stream():
            if chunk:
                await asyncio.to_thread(receiver.write, chunk)
        receiver.finish()
    except BaseException:
        receiver.close()
        await asyncio.shield(asyncio.to_thread(shutil.rmtree, staging, ignore_errors=True))
        raise
    return receiver


@router.post("/documents", status_code=202, responses=PROBLEMS, openapi_extra=UPLOAD_SCHEMA)
async def upload_documents(request: Request, served: Served, server: Server) -> JobAccepted:
    """Upload files, which a job remembers; a known name gets a new version."""
    if server.num_uploads >= server.options.limits.max_uploads:
        raise make_busy_problem(f"{server.num_uploads} uploads are coming in already. Send it again a little later.")
    record = make_record("remember", served.name)
    staging = served.files.folder / INCOMING / f"{server.options.port}-{record.id}"
    server.num_uploads += 1
    try:
        receiver = await receive_files(request, staging, server)
    finally:
        server.num_uploads -= 1
    record.names, record.staging = receiver.names, str(staging)
    record.unread = [
        {"name": name, "outcome": "skipped", "reasons": [HIDDEN], "advice": None} for name in receiver.hidden
    ]
    password = receiver.fields.get("password", b"").decode("utf-8", "replace") or None
    request.state.audit = {"files": len(receiver.names)}
    try:
        job = await asyncio.to_thread(server.jobs.start, record, remember_files(served, password))
    except Problem:
        await asyncio.to_thread(shutil.rmtree, staging, ignore_errors=True)
        raise
    return JobAccepted(job=job.describe())
