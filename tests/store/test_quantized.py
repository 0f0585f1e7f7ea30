"""Large memories: codes and their cache, and words that lead; both against a slow twin."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest

from mnemic import Memory
from mnemic.store import SQLiteStore
from mnemic.store.contract import Draft, EmbeddingModel, Vectors
from mnemic.store.retrieve.query_words import build_fts5_query, extract_words
from mnemic.store.retrieve.sentence_keys import quantize_vectors, without_sentence_vectors
from mnemic.store.sqlite import bm25, quantized
from mnemic.store.sqlite.locks import lock_writer
from mnemic.store.sqlite.quantized import (
    HEADER_BYTES,
    QuantizedVectors,
    read_quantized,
    score_quantized,
    select_top_k_of_many,
)
from mnemic.text.documents import Passage, Sentence

WIDTH, SLOTS, MOST = 48, 400, 20


@pytest.fixture(autouse=True)
def from_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every memory is a large one."""
    pytest.importorskip("numkong")
    monkeypatch.setattr(quantized, "MIN_SLOTS", 1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def store(path: Path) -> Iterator[SQLiteStore]:
    store = SQLiteStore(path)
    with store.write_session(), store.transaction():
        store.set_model(EmbeddingModel("tests", "0", WIDTH))
    add(store, "first", SLOTS)
    yield store
    store.close()


def draw_vectors(count: int, seed: int) -> Vectors:
    vectors = numpy.random.default_rng(seed).normal(size=(count, WIDTH)).astype(numpy.float32)
    return vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True)


def add(store: SQLiteStore, name: str, count: int, previous: int | None = None) -> int:
    seed = sum(name.encode())
    texts = [f"{name} {number}" for number in range(count)]
    passages = [Passage(text, None, (Sentence(0, len(text), 1, 0, len(text)),)) for text in texts]
    with store.write_session(), store.transaction():
        draft = Draft(name, "text", name, previous=previous)
        return store.add_document(draft, zip(passages, without_sentence_vectors(draw_vectors(count, seed))))


def truth(store: SQLiteStore, vector: Vectors) -> list[int]:
    """The nearest slots by sorting all that is in the table."""
    numbers = [row[0] for row in store.connection.fetch_all("SELECT passage FROM vectors ORDER BY 1")]
    scores = store.get_vectors(numbers) @ vector
    return [numbers[position] for position in numpy.argsort(-scores, kind="stable")[:MOST]]


def check_search(store: SQLiteStore) -> None:
    for vector in draw_vectors(5, 9):
        nearest = store.search_vectors(vector, MOST)
        assert [neighbor.slot_id for neighbor in nearest.best] == truth(store, vector)
        numbers = [neighbor.slot_id for neighbor in nearest.best]
        exact = store.get_vectors(numbers) @ vector
        assert [neighbor.score for neighbor in nearest.best] == pytest.approx(exact.tolist(), abs=1e-6)


def cache_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-codes")


def test_products_of_codes_are_near_those_of_vectors() -> None:
    vectors, query = draw_vectors(1000, 1), draw_vectors(1, 2)[0]
    steps, rows = quantize_vectors(vectors)
    assert numpy.abs(rows * steps[:, None] - vectors).max() <= steps.max() / 2 + 1e-7
    products = score_quantized(QuantizedVectors(numpy.arange(1000), steps, rows), query)
    assert products == pytest.approx(vectors @ query, abs=0.01)
    assert quantize_vectors(numpy.zeros((2, WIDTH), numpy.float32))[1].any() == 0


@pytest.mark.parametrize("count", [1, 5, 255, 256, 5000, 20_001])
def test_the_best_of_many_are_the_best(count: int) -> None:
    scores = numpy.random.default_rng(count).integers(0, count * 9, count).astype(numpy.float32)
    for top_k in (1, 7, 300):
        positions = select_top_k_of_many(scores, top_k)
        assert len(set(positions.tolist())) == min(top_k, count)
        assert sorted(scores[positions]) == sorted(scores)[-top_k:]


def test_nearest_is_what_sorting_everything_finds(store: SQLiteStore) -> None:
    check_search(store)
    scores = store.get_vectors(list(range(1, SLOTS + 1))) @ draw_vectors(1, 9)[0]
    nearest = store.search_vectors(draw_vectors(1, 9)[0], MOST)
    assert (nearest.mean, nearest.std) == pytest.approx((scores.mean(), scores.std()), abs=0.002)
    assert len(store.search_vectors(draw_vectors(1, 9)[0], 10 * SLOTS).best) == SLOTS


