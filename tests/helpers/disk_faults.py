"""Run what changes a memory while its disk fails, or while the process is killed.

A program of its own, with ``disk_faults.c`` preloaded: each verb is run once to count the changes
of files, then again for each of them, with that one failing. Arguments: an empty folder, the number
of changes between two that fail, and the verbs (by default all).
"""

import ctypes
import errno
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from mnemic.store import CheckReport, HashedNgrams, Memory, StoreError
from mnemic.store.ingest.parts import PART_MARK
from mnemic.store.sqlite import quantized
from mnemic.text.documents import DocumentError

SECRET = "The passphrase of the cellar is on the back of the third painting."
LONG = "".join(f"Person {number} met person {number * 7} in house {number * 3}.\n\n" for number in range(300))
KILL = 0
FAULTS = {  # errno or KILL, and whether only one change fails
    "I/O error": (errno.EIO, True),
    "disk full": (errno.ENOSPC, True),
    "I/O errors from then on": (errno.EIO, False),
    "kill": (KILL, True),
}
State = dict[str, tuple[bool, tuple[str, ...]]]  # of each text: whether it is retired, and its files


class Verb(NamedTuple):
    """A change of a memory: what runs, and what may be there after an error."""

    run: Callable[[Memory, Path], object]
    is_atomic: bool = True  # else some documents may be there before others
    is_sound: bool = True  # else `check` may say that it is to be run again


def forget(memory: Memory, folder: Path) -> None:
    numbers = [document.id for document in memory.memories() if SECRET in memory.text(document.id)]
    if numbers:
        memory.forget(*numbers, verify=True)


def update(memory: Memory, folder: Path) -> None:
    if any("The milk is sour." in memory.text(document.id) for document in memory.memories()):
        return
    memory.update(2, "The milk is sour.")


def remember(memory: Memory, path: Path) -> None:
    broken = [step for step in memory.remember(path) if step.outcome == "broken"]
    if broken:
        raise StoreError(str(broken))


VERBS = {
    "note": Verb(lambda memory, folder: memory.note("The bread is in the kitchen.")),
    "remember a folder": Verb(lambda memory, folder: remember(memory, folder / "papers")),
    "remember a large file": Verb(lambda memory, folder: remember(memory, folder / "long.txt")),
    "update": Verb(update),
    "forget": Verb(forget),
    "ask": Verb(lambda memory, folder: memory.ask("Who met person 21?")),
    "export": Verb(lambda memory, folder: list(memory.export(folder / "disk" / "out.jsonl"))),
    "import": Verb(lambda memory, folder: list(memory.take(folder / "other.jsonl")), is_atomic=False),
    "reindex": Verb(lambda memory, folder: list(memory.reindex(HashedNgrams(width=64))), is_sound=False),
    "check": Verb(lambda memory, folder: memory.check()),
}


def prepare(folder: Path) -> None:
    """Write the files to remember, and the memory that every try begins with."""
    (folder / "papers").mkdir()
    for number in range(5):
        (folder / "papers" / f"{number}.txt").write_text(f"Paper {number} is about nails. " * 20, encoding="utf-8")
    (folder / "long.txt").write_text(LONG, encoding="utf-8")
    with Memory(folder / "other.db", embedder="hashed-ngrams", reader=None) as other:
        for number in range(4):
            other.note(f"Letter {number} came from the sea. " * 9)
        list(other.export(folder / "other.jsonl"))
    (folder / "first").mkdir()
    with Memory(folder / "first" / "memory.db", embedder="hashed-ngrams", reader=None) as memory:
        memory.note("Person 3 met person 21. Everybody knows that.")
        memory.note("The milk is in the kitchen.")
        memory.note(" ".join(f"{SECRET} That is number {number}." for number in range(40)))
        memory.note("This is old.")
        memory.update(4, "This is new.")
        list(memory.export(folder / "first" / "out.jsonl"))


def begin(folder: Path) -> None:
    """Put the first memory onto the disk that fails."""
    shutil.rmtree(folder / "disk", ignore_errors=True)
    shutil.copytree(folder / "first", folder / "disk")


def open_memory(folder: Path) -> Memory:
    return Memory(folder / "disk" / "memory.db", reader=None)


