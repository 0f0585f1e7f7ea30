"""Read files in a separate process with limits, without network or programs."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from queue import Empty, Queue
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import mnemic
from mnemic.text.documents.boxes import parse_box
from mnemic.text.documents.kinds import PROGRAM_KINDS
from mnemic.text.documents.limits import DEFAULT_LIMITS, MAX_NOTE_LENGTH, MAX_TITLE_LENGTH, TOO_MUCH_TEXT, Limits
from mnemic.text.documents.open_file import OpenFile
from mnemic.text.documents.piece import (
    MAX_PIECE_LENGTH,
    Anchor,
    DocumentError,
    DocumentPart,
    DocumentPiece,
    Member,
    Note,
    Title,
    replace_unstorable,
)

MAX_WAITING_ANSWERS = 32  # in the queue
MAX_ANSWER_LENGTH = 100 * MAX_PIECE_LENGTH  # a piece with an anchor for each character is shorter
MIN_TIMEOUT_S = 5.0
SHORT_PARTS: dict[str, Callable[[str], DocumentPart]] = {"note": Note, "title": Title, "member": Member}
# The worker inherits what starting Python and its libraries may need, and no secrets.
INHERITED_VARIABLES = {
    "DYLD_LIBRARY_PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "OMP_NUM_THREADS", "PATH", "PYTHONHOME",
    "PYTHONPATH", "SYSTEMROOT", "TMPDIR", "TZ", "VIRTUAL_ENV",
}  # fmt: skip
# The worker imports this very mnemic, and nothing from its current folder.
START_SCRIPT = """
import sys
sys.path.insert(0, {root!r})
import mnemic
del sys.path[0]
from mnemic.text.documents.sandbox_worker import main
main({memory}, {parent}, may_start_programs={programs})
"""


class DocumentParser:
    """Read files, one after another, in a worker process; use it as a context manager.

    A worker that was stopped because of one file is replaced for the next one. Each file that runs
    out of time halves the time of those that follow, and text beyond what a file of its size has is
    taken from an amount for all of them: many bombs do not cost many times as much as one.
    """

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self.limits = limits
        self.num_timeouts = 0
        self.spare_characters = limits.max_spare_characters
        self.may_start_programs = False
        self.worker: subprocess.Popen[str] | None = None
        self.scratch: TemporaryDirectory[str] | None = None  # of programs; this process removes it
        self.requests: socket.socket | None = None
        self.answers: Queue[str] = Queue(MAX_WAITING_ANSWERS)
        self.listener: Thread | None = None

    def __enter__(self) -> "DocumentParser":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop_worker()

    def read(self, file: OpenFile | Path, kind: str, password: str | None = None) -> Iterator[DocumentPart]:
        """Yield the parts of a file; ``DocumentError`` if it cannot be read within the limits."""
        with OpenFile(file) if isinstance(file, Path) else nullcontext(file) as opened:
            yield from self.read_open_file(opened, kind, password)

    def read_open_file(self, file: OpenFile, kind: str, password: str | None) -> Iterator[DocumentPart]:
        """Hand the descriptor of a file to the worker and yield what it reads."""
        num_bytes = file.stat.st_size
        limits = self.limits._replace(max_characters=min(self.limits.max_characters, self.spare_characters))
        characters_left, seconds_left = limits.max_text(num_bytes), limits.max_seconds(num_bytes, kind)
        spare_left = limits.characters_per_byte * num_bytes  # negative: taken from that of all files
        request = [kind, file.path.name, str(file.path.absolute()), password, characters_left, seconds_left, None]
        done = False
        try:
            self.send_request(request, file.descriptor, may_start_programs=kind in PROGRAM_KINDS)
            while True:
                started = time.monotonic()
                answer = self.receive_answer(seconds_left)
                seconds_left -= time.monotonic() - started  # the parent's own work does not count
                if answer[0] in ("end", "error"):
                    done = True
                    break
                document_part = parse_answer(answer)
                characters_left -= len(document_part[0])
                spare_left -= len(document_part[0])
                if characters_left < 0:
                    raise DocumentError(TOO_MUCH_TEXT)
                yield document_part
        finally:
            self.spare_characters += min(spare_left, 0)
            if not done:  # the worker's remaining answers about this file are useless
                self.stop_worker()
        if answer[0] == "error":
            raise DocumentError(replace_unstorable(str(answer[-1]))[:MAX_NOTE_LENGTH])

    def view(self, file: OpenFile, kind: str, name: str, **options: Any) -> list[list[Any]]:
        """Return a view of a file's pages: "sizes", an "image" or boxes of "words"."""
        seconds = self.limits.timeout_s
        request = [kind, file.path.name, str(file.path.absolute()), None, 0, seconds, {"name": name, **options}]
        answers, done, end = list[list[Any]](), False, time.monotonic() + seconds
        try:
            self.send_request(request, file.descriptor)
            while (answer := self.receive_answer(end - time.monotonic()))[0] == "view":
                answers.append(answer[1:])
            done = answer[0] in ("end", "error")
        finally:
            if not done:
                self.stop_worker()
        if answer[0] != "end":
            raise DocumentError(replace_unstorable(str(answer[-1]))[:MAX_NOTE_LENGTH])
        return answers

    def send_request(self, request: list[Any], descriptor: int, *, may_start_programs: bool = False) -> None:
        """Send a request with a descriptor; start a worker if none is running."""
        is_running = self.worker is not None and self.worker.poll() is None
        if not is_running or may_start_programs != self.may_start_programs:
            self.stop_worker()
            self.start_worker(may_start_programs=may_start_programs)
        assert self.requests is not None
        socket.send_fds(self.requests, [json.dumps(request).encode("ascii") + b"\n"], [descriptor])

    def start_worker(self, *, may_start_programs: bool) -> None:
        """Start the worker process and the thread that receives its answers."""
        root, self.may_start_programs = str(Path(mnemic.__file__).parents[1]), may_start_programs
        options = {"root": root, "memory": self.limits.max_memory_bytes, "parent": os.getpid()}
        program = START_SCRIPT.format(**options, programs=may_start_programs)
        environment = {name: os.environ[name] for name in INHERITED_VARIABLES & set(os.environ)}
        if may_start_programs:  # a worker that is killed leaves no copy of a document behind
            self.scratch = TemporaryDirectory(prefix="mnemic-", ignore_cleanup_errors=True)
            environment["TMPDIR"] = self.scratch.name
        self.requests, worker_end = socket.socketpair()
        with worker_end:
            self.worker = subprocess.Popen(
                [sys.executable, "-P", "-c", program],
                stdin=worker_end.fileno(),
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                encoding="ascii",
                cwd=os.sep,
                env=environment | {"PYTHONDONTWRITEBYTECODE": "1"},
                start_new_session=True,  # Ctrl-C is for the parent, which kills the worker
            )
        self.answers = Queue(MAX_WAITING_ANSWERS)
        self.listener = Thread(target=forward_lines, args=(self.worker, self.answers), daemon=True)
        self.listener.start()

    def receive_answer(self, seconds_left: float) -> list[Any]:
        """Return the worker's next answer; ``DocumentError`` if it takes too long or has died."""
        timeout_s = self.limits.timeout_s
        if self.num_timeouts:
            timeout_s = min(timeout_s, max(timeout_s / 2**self.num_timeouts, MIN_TIMEOUT_S))
        timeout_s = min(timeout_s, max(seconds_left, 0))
        try:
            line = self.answers.get(timeout=timeout_s)
        except Empty:
            self.num_timeouts += 1
            raise DocumentError(f"reading it took longer than {timeout_s:.0f} s and was ended") from None
        if not line.endswith("\n"):
            raise DocumentError("reading it ended the process that read it (too much memory?)")
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, list) or not answer:
            raise DocumentError("reading it gave no document but something else")
        return answer

    def stop_worker(self) -> None:
        """Kill the worker with all that it started, and close its pipes."""
        if self.worker is not None:
            worker, self.worker = self.worker, None
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(worker.pid, signal.SIGKILL)
            while self.listener is not None and self.listener.is_alive():
                with suppress(Empty):  # make room in the queue so that the listener can end
                    self.answers.get(timeout=0.01)
            worker.wait()
            for pipe in (self.requests, worker.stdout):
                if pipe is not None:
                    pipe.close()
            if self.scratch is not None:
                self.scratch.cleanup()
                self.scratch = None


