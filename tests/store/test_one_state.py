"""A question, a list and an export read one state, whatever another process writes meanwhile."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from store_runs import memory

from mnemic import Memory
from mnemic.store import CheckReport
from mnemic.store.ingest.forget import SCRUB_DELAYED, SCRUB_FINISHED
from mnemic.store.postgres import scrub as postgres_scrub
from mnemic.store.relational import Store
from mnemic.store.sqlite import connection as sqlite_connection

__all__ = ["memory"]  # a fixture

SECRET = "The passphrase is incomprehensibilities."


@pytest.fixture
def notes(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> Memory:
    """A memory of four notes; who forgets waits for readers a moment only."""
    monkeypatch.setattr(postgres_scrub, "READER_TIMEOUT_S", 0.1)
    monkeypatch.setattr(sqlite_connection, "BUSY_TIMEOUT_S", 0)
    for number in range(4):
        memory.note(f"Person{number} lives in house {number * 7}. Everybody knows that.")
    return memory


READS: dict[str, Callable[[Memory], Any]] = {
    "ask": lambda memory: memory.ask("Where does Person2 live?", hops=2),
    "search": lambda memory: memory.search("Where does Person2 live?"),
    "ask with a filter": lambda memory: memory.ask("Where does Person2 live?", kind="note"),
    "search with a filter": lambda memory: memory.search("Where does Person2 live?", kind="note"),
    "about": lambda memory: memory.about("lives in house"),
    "memories": lambda memory: memory.memories(retired=True),
    "text": lambda memory: memory.text(3),
    "history": lambda memory: memory.history(3),
}


@pytest.mark.parametrize("read", READS)
def test_a_read_sees_one_state(notes: Memory, read: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one forgets and updates before each statement."""
    expected = READS[read](notes)
    writes: Iterator[Callable[[Memory], object]] = iter(
        [lambda other: other.forget(3), lambda other: other.update(2, "Person1 left."), lambda other: other.forget(1)]
    )
    kind = type(notes.store.connection)
    fetch_all = kind.fetch_all
    watched = notes.store.connection
    with Memory(str(notes.path), reader=None) as other:
        other.stats()

        def write_first(self: Any, sql: str, values: Any = ()) -> Any:
            rows = fetch_all(self, sql, values)
            if self is watched and "FROM" in sql and (write := next(writes, None)):
                write(other)
            return rows

        monkeypatch.setattr(kind, "fetch_all", write_first)
        assert READS[read](notes) == expected
        monkeypatch.undo()
        assert len(other.memories()) < 4


def test_an_export_is_one_state(notes: Memory, tmp_path: Path) -> None:
    with Memory(str(notes.path), reader=None) as other:
        steps = notes.export(tmp_path / "all.jsonl")
        next(steps)
        other.forget(2, 4)
        other.update(3, "Person2 moved.")
        notes.note("This thread may write, too.")
        list(steps)
    with Memory(tmp_path / "copy.db", embedder="none", reader=None) as copy:
        list(copy.take(tmp_path / "all.jsonl"))
        assert copy.check() == CheckReport()
        assert [copy.text(document.id)[:7] for document in copy.memories()] == [f"Person{n}" for n in range(4)]