def test_what_came_and_went_since_the_cache_was_written(store: SQLiteStore, path: Path) -> None:
    check_search(store)
    reader = SQLiteStore(path)
    check_search(reader)
    before = cache_of(path).read_bytes()
    new = add(store, "second", 30)
    check_search(store)
    check_search(reader)  # told by nobody
    add(store, "third", 5, previous=new)
    check_search(store)
    check_search(reader)
    assert cache_of(path).read_bytes() == before  # so far it was good enough
    add(store, "fourth", SLOTS, previous=1)  # now half of it is no longer read
    check_search(reader)
    assert cache_of(path).read_bytes() != before
    check_search(store)
    reader.close()


def test_the_cache_is_read_and_not_made_again(store: SQLiteStore, path: Path) -> None:
    check_search(store)
    written = cache_of(path).stat()
    assert written.st_mode & 0o777 == 0o600
    again = SQLiteStore(path)
    check_search(again)
    assert cache_of(path).stat().st_mtime_ns == written.st_mtime_ns
    stamp = json.loads(cache_of(path).read_bytes()[:HEADER_BYTES].rstrip(b"\0"))["stamp"]
    assert again.quantized_index.stamp == stamp
    again.close()


def damage(content: bytes) -> Iterator[bytes]:
    yield b""
    yield content[:HEADER_BYTES]
    yield content[:-1]
    yield content + b"x"
    yield b"[]" + content[2:]
    yield content.replace(b'"version": 1', b'"version": 2')
    for position in (HEADER_BYTES + 1, HEADER_BYTES + SLOTS * 8 + 1, len(content) - 1):
        yield content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :]


def test_on_any_doubt_the_cache_is_made_anew(store: SQLiteStore, path: Path) -> None:
    check_search(store)
    good = cache_of(path).read_bytes()
    for content in damage(good):
        cache_of(path).write_bytes(content)
        assert read_quantized(cache_of(path), store.quantized_index.stamp or "", WIDTH) is None
        again = SQLiteStore(path)
        check_search(again)
        again.close()
        assert len(cache_of(path).read_bytes()) == len(good)
    cache_of(path).unlink()
    check_search(store)


def test_a_cache_of_another_memory_is_not_used(store: SQLiteStore, path: Path) -> None:
    check_search(store)
    with store.write_session(), store.transaction():
        store.set_embeddings([1], without_sentence_vectors(draw_vectors(1, 77)))
    check_search(store)  # a vector was replaced
    stale = cache_of(path).read_bytes()
    with store.write_session(), store.transaction():
        store.set_model(EmbeddingModel("other", "1", WIDTH))
    assert store.search_vectors(draw_vectors(1, 9)[0], MOST) == ([], 0.0, 0.0)
    with store.write_session(), store.transaction():
        store.set_embeddings(list(range(1, SLOTS + 1)), without_sentence_vectors(draw_vectors(SLOTS, 5)))
    cache_of(path).write_bytes(stale)
    again = SQLiteStore(path)
    check_search(again)
    again.close()


@pytest.mark.parametrize("min_slots", [1, 10_000])
def test_a_change_that_is_taken_back_leaves_nothing(
    store: SQLiteStore, min_slots: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quantized, "MIN_SLOTS", min_slots)
    check_search(store)

    def take_back() -> None:
        with store.write_session(), store.transaction():
            passage = Passage("back", None, (Sentence(0, 4, 1, 0, 4),))
            store.add_document(
                Draft("back", "text", "back"), [(passage, without_sentence_vectors(draw_vectors(1, 9))[0])]
            )
            assert store.search_vectors(draw_vectors(1, 9)[0], 1).best[0].slot_id == SLOTS + 1
            raise RuntimeError("not after all")

    with pytest.raises(RuntimeError):
        take_back()
    check_search(store)
    add(store, "after", 3)  # gets the numbers of what was taken back
    check_search(store)


