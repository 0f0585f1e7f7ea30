"""Slots have keys: how they are packed, kept, read and forgotten, and what they find."""

from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy
import pytest
import torch
from store_runs import DROP_QUESTIONS

from mnemic import Memory
from mnemic.encode.precision import has_fast_bfloat16
from mnemic.store import ENGINES, HashedNgrams, Store
from mnemic.store.contract import CheckReport, Draft, EmbeddingModel, PassageEmbedding, SentenceVectors, Vectors
from mnemic.store.ingest.check import check_store
from mnemic.store.retrieve.embedders import MINILM_PACKAGE, CheckpointEmbedder, HuggingFaceEmbedder, resolve_embedder
from mnemic.store.retrieve.hybrid import retrieve_candidates
from mnemic.store.retrieve.sentence_keys import (
    max_sentence_products,
    pack_sentence_vectors,
    unpack_sentence_vectors,
    without_sentence_vectors,
)
from mnemic.text.documents import Passage, Sentence
from mnemic.text.sentence_spans import count_sentence_tokens

WIDTH = 16
OLD = {  # what a memory was before there were keys
    "sqlite": (*DROP_QUESTIONS, "DROP TABLE keys", "DROP TABLE boxes", "PRAGMA user_version = 1"),
    "postgresql": (
        *DROP_QUESTIONS,
        "ALTER TABLE vectors DROP COLUMN keys",
        "ALTER TABLE passages DROP COLUMN boxes",
        "UPDATE facts SET value = '1' WHERE name = 'schema'",
    ),
}
KEPT = {"sqlite": "keys", "postgresql": "vectors"}  # the table that has them
NONE = {"sqlite": "DELETE FROM keys", "postgresql": "UPDATE vectors SET keys = NULL"}
LONG = (
    "The mill by the river was built of red brick. Its wheel has not turned for a hundred years. "
    "The passphrase of the cellar is xylophone. Nobody who lived there wrote a single letter."
)
TEXTS = [LONG, "The mill is old.", "A passphrase and a cellar are words of a house like others."]


class Sentences:
    """Hashed words, with a key a sentence."""

    bm25_weight = 0.0

    def __init__(self) -> None:
        self.hashed = HashedNgrams(width=256)
        self.model = EmbeddingModel("sentences", "0", 256)
        self.count_tokens, self.embed = self.hashed.count_tokens, self.hashed.embed

    def embed_passages(self, texts: Sequence[str]) -> list[PassageEmbedding]:
        parts = [text.split(". ") for text in texts]
        return [PassageEmbedding(*pair) for pair in zip(self.embed(texts), map(self.embed, parts))]