def test_a_forgetting_that_was_killed_is_finished_by_the_next_writer(
    notes: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    class KillError(Exception):
        pass

    def kill(self: Store) -> bool:
        raise KillError

    number = notes.note(SECRET)
    with monkeypatch.context() as patch:
        patch.setattr(type(notes.store), "scrub", kill)
        with pytest.raises(KillError):
            notes.forget(number)
    notes.close()
    heard: list[str] = []
    with Memory(str(notes.path), reader=None, on_notice=heard.append) as memory:
        assert memory.store.has_pending_scrub()
        memory.ask("Where is Person1?")
        assert heard == []
        memory.note("Something else.")
        assert heard == [SCRUB_FINISHED]
        assert not memory.store.has_pending_scrub()
        assert memory.store.find_traces([b"incomprehensibil"]) == []
        memory.note("And again.")
        assert heard == [SCRUB_FINISHED]
        assert memory.check() == CheckReport()


def test_a_writer_does_not_wait_for_readers_to_clear_the_files(notes: Memory) -> None:
    number = notes.note(SECRET)
    heard: list[str] = []
    with Memory(str(notes.path), reader=None, on_notice=heard.append) as writer:
        with notes.store.snapshot():
            assert len(notes.memories()) == 5
            assert not writer.forget(number).scrubbed
            writer.note("Something else.")
            assert heard == [SCRUB_DELAYED]
        writer.note("One more.")
        assert heard == [SCRUB_DELAYED, SCRUB_FINISHED]
        assert writer.store.find_traces([b"incomprehensibil"]) == []


def test_history_is_in_the_order_of_events(notes: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock goes back a year between two versions."""
    monkeypatch.setattr("mnemic.store.relational.get_utc_time", lambda: "2020-01-01T00:00:00+00:00")
    number = notes.update(1, "Person0 moved.")
    _, events = notes.history(number)
    assert [(event.document, event.what) for event in events] == [
        (1, "remembered"), (number, "remembered"), (1, "superseded"),
    ]  # fmt: skip


# Updates and forgets for ever; says how often when its input ends.
FORGETTER = """
import random, sys, threading
from mnemic import Memory
memory, generator, done = Memory(sys.argv[1], reader=None), random.Random(0), threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), done.set()), daemon=True).start()
numbers, count = [document.id for document in memory.memories()], 1000
print("ready", flush=True)
while not done.is_set():
    number = numbers.pop(generator.randrange(len(numbers)))
    if generator.random() < 0.5:
        memory.forget(number)
    else:
        number = memory.update(number, f"Person{count} moved to house {generator.random()}. Who knows?")
        memory.forget(number)
    numbers.append(memory.note(f"Person{count} lives in house {count}. Everybody knows that."))
    count += 1
print(count - 1000)
"""


class Forgetter:
    """A process that updates and forgets while the block runs."""

    def __init__(self, memory: Memory) -> None:
        command = [sys.executable, "-c", FORGETTER, str(memory.path)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> "Forgetter":
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"
        return self

    def __exit__(self, *error: object) -> None:
        out, _ = self.process.communicate("")
        assert int(out) > 0


def read_beside(memory: Memory, count: int) -> None:
    with Forgetter(memory):
        for number in range(count):
            answer = memory.ask(f"Where does Person{number % 40} live?")
            assert answer.evidence
            assert memory.search("Person house")
            assert memory.about("lives in house")
            assert memory.memories(retired=True)


def export_beside(memory: Memory, folder: Path, count: int) -> None:
    """Each export is whole, and the memory that is made of it is sound."""
    with Forgetter(memory):
        for number in range(count):
            list(memory.export(folder / f"{number}.jsonl"))
    for number in range(count):
        lines = [json.loads(line) for line in (folder / f"{number}.jsonl").read_text(encoding="utf-8").splitlines()]
        counts = [line["document"]["passages"] for line in lines if "document" in line]
        assert sum(counts) == sum("passage" in line for line in lines)
        assert 0 not in counts
        with Memory(folder / f"{number}.db", embedder="none", reader=None) as copy:
            list(copy.take(folder / f"{number}.jsonl"))
            assert copy.check() == CheckReport()
            assert len(copy.memories(retired=True)) == len(counts)


@pytest.fixture
def crowd(memory: Memory) -> Memory:
    for number in range(40):
        memory.note(f"Person{number} lives in house {number}. Everybody knows that.")
    return memory


def test_readers_beside_a_forgetter(crowd: Memory, tmp_path: Path) -> None:
    read_beside(crowd, 15)
    export_beside(crowd, tmp_path, 3)


@pytest.mark.slow
def test_many_readers_beside_a_forgetter(crowd: Memory, tmp_path: Path) -> None:
    read_beside(crowd, 1250)  # 5,000 reads
    export_beside(crowd, tmp_path, 40)
