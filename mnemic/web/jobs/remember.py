"""The job that remembers files: uploads, and folders that the server was started with."""

import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mnemic.store.ingest.steps import find_install_command
from mnemic.web.describe import clean
from mnemic.web.jobs.table import MAX_UNREAD, RunningJob, count_files
from mnemic.web.memories import ServedMemory
from mnemic.web.uploads import publish_files

if TYPE_CHECKING:
    from mnemic.store import RememberStep

MIN_TURN_S = 2.0  # that a job writes before it lets others write
UPDATE_S = 0.1  # at most one change per interval, for streams of events
LEFT_OUT = ("broken", "skipped")
PASSWORD_ADVICE = "Retry with the password of the file."
INSTALL_ADVICE = "Install what reads it: {command}"
MISSING = "the file is gone"


class RememberJob:
    """The remembering of some files and folders, with the outcome of each file."""

    def __init__(self, job: RunningJob, served: ServedMemory, password: str | None) -> None:
        self.job, self.served, self.password = job, served, password
        self.unread: dict[str, dict[str, Any]] = {row["name"]: row for row in job.record.unread}
        self.outcomes: dict[str, str] = dict.fromkeys(self.unread, "skipped")  # hidden files of an upload
        self.documents: dict[int, None] = {}
        self.num_passages, self.last_update = 0, 0.0

    def run(self) -> None:
        """Remember everything, in turns with others who write."""
        record, files = self.job.record, self.served.files
        if record.staging is not None:
            published = publish_files(Path(record.staging), files.folder, record.names)
            record.paths, record.staging = [str(path) for path in published], None
        for path in record.paths:
            if not Path(path).exists():
                self.note_unread(path, "broken", (MISSING,))
        while not self.job.stop.is_set() and not self.remember_for_a_turn():
            pass
        self.publish()
        record.unread_paths = [
            path for path, outcome in self.outcomes.items() if outcome in LEFT_OUT and Path(path).is_absolute()
        ]
        record.result = {"documents": list(self.documents)[:MAX_UNREAD], "passages": self.num_passages}

    def remember_for_a_turn(self) -> bool:
        """Remember until others want to write; return whether all is done."""
        turns, stop = self.served.turns, self.job.stop
        with turns.take(is_urgent=False, stop=stop):
            if stop.is_set():
                return False
            paths = [path for path in self.job.record.paths if Path(path).exists()]  # some may be forgotten meanwhile
            if not paths:
                return True
            started, has_written = time.monotonic(), False
            with closing(self.served.memory.remembering(paths, password=self.password)) as steps:
                for step in steps:
                    self.note_step(step)
                    has_written |= step.outcome in ("new", "changed")
                    if step.num_following:  # they are written already, and a later turn would call them unchanged
                        continue
                    if stop.is_set():
                        return False
                    if has_written and turns.num_urgent and time.monotonic() - started > MIN_TURN_S:
                        return False
        return True

    def note_step(self, step: "RememberStep") -> None:
        """Count a file; what was done in an earlier turn is not counted again."""
        record, outcome = self.job.record, str(step.outcome)
        if outcome != "reading":
            known = self.outcomes.get(step.path)
            if known is None or known in LEFT_OUT:
                self.outcomes[step.path] = outcome
                self.num_passages += step.passages
                if step.document is not None:
                    self.documents[step.document] = None
            if outcome in LEFT_OUT:
                self.note_unread(step.path, outcome, step.notes)
        record.total = max(record.total, step.total)
        record.done = min(max(record.done, step.done), record.total)
        record.message = clean(self.served.files.describe_place(step.path).name)
        if time.monotonic() - self.last_update > UPDATE_S:
            self.publish()

    def note_unread(self, path: str, outcome: str, notes: tuple[str, ...]) -> None:
        """Note a file that was not read, with what would help."""
        self.outcomes[path] = outcome
        name, reasons = clean(self.served.files.describe_place(path).name), [clean(note) for note in notes]
        if len(self.unread) < MAX_UNREAD:
            advice = find_advice(reasons)
            self.unread[name] = {"name": name, "outcome": outcome, "reasons": reasons, "advice": advice}

    def publish(self) -> None:
        """Show clients how far it is."""
        self.last_update = time.monotonic()
        count_files(self.job.record, self.outcomes)
        self.job.update(unread=list(self.unread.values()))


def find_advice(reasons: list[str]) -> str | None:
    """Find what would help to read a file."""
    for reason in reasons:
        if command := find_install_command(reason):
            return INSTALL_ADVICE.format(command=command)
        if "password" in reason:
            return PASSWORD_ADVICE
    return None
