"""Jobs: work that takes longer than a request."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from mnemic.web.schemas.documents import Body

JobKind = Literal["remember", "reindex", "text"]
JobState = Literal["queued", "running", "done", "stopped", "failed"]


class UnreadFile(BaseModel):
    """A file that was not read, and why."""

    name: str
    outcome: str = Field(description="broken or skipped.")
    reasons: list[str]
    advice: str | None = Field(description="What would help.")


class JobProgress(BaseModel):
    """How far a job is."""

    id: str
    kind: JobKind
    memory: str | None
    state: JobState
    done: int = Field(description="Of `total`: bytes, passages or tokens.")
    total: int
    message: str
    counts: dict[str, int] = Field(description="Files by outcome: new, changed, unchanged, broken, skipped …")
    started_at: str
    ended_at: str | None


class Job(JobProgress):
    """A job, with the files that were not read."""

    unread: list[UnreadFile]
    result: dict[str, Any] | None


class JobAccepted(BaseModel):
    """A job that has begun."""

    job: Job


class JobList(BaseModel):
    """The jobs, newest first."""

    jobs: list[Job]


class Retry(Body):
    """How to read once more what was not read."""

    password: str | None = Field(default=None, max_length=1000, description="Opens files that are locked with it.")
