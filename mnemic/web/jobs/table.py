"""Jobs: work that goes on while clients come and go.

Each job has a small file, which is written when its state changes. What a job remembers is in the
memory as soon as it is counted, so that a retry after a restart reads only the rest.
"""

import json
import logging
import os
import shutil
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from threading import Event, Lock
from typing import Any

from mnemic.files import make_private_folder, read_json, replace_file
from mnemic.web.jobs.pools import WorkerPool
from mnemic.web.problems import Problem, convert_error
from mnemic.web.schemas.jobs import Job, JobKind, JobProgress, JobState

MAX_JOBS = 100  # that are listed; the oldest ones that have ended go
MAX_UNREAD = 1_000  # files that a job names
RESTARTED = "stopped by a restart of the server; retry goes on where it was"
STOPPED = "stopped; what was counted is remembered, and retry goes on where it was"

logger = logging.getLogger(__name__)


@dataclass
class JobRecord:
    """A job as it is written to its file, with what a retry needs."""

    id: str
    kind: JobKind
    memory: str | None = None
    state: JobState = "queued"
    done: int = 0
    total: int = 0
    message: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    unread: list[dict[str, Any]] = field(default_factory=list)
    result: dict[str, Any] | None = None
    started_at: str = ""
    ended_at: str | None = None
    paths: list[str] = field(default_factory=list)  # to be remembered
    names: list[str] = field(default_factory=list)  # of an upload, to be moved out of ``staging``
    staging: str | None = None
    unread_paths: list[str] = field(default_factory=list)  # that a retry reads


class RunningJob:
    """A job in memory: its record, the number of its changes, a wish to stop."""

    def __init__(self, record: JobRecord) -> None:
        self.record, self.revision = record, 1
        self.stop = Event()
        self.forgotten: set[str] = set()  # names and paths of files, which the record must not have any more

    @property
    def is_over(self) -> bool:
        """Whether the job has ended."""
        return self.record.state not in ("queued", "running")

    def update(self, **values: Any) -> None:
        """Change fields of the record; streams of events see it."""
        for name, value in values.items():
            setattr(self.record, name, value)
        self.revision += 1

    def describe(self) -> Job:
        """Describe the job for a client."""
        fields = {name: getattr(self.record, name) for name in Job.model_fields}
        return Job(**fields)

    def describe_progress(self) -> JobProgress:
        """Describe how far the job is, without the files that were not read."""
        return JobProgress(**{name: getattr(self.record, name) for name in JobProgress.model_fields})