def units(count: int, seed: int, width: int = WIDTH) -> Vectors:
    vectors = numpy.random.default_rng(seed).normal(size=(count, width)).astype(numpy.float32)
    return vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture(params=sorted(ENGINES))
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def location(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> object:
    if engine == "postgresql":
        return request.getfixturevalue("new_address")()
    return tmp_path / "memory.db"


@pytest.fixture
def opened(engine: str, location: object) -> Iterator[Callable[[], Store]]:
    """Opens the same memory again and again, as other processes would."""
    stores: list[Store] = []

    def again() -> Store:
        stores.append(ENGINES[engine](location))
        return stores[-1]

    yield again
    for store in stores:
        store.close()


def split(keys: SentenceVectors) -> list[Vectors]:
    return numpy.split(keys.vectors, numpy.cumsum(keys.counts)[:-1])


def add(store: Store, embeddings: Sequence[PassageEmbedding], name: str = "one", **fields: int) -> list[int]:
    """A document with a slot for each of the embeddings; the slots."""
    texts = [f"word{number} of {name}" for number in range(len(embeddings))]
    passages = [Passage(text, None, (Sentence(0, 5, 1, 0, 5),)) for text in texts]
    with store.write_session(), store.transaction():
        if not store.is_initialized():
            store.set_model(EmbeddingModel("tests", "0", WIDTH))
        number = store.add_document(Draft(name, "text", name, **fields), zip(passages, embeddings))
    return [slot.id for slot in store.list_slots(number)]


def test_packed_keys_are_as_they_were_to_a_hundredth() -> None:
    vectors_per_slot = [units(count, count, 384) for count in (3, 1, 0, 7)]
    stored = [pack_sentence_vectors(slot_vectors) for slot_vectors in vectors_per_slot]
    assert [len(slot_vectors) for slot_vectors in stored] == [3 * 384, 0, 0, 7 * 384]  # one alone is the vector
    unpacked = unpack_sentence_vectors(stored, 384)
    assert unpacked.counts.tolist() == [3, 0, 0, 7]
    assert numpy.linalg.norm(unpacked.vectors, axis=1) == pytest.approx(numpy.ones(10), abs=1e-6)
    expected = numpy.concatenate([vectors_per_slot[0], vectors_per_slot[3]])
    assert (unpacked.vectors * expected).sum(1).min() > 0.9999
    again = [pack_sentence_vectors(slot_vectors) for slot_vectors in split(unpacked)]
    assert again == stored  # so that traces can be looked for
    assert unpack_sentence_vectors([], 0).counts.tolist() == []


def test_a_slot_is_as_near_as_its_nearest_key() -> None:
    """The slow way: slot by slot."""
    counts, vector = [2, 0, 5, 1, 0, 0, 3], units(1, 9)[0]
    rows, passage_products = units(sum(counts), 1), units(len(counts), 2) @ vector
    products = max_sentence_products(SentenceVectors(rows, numpy.array(counts)), vector, passage_products)
    for slot_vectors, score, default in zip(
        split(SentenceVectors(rows, numpy.array(counts))), products, passage_products
    ):
        assert score == pytest.approx(max(slot_vectors @ vector) if len(slot_vectors) else default)
    nothing = SentenceVectors(rows[:0], numpy.zeros(7, numpy.int64))
    assert max_sentence_products(nothing, vector, passage_products).tolist() == passage_products.tolist()


def test_keys_are_kept_beside_the_vector(opened: Callable[[], Store]) -> None:
    store = opened()
    embeddings = [PassageEmbedding(units(1, seed)[0], units(seed, seed)) for seed in (3, 1, 40)]
    slots = add(store, embeddings)
    sentence_vectors = opened().get_sentence_vectors([slots[2], 999, slots[0], slots[1]])
    assert sentence_vectors.counts.tolist() == [40, 0, 3, 0]
    expected = numpy.concatenate([embeddings[2].sentence_vectors, embeddings[0].sentence_vectors])
    assert sentence_vectors.vectors == pytest.approx(expected, abs=0.01)
    assert store.get_vectors(slots) == pytest.approx(
        numpy.stack([embedding.vector for embedding in embeddings]), abs=1e-3
    )
    assert (store.collect_stats().vectors, store.collect_stats().keyed) == (3, 3)
    assert list(store.list_unembedded_slots()) == []
    assert check_store(store) == CheckReport()
    with store.write_session(), store.transaction():
        store.set_embeddings(slots[:2], [PassageEmbedding(embeddings[0].vector, units(2, 8)), embeddings[0]])
    assert store.get_sentence_vectors(slots).counts.tolist() == [2, 3, 40]
    add(store, without_sentence_vectors(units(1, 5)), "two", previous=1)
    assert store.get_sentence_vectors(slots).counts.tolist() == [0, 0, 0]  # what is superseded is not read
    with store.write_session(), store.transaction():
        store.set_model(EmbeddingModel("other", "1", 4))
    assert store.collect_stats().keyed == 0
    assert store.get_sentence_vectors([]).vectors.shape == (0, 4)


def test_check_finds_keys_of_another_width(opened: Callable[[], Store], engine: str) -> None:
    store = opened()
    slots = add(store, [PassageEmbedding(units(1, 1)[0], units(3, 1)), *without_sentence_vectors(units(1, 2))])
    execute = store.connection.raw.execute  # type: ignore[attr-defined]
    harm = "'\\x0102'" if engine == "postgresql" else "x'0102'"
    execute(f"UPDATE {KEPT[engine]} SET keys = {harm} WHERE passage = {slots[0]}")
    assert check_store(store).faults == ("the sentence vectors of 1 passages are not of the model's width, 16",)
    execute(NONE[engine])  # written before there were keys
    assert check_store(store) == CheckReport()
    assert store.get_sentence_vectors(slots).counts.tolist() == [0, 0]
    assert [slot.id for (slot, *_) in store.list_unembedded_slots()] == slots[:1]


def test_a_sentence_finds_a_long_passage(location: object) -> None:
    """By one vector a short text with two of the words is nearer."""
    with Memory(location, embedder=Sentences(), reader=None) as memory:  # type: ignore[arg-type]
        for text in TEXTS:
            memory.note(text)
        query = "the passphrase of the cellar"
        embedder = memory.embedder
        assert embedder is not None
        products = memory.store.get_vectors([1, 2, 3]) @ embedder.embed([query])[0]
        assert products.argmax() == 2
        assert memory.search(query)[0].text == LONG
        cosine = retrieve_candidates(memory.store, embedder, query).cosine
        assert cosine is not None
        best = [(embedder.embed(text.split(". ")) @ embedder.embed([query])[0]).max() for text in TEXTS]
        assert [cosine.scores[slot] for slot in (1, 2, 3)] == pytest.approx(best, abs=0.01)
        assert memory.ask(query, hops=2).evidence[0].passage == LONG


def test_a_memory_of_before_is_read_and_gets_keys(
    location: object, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = "the passphrase of the cellar"
    with Memory(location, embedder=Sentences(), reader=None) as memory:  # type: ignore[arg-type]
        for text in TEXTS:
            memory.note(text)
        for statement in OLD[engine]:
            memory.store.connection.execute(statement)  # type: ignore[attr-defined]
    if engine == "sqlite":
        with monkeypatch.context() as patch:  # one who may not write leaves it as it is
            patch.setattr("mnemic.store.sqlite.connection.os.access", lambda *_: False)
            with Memory(location, embedder=Sentences(), reader=None) as memory:  # type: ignore[arg-type]
                assert memory.search(query)[0].text == TEXTS[2]
                assert (memory.stats().vectors, memory.stats().keyed) == (3, 0)
                version = memory.store.connection.fetch_value("PRAGMA user_version")  # type: ignore[attr-defined]
                assert version == 1
    with Memory(location, embedder=Sentences(), reader=None) as memory:  # type: ignore[arg-type]
        assert memory.search(query)[0].text == TEXTS[2]  # by its vector alone
        assert memory.check() == CheckReport()
        memory.note("What is new has keys. And the old does not mind that.")
        assert memory.stats().keyed == 1
        *_, last = memory.reindex(Sentences())
        assert last == (4, 4)
        assert memory.search(query)[0].text == LONG
        assert memory.check() == CheckReport()
        assert list(memory.reindex(Sentences())) == []


def test_nothing_is_left_of_forgotten_keys(location: object, engine: str) -> None:
    with Memory(location, embedder=Sentences(), reader=None) as memory:  # type: ignore[arg-type]
        for text in TEXTS:
            memory.note(text)
        keys = memory.store.get_sentence_vectors([1]).vectors
        assert len(keys) == 4
        traces = [pack_sentence_vectors(keys[[number, number]])[:64] for number in range(4)]
        assert memory.store.find_traces(traces) == []  # they are remembered: no remains
        if isinstance(location, Path):
            content = location.read_bytes() + location.with_name("memory.db-wal").read_bytes()
            assert all(trace in content for trace in traces)
        with memory.store.write_session(), memory.store.transaction():
            memory.store.erase_documents([2])
        done = memory.forget(1, verify=True)
        assert (done.traces, done.scrubbed) == ((), True)
        assert memory.store.find_traces(traces) == []
        if isinstance(location, Path):
            assert not any(trace in location.read_bytes() for trace in traces)


def test_verify_looks_for_keys(location: object, engine: str) -> None:
    """Leftover sentence vectors are found; those that another document shares are no traces."""
    with Memory(location, embedder=Sentences(), reader=None) as memory:  # type: ignore[arg-type]
        for text in (*TEXTS, f"{LONG.rsplit('. ', 1)[0]}. But she did"):
            memory.note(text)
        assert memory.forget(1, verify=True).traces == ()
        kind = "bytea" if engine == "postgresql" else "blob"
        execute = memory.store.connection.execute  # type: ignore[attr-defined]
        execute(f"CREATE TABLE copies (keys {kind})")
        execute(f"INSERT INTO copies SELECT keys FROM {KEPT[engine]} WHERE passage = 4")
        assert memory.forget(4, verify=True).traces


@pytest.mark.skipif(find_spec(MINILM_PACKAGE) is None, reason="MiniLM is not installed")
def test_keys_of_a_folders_network_are_means_of_their_tokens() -> None:
    minilm = resolve_embedder("minilm")
    assert isinstance(minilm, HuggingFaceEmbedder)
    error = 1e-3 if has_fast_bfloat16(torch.device("cpu")) else 1e-5  # products of other shapes are rounded otherwise
    texts = [LONG, "One.", "", "He said that it was so. " * 120]
    embeddings = minilm.embed_passages(texts)
    assert numpy.stack([embedding.vector for embedding in embeddings]) == pytest.approx(minilm.embed(texts), abs=error)
    coded = [minilm.tokenizer.encode(text, special=False) for text in texts]
    lengths = [count_sentence_tokens(text, encoding.offsets) for text, encoding in zip(texts, coded)]
    assert [len(embedding.sentence_vectors) for embedding in embeddings] == [4, 0, 0, len(lengths[3])]
    _, states = minilm.encode_texts([coded[0].ids])[0]
    assert len(states) == len(coded[0].ids)
    start = 0
    for key, length in zip(embeddings[0].sentence_vectors, lengths[0]):
        mean = states[start : start + length].mean(0)
        assert key == pytest.approx(mean / numpy.linalg.norm(mean), abs=error)
        start += length
    assert numpy.linalg.norm(embeddings[3].sentence_vectors, axis=1) == pytest.approx(1, abs=error)


def test_the_shipped_reader_has_keys() -> None:
    embedder = resolve_embedder("reader-small")
    assert isinstance(embedder, CheckpointEmbedder)
    embeddings = embedder.embed_passages(TEXTS)
    assert [len(embedding.sentence_vectors) for embedding in embeddings] == [4, 1, 1]
    assert numpy.stack([embedding.vector for embedding in embeddings]) == pytest.approx(embedder.embed(TEXTS), abs=1e-5)
    assert embeddings[1].sentence_vectors[0] == pytest.approx(embeddings[1].vector, abs=1e-5)
