"""The routes of jobs, with their progress as server-sent events."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Header, Request
from fastapi.responses import StreamingResponse

from mnemic.web.events import EVENT_STREAM, KEEP_ALIVE, STREAM_RESPONSE, format_event
from mnemic.web.jobs.table import RunningJob, make_record
from mnemic.web.problems import Problem, document_problems, make_busy_problem
from mnemic.web.routes.uploads import remember_files
from mnemic.web.schemas.jobs import Job, JobAccepted, JobList, Retry
from mnemic.web.server import Server

POLL_S, KEEP_ALIVE_S = 0.1, 15.0
PROBLEMS = document_problems(404, 422)
router = APIRouter(prefix="/v1/jobs", tags=["jobs"])


@router.get("")
async def list_jobs(server: Server) -> JobList:
    """List the jobs, newest first; those before a restart, too."""
    return JobList(jobs=[job.describe() for job in server.jobs.list_all()])


@router.get("/{job_id}", responses=PROBLEMS)
async def get_job(job_id: str, server: Server) -> Job:
    """Describe a job."""
    return server.jobs.get(job_id).describe()


@router.delete("/{job_id}", status_code=202, responses=PROBLEMS)
async def stop_job(job_id: str, server: Server) -> Job:
    """Stop a job at its next commit; what it has remembered stays."""
    job = server.jobs.get(job_id)
    server.jobs.stop(job)
    return job.describe()


@router.post("/{job_id}/retry", status_code=202, responses=PROBLEMS | document_problems(409, 429))
async def retry_job(job_id: str, server: Server, body: Retry | None = None) -> JobAccepted:
    """Read again what a job did not read, or all that remains."""
    job = server.jobs.get(job_id)
    record = job.record
    if not job.is_over:
        raise Problem(409, "The job has not ended yet. Stop it first, or wait.")
    if record.kind != "remember" or record.memory is None:
        raise Problem(409, "This job cannot be repeated: begin a new one.")
    is_rest = record.state != "done"
    paths = record.paths if is_rest else record.unread_paths
    if not paths and not record.staging:
        raise Problem(409, "The job has read all of its files; there is nothing to retry.")
    served = server.memories.get(record.memory)
    names, staging = (record.names, record.staging) if is_rest else ([], None)
    new_record = make_record("remember", record.memory, paths=paths, names=names, staging=staging)
    password = body.password if body else None
    new_job = await asyncio.to_thread(server.jobs.start, new_record, remember_files(served, password))
    job.update(staging=None, unread_paths=[])
    await asyncio.to_thread(server.jobs.save, job)
    return JobAccepted(job=new_job.describe())


@router.get(
    "/{job_id}/events", response_class=StreamingResponse, responses=PROBLEMS | document_problems(429) | STREAM_RESPONSE
)
async def stream_events(
    job_id: str, server: Server, request: Request, last_event_id: Annotated[str, Header(max_length=20)] = ""
) -> StreamingResponse:
    """Stream the progress of a job as events `progress` and `end`.

    The ids rise; a client that sends `Last-Event-ID` gets only what is new.
    """
    job = server.jobs.get(job_id)
    first = int(last_event_id) if last_event_id.isdecimal() and last_event_id.isascii() else 0
    if server.num_streams >= server.options.limits.max_streams:
        raise make_busy_problem(f"{server.num_streams} clients follow jobs already. Send it again a little later.")

    async def stream() -> AsyncIterator[bytes]:
        server.num_streams += 1
        try:
            async for event in follow_job(job, first):
                yield event
        finally:
            server.num_streams -= 1

    return StreamingResponse(stream(), media_type=EVENT_STREAM)


async def follow_job(job: RunningJob, last_revision: int) -> AsyncIterator[bytes]:
    """Yield an event whenever a job has changed, until its end."""
    silence_s = 0.0
    if last_revision > job.revision:  # it counts anew after a restart
        last_revision = 0
    while not job.is_over:
        if job.revision > last_revision:
            last_revision, silence_s = job.revision, 0.0
            yield format_event("progress", job.describe_progress(), last_revision)
        elif silence_s >= KEEP_ALIVE_S:
            silence_s = 0.0
            yield KEEP_ALIVE
        await asyncio.sleep(POLL_S)
        silence_s += POLL_S
    yield format_event("end", job.describe(), job.revision)
