"""Read files in a process of its own, which may take only so much time and memory."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from types import TracebackType
from typing import Any, NamedTuple

import mnemic
from mnemic.text.documents.piece import Anchor, DocumentError, Note, Part, Piece, Title, storable

AHEAD = 32  # answers that wait for whoever reads them
# The child takes this very mnemic, and nothing from the folder it happens to be started in.
START = """
import sys
sys.path.insert(0, {root!r})
import mnemic
del sys.path[0]
from mnemic.text.documents.sandbox_worker import main
main({memory})
"""


class Limits(NamedTuple):
    """What reading a file may take."""

    seconds: float = 60.0  # until the next piece of it
    memory: int = 2_000_000_000  # bytes
    characters: int = 100_000_000  # that may come out, beside four for each byte of the file


USUAL = Limits()


class Parser:
    """Reads files, one after the other, in a child process; use it as a context.

    A child that was ended because of one file is replaced for the next one.
    """

    def __init__(self, limits: Limits = USUAL) -> None:
        self.limits = limits
        self.child: subprocess.Popen[str] | None = None
        self.answers: Queue[str] = Queue(AHEAD)
        self.listener: Thread | None = None

    def __enter__(self) -> "Parser":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def read(self, path: Path, kind: str) -> Iterator[Part]:
        """The parts of a file; ``DocumentError`` if it cannot be read, or not within the limits."""
        allowed = self.limits.characters + 4 * path.stat().st_size
        done = False
        try:
            self.ask(json.dumps([kind, str(path.absolute())]))
            while (answer := self.next_answer())[0] != "end":
                if answer[0] == "error":
                    done = True
                    raise DocumentError(storable(answer[1]))
                part = as_part(answer)
                allowed -= len(part.text)
                if allowed < 0:
                    raise DocumentError("far more text came out of it than a file of its size has")
                yield part
            done = True
        finally:
            if not done:  # what the child still has to say about this file is of no use
                self.end()

    def ask(self, line: str) -> None:
        if self.child is None or self.child.poll() is not None:
            self.start()
        assert self.child is not None
        assert self.child.stdin is not None
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()

    def start(self) -> None:
        root = str(Path(mnemic.__file__).parents[1])
        program = START.format(root=root, memory=self.limits.memory)
        self.child = subprocess.Popen(
            [sys.executable, "-P", "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="ascii",
            cwd=os.sep,
            start_new_session=True,  # Ctrl-C is for us; we end it
        )
        self.answers = Queue(AHEAD)
        self.listener = Thread(target=listen, args=(self.child, self.answers), daemon=True)
        self.listener.start()

    def next_answer(self) -> list[Any]:
        try:
            line = self.answers.get(timeout=self.limits.seconds)
        except Empty:
            raise DocumentError(
                f"reading it took longer than {self.limits.seconds:.0f} s and was ended"
            ) from None
        if not line:
            raise DocumentError("reading it ended the process that read it (too much memory?)")
        return json.loads(line)

    def end(self) -> None:
        if self.child is not None:
            child, self.child = self.child, None
            child.kill()
            while self.listener is not None and self.listener.is_alive():
                with suppress(Empty):  # so that the one who listens has room to end
                    self.answers.get(timeout=0.01)
            child.wait()
            for pipe in (child.stdin, child.stdout):
                if pipe is not None:
                    pipe.close()


def listen(child: "subprocess.Popen[str]", answers: "Queue[str]") -> None:
    """Hand on each line, and an empty one at the end."""
    assert child.stdout is not None
    for line in child.stdout:
        answers.put(line)
    answers.put("")


def as_part(answer: list[Any]) -> Part:
    kind, *values = answer
    if kind != "piece":
        told = storable(values[0])
        return Note(told) if kind == "note" else Title(told)
    text, anchors, page, cuts = values
    found = tuple(Anchor(*anchor) for anchor in anchors)
    return Piece(storable(text), found, page, None if cuts is None else tuple(cuts))
