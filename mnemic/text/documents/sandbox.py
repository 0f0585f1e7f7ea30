"""Read files in a separate process with limits on time and memory."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any, NamedTuple

import mnemic
from mnemic.text.documents.piece import (
    Anchor,
    DocumentError,
    DocumentPart,
    DocumentPiece,
    Note,
    Title,
    replace_unstorable,
)

MAX_WAITING_ANSWERS = 32  # in the queue
# The worker imports this very mnemic, and nothing from its current folder.
START_SCRIPT = """
import sys
sys.path.insert(0, {root!r})
import mnemic
del sys.path[0]
from mnemic.text.documents.sandbox_worker import main
main({memory})
"""


class Limits(NamedTuple):
    """The time, memory and text that reading one file may use."""

    timeout_s: float = 60.0  # for each piece of it
    max_memory_bytes: int = 2_000_000_000
    max_characters: int = 100_000_000  # of text, plus four for each byte of the file


DEFAULT_LIMITS = Limits()


class DocumentParser:
    """Read files, one after another, in a worker process; use it as a context manager.

    A worker that was stopped because of one file is replaced for the next one.
    """

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self.limits = limits
        self.worker: subprocess.Popen[str] | None = None
        self.answers: Queue[str] = Queue(MAX_WAITING_ANSWERS)
        self.listener: Thread | None = None

    def __enter__(self) -> "DocumentParser":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop_worker()

    def read(self, path: Path, kind: str) -> Iterator[DocumentPart]:
        """Yield the parts of a file; ``DocumentError`` if it cannot be read within the limits."""
        characters_left = self.limits.max_characters + 4 * path.stat().st_size
        done = False
        try:
            self.send_request(json.dumps([kind, str(path.absolute())]))
            while (answer := self.receive_answer())[0] != "end":
                if answer[0] == "error":
                    done = True
                    raise DocumentError(replace_unstorable(answer[1]))
                document_part = parse_answer(answer)
                characters_left -= len(document_part.text)
                if characters_left < 0:
                    raise DocumentError("far more text came out of it than a file of its size has")
                yield document_part
            done = True
        finally:
            if not done:  # the worker's remaining answers about this file are useless
                self.stop_worker()

    def send_request(self, line: str) -> None:
        """Send a line to the worker; start the worker if it is not running."""
        if self.worker is None or self.worker.poll() is not None:
            self.start_worker()
        assert self.worker is not None
        assert self.worker.stdin is not None
        self.worker.stdin.write(line + "\n")
        self.worker.stdin.flush()

    def start_worker(self) -> None:
        """Start the worker process and the thread that receives its answers."""
        root = str(Path(mnemic.__file__).parents[1])
        program = START_SCRIPT.format(root=root, memory=self.limits.max_memory_bytes)
        self.worker = subprocess.Popen(
            [sys.executable, "-P", "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="ascii",
            cwd=os.sep,
            start_new_session=True,  # Ctrl-C is for the parent, which kills the worker
        )
        self.answers = Queue(MAX_WAITING_ANSWERS)
        self.listener = Thread(target=forward_lines, args=(self.worker, self.answers), daemon=True)
        self.listener.start()

    def receive_answer(self) -> list[Any]:
        """Return the worker's next answer; ``DocumentError`` if it takes too long or has died."""
        try:
            line = self.answers.get(timeout=self.limits.timeout_s)
        except Empty:
            raise DocumentError(f"reading it took longer than {self.limits.timeout_s:.0f} s and was ended") from None
        if not line:
            raise DocumentError("reading it ended the process that read it (too much memory?)")
        return json.loads(line)

    def stop_worker(self) -> None:
        """Kill the worker process and close its pipes."""
        if self.worker is not None:
            worker, self.worker = self.worker, None
            worker.kill()
            while self.listener is not None and self.listener.is_alive():
                with suppress(Empty):  # make room in the queue so that the listener can end
                    self.answers.get(timeout=0.01)
            worker.wait()
            for pipe in (worker.stdin, worker.stdout):
                if pipe is not None:
                    pipe.close()


def forward_lines(worker: "subprocess.Popen[str]", answers: "Queue[str]") -> None:
    """Put each line of the worker's output into the queue, then an empty string."""
    assert worker.stdout is not None
    for line in worker.stdout:
        answers.put(line)
    answers.put("")


def parse_answer(answer: list[Any]) -> DocumentPart:
    """Convert a worker's answer into a piece, a note or a title."""
    kind, *values = answer
    if kind != "piece":
        message = replace_unstorable(values[0])
        return Note(message) if kind == "note" else Title(message)
    text, anchors, page, cuts = values
    anchor_tuple = tuple(Anchor(*anchor) for anchor in anchors)
    return DocumentPiece(replace_unstorable(text), anchor_tuple, page, None if cuts is None else tuple(cuts))
