"""Concurrent writers of one server memory: nothing is lost, doubled or half-done."""

import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from mnemic import Memory
from mnemic.store import PostgresStore
from mnemic.store.contract import CheckReport, Draft, EmbeddingModel, FileRecord, RaceError
from mnemic.store.ingest.check import check_store
from mnemic.text.documents import Passage, Sentence

NewAddress = Callable[[], str]
# Waits for the word, remembers a folder that all remember and one of its own, and tells a note.
WRITER = """
import sys
from mnemic.store import Memory
address, shared, own, name = sys.argv[1:]
memory = Memory(address, embedder="hashed-ngrams")
print("ready", flush=True)
sys.stdin.readline()
steps = memory.remember(shared, own)
assert not [step for step in steps if step.outcome == "broken"], steps
for number in range(20):
    memory.note(f"Everybody tells number {number}.")
    memory.note(f"{name} tells number {number}.")
print(len(steps))
"""


def folder(path: Path, count: int) -> Path:
    path.mkdir()
    for number in range(count):
        text = f"{path.name} {number} is about the number {number}. It says nothing else.\n"
        (path / f"{number}.txt").write_text(text, encoding="utf-8")
    return path


def test_processes_that_remember_at_once(tmp_path: Path, new_address: NewAddress) -> None:
    """They meet at everything there is: at making the memory, at files, at notes."""
    address, shared = new_address(), folder(tmp_path / "shared", 80)
    large = "".join(f"Person {n} lives in house {n * 7}.\n\n" for n in range(3000))
    (shared / "large.txt").write_text(large, encoding="utf-8")
    writers = []
    for name in ("ann", "bob", "eve"):
        words = [sys.executable, "-c", WRITER, address, shared, folder(tmp_path / name, 20), name]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        writers.append(subprocess.Popen([str(word) for word in words], text=True, **pipes))
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        out, err = writer.communicate(timeout=60)
        assert (writer.returncode, out) == (0, "101\n"), err
    with Memory(address, reader=None) as memory:
        assert memory.check() == CheckReport()
        documents = memory.memories(retired=True)
        assert len(documents) == len({document.digest for document in documents}) == 81 + 3 * 20 + 20 + 3 * 20
        assert sorted(record.path for record in memory.store.list_file_records()) == sorted(
            str(path) for path in tmp_path.rglob("*.txt")
        )
        assert memory.ask("Where does Person 1234 live?").text == "Person 1234 lives in house 8638."


@pytest.fixture
def pair(new_address: NewAddress) -> tuple[PostgresStore, PostgresStore]:
    address = new_address()
    stores = PostgresStore(address), PostgresStore(address)
    with stores[0].write_session(), stores[0].transaction():
        stores[0].set_model(None)
    return stores


def add(store: PostgresStore, name: str, path: str = "", before_commit: Callable[[], object] = lambda: None) -> int:
    text = Passage(name, None, (Sentence(0, len(name), 1, 0, len(name)),))
    with store.write_session(), store.transaction():
        number = store.add_document(Draft(name, "text", name), [(text, None)])
        if path:
            store.put_file_record(FileRecord(path, number, 1, 2), "")
        before_commit()
        return number


def wait_for_blocked_writer(store: PostgresStore) -> None:
    """Wait until another connection waits for what this one has written."""
    for _ in range(500):
        if store.connection.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone():
            return
        time.sleep(0.01)
    raise AssertionError("nobody waits for this writer")


@pytest.mark.parametrize("path", ["", "/a"])
def test_who_comes_second_is_told(pair: tuple[PostgresStore, PostgresStore], path: str) -> None:
    """The second writer of a content or path gets an error and is rolled back."""
    first, second = pair
    digest = "two" if path else "one"
    with ThreadPoolExecutor() as pool:
        has_written = Event()

        def hold() -> None:
            has_written.set()
            wait_for_blocked_writer(first)

        slow = pool.submit(add, first, "one", path, hold)
        assert has_written.wait(10)
        with pytest.raises(RaceError, match="at the same time; try again"):
            add(second, digest, path)
        number = slow.result()
    assert [document.id for document in second.list_documents(retired=True)] == [number]
    for store in pair:
        assert check_store(store) == CheckReport()
        store.close()


def test_a_place_for_a_document_that_is_being_retired(pair: tuple[PostgresStore, PostgresStore]) -> None:
    """A copy is found while the only file that held it goes."""
    first, second = pair
    number = add(first, "one", "/a")
    with ThreadPoolExecutor() as pool, first.write_session():
        with first.transaction():
            first.remove_file_record("/a")

            def copy() -> None:
                with second.write_session(), second.transaction():
                    second.put_file_record(FileRecord("/b", number, 1, 2), "copied")

            copied = pool.submit(copy)
            time.sleep(0.1)
        with pytest.raises(RaceError, match="is no longer active; try again"):
            copied.result()
    assert list(first.list_file_records()) == []
    for store in pair:
        assert check_store(store) == CheckReport()
        store.close()


def test_one_alone_says_whose_vectors_follow(new_address: NewAddress) -> None:
    address = new_address()
    first, second = PostgresStore(address), PostgresStore(address)

    def check_initialized() -> bool:
        with second.write_session(), second.transaction():
            return second.is_initialized()

    with ThreadPoolExecutor() as pool:
        with first.write_session(), first.transaction():
            assert not first.is_initialized()
            was_initialized = pool.submit(check_initialized)
            time.sleep(0.1)
            first.set_model(EmbeddingModel("tests", "0", 4))
        assert was_initialized.result()
    for store in (first, second):
        store.close()


def test_a_small_change_does_not_wait_for_a_large_one(pair: tuple[PostgresStore, PostgresStore]) -> None:
    first, second = pair
    with first.write_session(), first.transaction():
        text = Passage("large", None, (Sentence(0, 5, 1, 0, 5),))
        first.add_document(Draft("large", "text", "large"), [(text, None)])
        assert add(second, "small", "/small") > 0
        assert [document.title for document in second.list_documents()] == ["small"]
    for store in pair:
        store.close()