class JobTable:
    """The jobs of a server, in a folder with a file for each."""

    def __init__(self, folder: Path, pool: WorkerPool) -> None:
        self.folder, self.pool, self.lock = folder, pool, Lock()
        make_private_folder(folder)
        self.jobs: dict[str, RunningJob] = {}
        records = []
        for path in folder.glob("*.json"):
            try:
                records.append(JobRecord(**read_json(path)))
            except (ValueError, TypeError):
                logger.error("the job in %s cannot be read, and is left out", path)
        for record in sorted(records, key=lambda record: (record.started_at, record.id)):
            job = self.jobs[record.id] = RunningJob(record)
            if not job.is_over:
                job.update(state="stopped", message=RESTARTED, ended_at=get_time())
                self.save(job)

    def get(self, job_id: str) -> RunningJob:
        """Return a job, or raise a problem."""
        if (job := self.jobs.get(job_id)) is None:
            raise Problem(404, f"There is no job {job_id[:40]!r}; it may be too long ago.")
        return job

    def list_all(self) -> list[RunningJob]:
        """List the jobs, newest first."""
        return list(self.jobs.values())[::-1]

    def start(self, record: JobRecord, run: Callable[[RunningJob], None]) -> RunningJob:
        """Queue a job; raise a problem if too many wait."""
        record.started_at = get_time()
        job = RunningJob(record)
        self.save(job)
        try:
            self.pool.submit(lambda: self.run_job(job, run))
        except Problem:
            self.path_of(job).unlink(missing_ok=True)
            raise
        with self.lock:
            self.jobs[record.id] = job
            self.remove_oldest()
        return job

    def run_job(self, job: RunningJob, run: Callable[[RunningJob], None]) -> None:
        """Run a job to its end, whatever that is."""
        state, message = "done", ""
        if not job.stop.is_set():
            job.update(state="running")
            self.save(job)
            try:
                run(job)
            except Exception as error:
                state, message = "failed", convert_error(error).detail
        if job.stop.is_set():
            state, message = "stopped", STOPPED
        if state == "done":
            job.record.done = job.record.total
        job.update(state=state, message=message or job.record.message, ended_at=get_time())
        self.remove_forgotten(job)

    def stop(self, job: RunningJob) -> None:
        """Stop a job at its next commit."""
        job.stop.set()

    def save(self, job: RunningJob) -> None:
        """Write the file of a job."""
        content = json.dumps(asdict(job.record), ensure_ascii=True).encode()
        with replace_file(self.path_of(job)) as file:
            file.write(content)

    def path_of(self, job: RunningJob) -> Path:
        """Return the path of a job's file."""
        return self.folder / f"{job.record.id}.json"

    def remove_names(self, names: Collection[str], paths: Collection[str]) -> None:
        """Remove files that are forgotten from all jobs but those that bring them anew."""
        for job in self.list_all():
            record = job.record
            if record.staging is not None and not job.is_over:
                continue
            has_paths = not {*record.paths, *record.unread_paths}.isdisjoint(paths)
            if has_paths or not {*record.names, record.message}.isdisjoint(names):
                job.forgotten |= {*names, *paths}
                self.remove_forgotten(job)

    def remove_forgotten(self, job: RunningJob) -> None:
        """Remove the names of files that are forgotten from a job and its file."""
        record, forgotten = job.record, job.forgotten
        job.update(
            names=[name for name in record.names if name not in forgotten],
            paths=[path for path in record.paths if path not in forgotten],
            unread=[row for row in record.unread if row["name"] not in forgotten],
            unread_paths=[path for path in record.unread_paths if path not in forgotten],
            message="" if record.message in forgotten else record.message,
        )
        self.save(job)

    def remove_text(self, text_id: str) -> None:
        """Remove the job that read a text, which has its name."""
        with self.lock:
            for job in self.list_all():
                if job.is_over and job.record.result == {"text": text_id}:
                    self.remove(job)

    def remove(self, job: RunningJob) -> None:
        """Remove a job, its file, and an upload that it never took."""
        self.jobs.pop(job.record.id)
        with suppress(OSError):
            os.unlink(self.path_of(job))
        if job.record.staging is not None:
            shutil.rmtree(job.record.staging, ignore_errors=True)

    def remove_oldest(self) -> None:
        """Remove the oldest jobs that have ended, if there are too many."""
        over = [job for job in self.jobs.values() if job.is_over]
        for job in over[: max(0, len(self.jobs) - MAX_JOBS)]:
            self.remove(job)

    def close(self, timeout_s: float = 5.0) -> None:
        """Stop all jobs, and wait a little until they have."""
        for job in self.jobs.values():
            job.stop.set()
        self.pool.close(timeout_s)
        for job in self.jobs.values():
            if not job.is_over:
                job.update(state="stopped", message=RESTARTED, ended_at=get_time())
                self.save(job)


def make_record(kind: JobKind, memory: str | None = None, **values: Any) -> JobRecord:
    """Make the record of a new job."""
    return JobRecord(token_hex(8), kind, memory, **values)


def get_time() -> str:
    """Return the time in UTC, in ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def count_files(record: JobRecord, outcomes: dict[str, str]) -> None:
    """Count the outcomes of files."""
    record.counts = dict(Counter(outcomes.values()))
