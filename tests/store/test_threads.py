"""One ``Memory`` for many threads: each has its own connection, and writers take turns."""

import gc
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy
import pytest
from store_runs import folder, memory, write

from mnemic import Memory
from mnemic.store import CheckReport, SQLiteStore
from mnemic.store.contract import Draft, EmbeddingModel
from mnemic.store.relational import Store
from mnemic.store.retrieve.sentence_keys import without_sentence_vectors
from mnemic.store.sqlite import quantized
from mnemic.store.sqlite.locks import LOCK_TIMEOUT_S
from mnemic.text.documents import Passage, Sentence

__all__ = ["folder", "memory"]  # fixtures

THREADS = 8


def run_at_once(work: Callable[[int], None]) -> None:
    """Run work in many threads that begin together; raise the first error of any."""
    start = threading.Barrier(THREADS)

    def run(number: int) -> None:
        start.wait()
        work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        for result in [pool.submit(run, number) for number in range(THREADS)]:
            result.result()


def test_threads_ask_search_and_remember(memory: Memory, tmp_path: Path) -> None:
    """They even make the memory together, and all tell the same note."""

    def use(number: int) -> None:
        path = write(tmp_path / f"{number}.txt", f"Tower{number} is {number + 20} m high.")
        memory.note("Everybody knows the river Oster.")
        document = memory.note(f"Person{number} lives in house {number * 7}.")
        assert memory.remember(path)[0].outcome == "new"
        answer = memory.ask(f"Where does Person{number} live?", lexical=1.0)
        assert answer.text == f"Person{number} lives in house {number * 7}."
        assert memory.search(f"How high is Tower{number}?", 1, lexical=1.0)[0].name == str(path)
        changed = memory.update(document, f"Person{number} moved to house {number * 7 + 1}.")
        assert memory.ask(f"Where is Person{number}?", lexical=1.0).evidence[0].document == changed
        assert memory.text(changed).endswith(f"house {number * 7 + 1}.")

    run_at_once(use)
    assert memory.check() == CheckReport()
    assert len(memory.memories()) == 2 * THREADS + 1
    assert len(memory.memories(retired=True)) == 3 * THREADS + 1


def test_the_reader_says_in_threads_what_it_says_alone(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db") as memory:
        for number in range(4):
            memory.note(
                f"House {number} was built by Ann{number} Carter in {1900 + number}. It has {number + 9} rooms."
            )
        questions = [f"Who built house {number % 4}?" for number in range(THREADS)]
        alone = [memory.ask(question) for question in questions]
        assert alone[1].text.startswith("Ann1")
        memory.close()  # also load the models together
        again = Memory(tmp_path / "memory.db")
        answers = dict[int, object]()
        run_at_once(lambda number: answers.update({number: again.ask(questions[number])}))
        again.close()
    assert [answers[number] for number in range(THREADS)] == alone


def test_a_connection_ends_with_its_thread_or_with_the_memory(memory: Memory) -> None:
    memory.note("The key is under the mat.")
    store = memory.store
    assert isinstance(store, Store)
    run_at_once(lambda number: assert_found(memory))
    gc.collect()
    assert list(store.connections) == [store.connection]
    ready, done = threading.Event(), threading.Event()

    def wait() -> None:
        assert_found(memory)
        ready.set()
        done.wait()

    thread = threading.Thread(target=wait)
    thread.start()
    ready.wait()
    connections = list(store.connections)
    assert len(connections) == 2
    memory.close()
    for connection in connections:
        with pytest.raises(Exception, match="closed"):
            connection.raw.execute("SELECT 1")
    done.set()
    thread.join()
    assert_found(memory)  # it is opened again


def assert_found(memory: Memory) -> None:
    assert memory.search("Where is the key?")[0].text == "The key is under the mat."


def test_a_thread_waits_for_another_that_writes(tmp_path: Path) -> None:
    """It waits longer than for another process."""
    with Memory(tmp_path / "memory.db", embedder="none", reader=None) as memory:
        memory.note("One.")
        with ThreadPoolExecutor() as pool, memory.store.write_session():
            second = pool.submit(memory.note, "Two.")
            third = pool.submit(lambda: memory.ask("What is one?").text)
            assert third.result(timeout=5) == "One."  # readers do not wait
            time.sleep(LOCK_TIMEOUT_S + 0.3)
            assert not second.done()
            memory.note("Three.")  # this thread has the lock
        assert [memory.text(document.id) for document in memory.memories()] == ["One.", "Three.", "Two."]
        assert second.result() == 3


@pytest.mark.parametrize("min_slots", [1, 10_000])
def test_vectors_in_memory_are_shared_and_never_old(
    tmp_path: Path, min_slots: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exact and quantized: every thread finds what it has just added."""
    pytest.importorskip("numkong")
    monkeypatch.setattr(quantized, "MIN_SLOTS", min_slots)
    store, width = SQLiteStore(tmp_path / "memory.db"), 32
    with store.write_session(), store.transaction():
        store.set_model(EmbeddingModel("tests", "0", width))
    vectors = numpy.random.default_rng(0).normal(size=(THREADS * 5, width)).astype(numpy.float32)
    vectors /= numpy.linalg.norm(vectors, axis=1, keepdims=True)

    def add(name: str, vector: numpy.ndarray, previous: int | None) -> int:
        passage = Passage(name, None, (Sentence(0, len(name), 1, 0, len(name)),))
        with store.write_session(), store.transaction():
            draft = Draft(name, "text", name, previous=previous)
            return store.add_document(draft, [(passage, without_sentence_vectors(vector[None])[0])])

    def use(number: int) -> None:
        document = None
        for vector in vectors[number * 5 : number * 5 + 5]:
            document = add(f"{number} {vector[0]}", vector, document)
            best = store.search_vectors(vector, 3).best[0]
            assert best.score > 0.99
            assert [slot.id for slot in store.list_slots(document)] == [best.slot_id]

    run_at_once(use)
    assert store.count_slots() == len(store.search_vectors(vectors[0], 999).best) == THREADS
    store.close()