def test_where_nobody_may_write_there_is_no_cache(store: SQLiteStore, path: Path) -> None:
    with lock_writer(path):
        check_search(store)
        assert not cache_of(path).exists()
    store.quantized_index.reset()
    cache_of(path).mkdir()  # what is written beside cannot be renamed
    check_search(store)
    assert [file.name for file in path.parent.iterdir() if file.name.endswith(".new")] == []


def test_what_is_forgotten_is_in_no_cache(path: Path) -> None:
    memory = Memory(path, embedder="hashed-ngrams")
    for number in range(30):
        memory.note(f"The passphrase number {number} is xylophone {number * 7919}.")
    memory.search("passphrase")
    second_memory = Memory(path)
    assert second_memory.search("xylophone")
    vector = memory.store.get_vectors([4])
    trace = quantize_vectors(vector)[1].tobytes()
    assert trace in cache_of(path).read_bytes()
    unfinished = path.with_name(f"{path.name}-codes.new")  # of a process that was killed
    unfinished.write_bytes(trace)
    done = memory.forget(4, verify=True)
    assert (done.traces, done.scrubbed) == ((), True)
    assert not cache_of(path).exists()
    assert not unfinished.exists()
    for open_memory in (memory, second_memory):
        assert all(hit.document != 4 for hit in open_memory.search("passphrase number 3 xylophone", 50))
    assert trace not in cache_of(path).read_bytes()
    memory.close()
    second_memory.close()


def test_verify_looks_into_the_cache(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the cache were left alone, the proof would fail."""
    memory = Memory(path, embedder="hashed-ngrams")
    for number in range(9):
        memory.note(f"The passphrase number {number} is xylophone {number * 7919}.")
    memory.search("passphrase")
    monkeypatch.setattr(memory.store.quantized_index, "delete", lambda: None)  # type: ignore[attr-defined]
    assert memory.forget(4, verify=True).traces
    memory.close()


def test_a_vector_that_another_document_has_too_is_no_trace(store: SQLiteStore) -> None:
    check_search(store)
    trace = quantize_vectors(store.get_vectors([3]))[1].tobytes()
    assert store.find_traces([trace, b"nowhere at all"]) == []


WORDS = [f"word{number}" for number in range(60)]


@pytest.fixture
def word_store(path: Path) -> Iterator[SQLiteStore]:
    """A memory of texts with few rare and many common words."""
    store = SQLiteStore(path)
    frequencies = 1 / numpy.arange(1, len(WORDS) + 1)
    generator = numpy.random.default_rng(0)
    texts = [" ".join(generator.choice(WORDS, 12, p=frequencies / frequencies.sum())) for _ in range(600)]
    passages = [Passage(text, None, (Sentence(0, len(text), 1, 0, len(text)),)) for text in texts]
    with store.write_session(), store.transaction():
        store.set_model(None)
        store.add_document(Draft("one", "text", "one"), ((passage, None) for passage in passages))
    yield store
    store.close()


def plain(store: SQLiteStore, text: str) -> dict[int, float]:
    """BM25 of every slot that has any of the words."""
    return dict(store.connection.fetch_all(bm25.SELECT_RANKED, (build_fts5_query(extract_words(text)), 10_000)))


@pytest.mark.parametrize(
    "text",
    ["word3 word40 word0", "word50 word2", "word50 word2 word1", "word1 word0 word2", "word1 word0", "word0 nothing"],
)
def test_words_that_lead_leave_scores_as_they_were(
    word_store: SQLiteStore, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = plain(word_store, text)
    assert dict(word_store.search_bm25(text, 10_000)) == pytest.approx(scores)
    monkeypatch.setattr(bm25, "MAX_LEADING_SLOTS", 60)
    matches = word_store.search_bm25(text, MOST)
    assert [match.score for match in matches] == sorted((match.score for match in matches), reverse=True)
    assert {match.slot_id: match.score for match in matches} == pytest.approx(
        {match.slot_id: scores[match.slot_id] for match in matches}
    )
    best = sorted(scores.values(), reverse=True)[:5]
    assert [match.score for match in matches[:5]] == pytest.approx(best)
    assert len(matches) == min(MOST, len(scores))


def test_words_that_nobody_uses(word_store: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bm25, "MAX_LEADING_SLOTS", 1)
    assert word_store.search_bm25("nothing of that", MOST) == []
    assert len(word_store.search_bm25("word0", MOST)) == MOST