def forward_lines(worker: "subprocess.Popen[str]", answers: "Queue[str]") -> None:
    """Put each line of the worker's output into the queue, then an empty string."""
    assert worker.stdout is not None
    while (line := worker.stdout.readline(MAX_ANSWER_LENGTH)).endswith("\n"):
        answers.put(line)
    answers.put("")


def parse_answer(answer: list[Any]) -> DocumentPart:
    """Convert a worker's answer, which may say anything, into a part of a document."""
    try:
        kind, *values = answer
        if kind != "piece":
            return SHORT_PARTS[kind](replace_unstorable(values[0])[: 2 * MAX_TITLE_LENGTH])
        text, anchors, page, cuts, boxes = values
        anchor_tuple = tuple(Anchor(*map(int, anchor)) for anchor in anchors)
        cut_tuple = None if cuts is None else tuple(map(int, cuts))
        box_tuple = tuple(map(parse_box, boxes))
        piece = DocumentPiece(replace_unstorable(text), anchor_tuple, page and int(page), cut_tuple, box_tuple)
    except (TypeError, ValueError, KeyError, IndexError) as error:
        raise DocumentError(f"reading it gave no document but {type(error).__name__}: {error}") from None
    if len(piece.text) > MAX_PIECE_LENGTH or not anchor_tuple or anchor_tuple[0].position != 0:
        raise DocumentError("reading it gave a piece of text that is too long or has no position")
    return piece