def read_state(folder: Path) -> State:
    with open_memory(folder) as memory:
        return {
            memory.text(document.id): (document.retired is not None, tuple(map(str, document.places)))
            for document in memory.memories(retired=True)
            if not document.title.endswith(PART_MARK)
        }


class Expected(NamedTuple):
    """The state and the export before a verb and after it."""

    before: State
    after: State
    exports: set[bytes]


class Disk:
    """The library that makes changes of files fail."""

    def __init__(self, folder: Path) -> None:
        self.library, self.folder = ctypes.CDLL(None), str(folder).encode()
        self.library.disarm_faults.restype = ctypes.c_long

    def count(self, run: Callable[[], object]) -> int:
        """Return the number of changes of files."""
        self.library.arm_faults(self.folder, ctypes.c_long(0), 0, 1)
        run()
        return int(self.library.disarm_faults())

    def fail(self, run: Callable[[], object], number: int, fault: str) -> bool:
        """Run with a fault; return whether it was acknowledged all the same."""
        code, only_one = FAULTS[fault]
        child = os.fork() if code == KILL else None
        if child:
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        self.library.arm_faults(self.folder, ctypes.c_long(number), code, int(only_one))
        try:
            run()
            is_acknowledged = True
        except (StoreError, DocumentError, OSError):  # anything else is no readable error
            is_acknowledged = False
        self.library.disarm_faults()
        if child == 0:
            os._exit(0 if is_acknowledged else 1)
        return is_acknowledged


def try_verb(disk: Disk, folder: Path, verb: Verb, number: int, fault: str, expected: Expected) -> None:
    """Let one change fail: nothing is lost, nothing is there by half, and it can be done again."""
    before, after, exports = expected
    begin(folder)
    is_acknowledged = disk.fail(lambda: run_verb(verb, folder), number, fault)
    with open_memory(folder) as memory:
        report = memory.check()
        assert not verb.is_sound or report == CheckReport(), report
    state = read_state(folder)
    if is_acknowledged:
        assert state == after, "it was acknowledged, and is not there"
    if verb.is_atomic:
        assert state in (before, after), "something is there by half"
    assert before.items() & after.items() <= state.items() <= before.items() | after.items(), "something is lost"
    if not any(SECRET in text for text in state):
        files = (folder / "disk").glob("memory.db*")
        assert not any(SECRET.encode() in path.read_bytes() for path in files), "what was forgotten is in a file"
    assert (folder / "disk" / "out.jsonl").read_bytes() in exports, "an export is there by half"
    run_verb(verb, folder)
    assert read_state(folder) == after
    with open_memory(folder) as memory:
        assert memory.check() == CheckReport()


def run_verb(verb: Verb, folder: Path) -> None:
    with open_memory(folder) as memory:
        verb.run(memory, folder)


def try_verbs(folder: Path, every: int, names: list[str]) -> Iterator[tuple[str, str, int, int]]:
    """Yield the verb, the fault, the changes of files and the number of tries."""
    disk = Disk(folder / "disk")
    for name in names:
        begin(folder)
        before, first_export = read_state(folder), (folder / "disk" / "out.jsonl").read_bytes()
        changes = disk.count(partial(run_verb, VERBS[name], folder))
        exports = {first_export, (folder / "disk" / "out.jsonl").read_bytes()}
        expected = Expected(before, read_state(folder), exports)
        for offset, fault in enumerate(FAULTS):
            numbers = range(1 + offset % every, changes + 1, every)
            for number in numbers:
                try:
                    try_verb(disk, folder, VERBS[name], number, fault, expected)
                except Exception as error:
                    raise AssertionError(f"{name}: {fault} at change {number} of {changes}") from error
            yield name, fault, changes, len(numbers)


def main(folder: Path, every: int, names: list[str]) -> None:
    quantized.MIN_SLOTS = 2  # a file of codes, too
    prepare(folder)
    started, tries = time.monotonic(), list(try_verbs(folder, every, names or list(VERBS)))
    print(json.dumps({"tries": tries, "seconds": time.monotonic() - started}))


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), int(sys.argv[2]), sys.argv[3:])
