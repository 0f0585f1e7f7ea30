"""Large memories: codes and their cache, and words that lead; both against a slow twin."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest

from mnemic import Memory
from mnemic.store import SQLiteStore
from mnemic.store.contract import Draft, Model, Vectors
from mnemic.store.retrieve.query_words import query, words_of
from mnemic.store.retrieve.sentence_keys import without_keys
from mnemic.store.sqlite import bm25 as matching
from mnemic.store.sqlite import quantized as large
from mnemic.store.sqlite.lock import sole_writer
from mnemic.store.sqlite.quantized_codes import Codes, best_of_many, products, rounded
from mnemic.store.sqlite.quantized_file import PAGE, read_codes
from mnemic.text.documents import Passage, Sentence

WIDTH, SLOTS, MOST = 48, 400, 20


@pytest.fixture(autouse=True)
def from_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every memory is a large one."""
    pytest.importorskip("numkong")
    monkeypatch.setattr(large, "FROM", 1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def store(path: Path) -> Iterator[SQLiteStore]:
    store = SQLiteStore(path)
    with store.writing(), store.change():
        store.set_model(Model("tests", "0", WIDTH))
    add(store, "first", SLOTS)
    yield store
    store.close()


def drawn(count: int, seed: int) -> Vectors:
    found = numpy.random.default_rng(seed).normal(size=(count, WIDTH)).astype(numpy.float32)
    return found / numpy.linalg.norm(found, axis=1, keepdims=True)


def add(store: SQLiteStore, name: str, count: int, previous: int | None = None) -> int:
    seed = sum(name.encode())
    texts = [f"{name} {number}" for number in range(count)]
    passages = [Passage(text, None, (Sentence(0, len(text), 1, 0, len(text)),)) for text in texts]
    with store.writing(), store.change():
        draft = Draft(name, "text", name, previous=previous)
        return store.add(draft, zip(passages, without_keys(drawn(count, seed))))


def truth(store: SQLiteStore, vector: Vectors) -> list[int]:
    """The nearest slots by sorting all that is in the table."""
    numbers = [row[0] for row in store.connection.rows("SELECT passage FROM vectors ORDER BY 1")]
    scores = store.vectors(numbers) @ vector
    return [numbers[place] for place in numpy.argsort(-scores, kind="stable")[:MOST]]


def agrees(store: SQLiteStore) -> None:
    for vector in drawn(5, 9):
        near = store.nearest(vector, MOST)
        assert [one.slot for one in near.best] == truth(store, vector)
        numbers = [one.slot for one in near.best]
        exact = store.vectors(numbers) @ vector
        assert [one.score for one in near.best] == pytest.approx(exact.tolist(), abs=1e-6)


def cache_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-codes")


def test_products_of_codes_are_near_those_of_vectors() -> None:
    vectors, query = drawn(1000, 1), drawn(1, 2)[0]
    steps, rows = rounded(vectors)
    assert numpy.abs(rows * steps[:, None] - vectors).max() <= steps.max() / 2 + 1e-7
    found = products(Codes(numpy.arange(1000), steps, rows), query)
    assert found == pytest.approx(vectors @ query, abs=0.01)
    assert rounded(numpy.zeros((2, WIDTH), numpy.float32))[1].any() == 0


@pytest.mark.parametrize("count", [1, 5, 255, 256, 5000, 20_001])
def test_the_best_of_many_are_the_best(count: int) -> None:
    scores = numpy.random.default_rng(count).integers(0, count * 9, count).astype(numpy.float32)
    for most in (1, 7, 300):
        found = best_of_many(scores, most)
        assert len(set(found.tolist())) == min(most, count)
        assert sorted(scores[found]) == sorted(scores)[-most:]


def test_nearest_is_what_sorting_everything_finds(store: SQLiteStore) -> None:
    agrees(store)
    scores = store.vectors(list(range(1, SLOTS + 1))) @ drawn(1, 9)[0]
    near = store.nearest(drawn(1, 9)[0], MOST)
    assert (near.mean, near.deviation) == pytest.approx((scores.mean(), scores.std()), abs=0.002)
    assert len(store.nearest(drawn(1, 9)[0], 10 * SLOTS).best) == SLOTS


def test_what_came_and_went_since_the_cache_was_written(store: SQLiteStore, path: Path) -> None:
    agrees(store)
    other = SQLiteStore(path)
    agrees(other)
    before = cache_of(path).read_bytes()
    new = add(store, "second", 30)
    agrees(store)
    agrees(other)  # told by nobody
    add(store, "third", 5, previous=new)
    agrees(store)
    agrees(other)
    assert cache_of(path).read_bytes() == before  # so far it was good enough
    add(store, "fourth", SLOTS, previous=1)  # now half of it is no longer read
    agrees(other)
    assert cache_of(path).read_bytes() != before
    agrees(store)
    other.close()


def test_the_cache_is_read_and_not_made_again(store: SQLiteStore, path: Path) -> None:
    agrees(store)
    written = cache_of(path).stat()
    assert written.st_mode & 0o777 == 0o600
    again = SQLiteStore(path)
    agrees(again)
    assert cache_of(path).stat().st_mtime_ns == written.st_mtime_ns
    stamp = json.loads(cache_of(path).read_bytes()[:PAGE].rstrip(b"\0"))["stamp"]
    assert again.large.stamp == stamp
    again.close()


def harmed(content: bytes) -> Iterator[bytes]:
    yield b""
    yield content[:PAGE]
    yield content[:-1]
    yield content + b"x"
    yield b"[]" + content[2:]
    yield content.replace(b'"version": 1', b'"version": 2')
    for place in (PAGE + 1, PAGE + SLOTS * 8 + 1, len(content) - 1):
        yield content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


def test_on_any_doubt_the_cache_is_made_anew(store: SQLiteStore, path: Path) -> None:
    agrees(store)
    good = cache_of(path).read_bytes()
    for content in harmed(good):
        cache_of(path).write_bytes(content)
        assert read_codes(cache_of(path), store.large.stamp or "", WIDTH) is None
        again = SQLiteStore(path)
        agrees(again)
        again.close()
        assert len(cache_of(path).read_bytes()) == len(good)
    cache_of(path).unlink()
    agrees(store)


def test_a_cache_of_another_memory_is_not_used(store: SQLiteStore, path: Path) -> None:
    agrees(store)
    with store.writing(), store.change():
        store.give([1], without_keys(drawn(1, 77)))
    agrees(store)  # a vector was replaced
    stale = cache_of(path).read_bytes()
    with store.writing(), store.change():
        store.set_model(Model("other", "1", WIDTH))
    assert store.nearest(drawn(1, 9)[0], MOST) == ([], 0.0, 0.0)
    with store.writing(), store.change():
        store.give(list(range(1, SLOTS + 1)), without_keys(drawn(SLOTS, 5)))
    cache_of(path).write_bytes(stale)
    again = SQLiteStore(path)
    agrees(again)
    again.close()


@pytest.mark.parametrize("least", [1, 10_000])
def test_a_change_that_is_taken_back_leaves_nothing(
    store: SQLiteStore, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large, "FROM", least)
    agrees(store)

    def take_back() -> None:
        with store.writing(), store.change():
            passage = Passage("back", None, (Sentence(0, 4, 1, 0, 4),))
            store.add(Draft("back", "text", "back"), [(passage, without_keys(drawn(1, 9))[0])])
            assert store.nearest(drawn(1, 9)[0], 1).best[0].slot == SLOTS + 1
            raise RuntimeError("not after all")

    with pytest.raises(RuntimeError):
        take_back()
    agrees(store)
    add(store, "after", 3)  # gets the numbers of what was taken back
    agrees(store)


def test_where_nobody_may_write_there_is_no_cache(store: SQLiteStore, path: Path) -> None:
    with sole_writer(path):
        agrees(store)
        assert not cache_of(path).exists()
    store.large.forget()
    cache_of(path).mkdir()  # what is written beside cannot be renamed
    agrees(store)
    assert [one.name for one in path.parent.iterdir() if one.name.endswith(".new")] == []


def test_what_is_forgotten_is_in_no_cache(path: Path) -> None:
    memory = Memory(path, embedder="hashed-ngrams")
    for number in range(30):
        memory.note(f"The passphrase number {number} is xylophone {number * 7919}.")
    memory.search("passphrase")
    other = Memory(path)
    assert other.search("xylophone")
    vector = memory.store.vectors([4])
    trace = rounded(vector)[1].tobytes()
    assert trace in cache_of(path).read_bytes()
    unfinished = path.with_name(f"{path.name}-codes.new")  # of a process that was killed
    unfinished.write_bytes(trace)
    done = memory.forget(4, verify=True)
    assert (done.remains, done.scrubbed) == ((), True)
    assert not cache_of(path).exists()
    assert not unfinished.exists()
    for one in (memory, other):
        assert all(hit.document != 4 for hit in one.search("passphrase number 3 xylophone", 50))
    assert trace not in cache_of(path).read_bytes()
    memory.close()
    other.close()


def test_verify_looks_into_the_cache(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the cache were left alone, the proof would fail."""
    memory = Memory(path, embedder="hashed-ngrams")
    for number in range(9):
        memory.note(f"The passphrase number {number} is xylophone {number * 7919}.")
    memory.search("passphrase")
    monkeypatch.setattr(memory.store.large, "drop", lambda: None)  # type: ignore[attr-defined]
    assert memory.forget(4, verify=True).remains
    memory.close()


def test_a_vector_that_another_document_has_too_is_no_trace(store: SQLiteStore) -> None:
    agrees(store)
    trace = rounded(store.vectors([3]))[1].tobytes()
    assert store.remains([trace, b"nowhere at all"]) == []


WORDS = [f"word{number}" for number in range(60)]


@pytest.fixture
def spoken(path: Path) -> Iterator[SQLiteStore]:
    """A memory of texts with few rare and many common words."""
    store = SQLiteStore(path)
    chances = 1 / numpy.arange(1, len(WORDS) + 1)
    dice = numpy.random.default_rng(0)
    texts = [" ".join(dice.choice(WORDS, 12, p=chances / chances.sum())) for _ in range(600)]
    passages = [Passage(text, None, (Sentence(0, len(text), 1, 0, len(text)),)) for text in texts]
    with store.writing(), store.change():
        store.set_model(None)
        store.add(Draft("one", "text", "one"), ((passage, None) for passage in passages))
    yield store
    store.close()


def plain(store: SQLiteStore, text: str) -> dict[int, float]:
    """BM25 of every slot that has any of the words."""
    return dict(store.connection.rows(matching.RANKED, (query(words_of(text)), 10_000)))


@pytest.mark.parametrize(
    "text",
    [
        "word3 word40 word0",
        "word50 word2",
        "word50 word2 word1",
        "word1 word0 word2",
        "word1 word0",
        "word0 nothing",
    ],
)
def test_words_that_lead_leave_scores_as_they_were(
    spoken: SQLiteStore, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = plain(spoken, text)
    assert dict(spoken.match(text, 10_000)) == pytest.approx(every)
    monkeypatch.setattr(matching, "LED", 60)
    found = spoken.match(text, MOST)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert {one.slot: one.score for one in found} == pytest.approx(
        {one.slot: every[one.slot] for one in found}
    )
    best = sorted(every.values(), reverse=True)[:5]
    assert [one.score for one in found[:5]] == pytest.approx(best)
    assert len(found) == min(MOST, len(every))


def test_words_that_nobody_uses(spoken: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "LED", 1)
    assert spoken.match("nothing of that", MOST) == []
    assert len(spoken.match("word0", MOST)) == MOST
