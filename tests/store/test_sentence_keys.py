"""Slots have keys: how they are packed, kept, read and forgotten, and what they find."""

from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy
import pytest

from mnemic import Memory
from mnemic.store import ENGINES, HashedNgrams, Store
from mnemic.store.contract import Checked, Draft, Keys, Marks, Model, Vectors
from mnemic.store.ingest.check import check
from mnemic.store.retrieve.embedders import PACKAGE, CheckpointEmbedder, FolderEmbedder, embedder
from mnemic.store.retrieve.hybrid import seek
from mnemic.store.retrieve.sentence_keys import nearest_keys, pack_keys, unpack_keys, without_keys
from mnemic.text.documents import Passage, Sentence
from mnemic.text.sentence_spans import key_lengths

WIDTH = 16
OLD = {  # what a memory was before there were keys
    "sqlite": ("DROP TABLE keys", "PRAGMA user_version = 1"),
    "postgresql": (
        "ALTER TABLE vectors DROP COLUMN keys",
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

    lexical = 0.0

    def __init__(self) -> None:
        self.whole = HashedNgrams(width=256)
        self.model = Model("sentences", "0", 256)
        self.measure, self.embed = self.whole.measure, self.whole.embed

    def marks(self, texts: Sequence[str]) -> list[Marks]:
        parts = [text.split(". ") for text in texts]
        return [Marks(*pair) for pair in zip(self.embed(texts), map(self.embed, parts))]


def units(count: int, seed: int, width: int = WIDTH) -> Vectors:
    found = numpy.random.default_rng(seed).normal(size=(count, width)).astype(numpy.float32)
    return found / numpy.linalg.norm(found, axis=1, keepdims=True)


@pytest.fixture(params=sorted(ENGINES))
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def place(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> object:
    if engine == "postgresql":
        return request.getfixturevalue("new_address")()
    return tmp_path / "memory.db"


@pytest.fixture
def opened(engine: str, place: object) -> Iterator[Callable[[], Store]]:
    """Opens the same memory again and again, as other processes would."""
    stores: list[Store] = []

    def again() -> Store:
        stores.append(ENGINES[engine](place))
        return stores[-1]

    yield again
    for store in stores:
        store.close()


def split(keys: Keys) -> list[Vectors]:
    return numpy.split(keys.rows, numpy.cumsum(keys.counts)[:-1])


def add(store: Store, marks: Sequence[Marks], name: str = "one", **told: int) -> list[int]:
    """A document with a slot for each of the marks; the slots."""
    texts = [f"word{number} of {name}" for number in range(len(marks))]
    passages = [Passage(text, None, (Sentence(0, 5, 1, 0, 5),)) for text in texts]
    with store.writing(), store.change():
        if not store.begun():
            store.set_model(Model("tests", "0", WIDTH))
        number = store.add(Draft(name, "text", name, **told), zip(passages, marks))
    return [slot.id for slot in store.slots_of(number)]


def test_packed_keys_are_as_they_were_to_a_hundredth() -> None:
    every = [units(count, count, 384) for count in (3, 1, 0, 7)]
    stored = [pack_keys(own) for own in every]
    assert [len(own) for own in stored] == [3 * 384, 0, 0, 7 * 384]  # one alone is the vector
    found = unpack_keys(stored, 384)
    assert found.counts.tolist() == [3, 0, 0, 7]
    assert numpy.linalg.norm(found.rows, axis=1) == pytest.approx(numpy.ones(10), abs=1e-6)
    wanted = numpy.concatenate([every[0], every[3]])
    assert (found.rows * wanted).sum(1).min() > 0.9999
    again = [pack_keys(own) for own in split(found)]
    assert again == stored  # so that traces can be looked for
    assert unpack_keys([], 0).counts.tolist() == []


def test_a_slot_is_as_near_as_its_nearest_key() -> None:
    """The slow way: slot by slot."""
    counts, vector = [2, 0, 5, 1, 0, 0, 3], units(1, 9)[0]
    rows, whole = units(sum(counts), 1), units(len(counts), 2) @ vector
    found = nearest_keys(Keys(rows, numpy.array(counts)), vector, whole)
    for own, score, other in zip(split(Keys(rows, numpy.array(counts))), found, whole):
        assert score == pytest.approx(max(own @ vector) if len(own) else other)
    nothing = Keys(rows[:0], numpy.zeros(7, numpy.int64))
    assert nearest_keys(nothing, vector, whole).tolist() == whole.tolist()


def test_keys_are_kept_beside_the_vector(opened: Callable[[], Store]) -> None:
    store = opened()
    marks = [Marks(units(1, seed)[0], units(seed, seed)) for seed in (3, 1, 40)]
    slots = add(store, marks)
    found = opened().keys([slots[2], 999, slots[0], slots[1]])
    assert found.counts.tolist() == [40, 0, 3, 0]
    wanted = numpy.concatenate([marks[2].keys, marks[0].keys])
    assert found.rows == pytest.approx(wanted, abs=0.01)
    assert store.vectors(slots) == pytest.approx(
        numpy.stack([own.vector for own in marks]), abs=1e-3
    )
    assert (store.count().vectors, store.count().keyed) == (3, 3)
    assert list(store.unmarked()) == []
    assert check(store) == Checked()
    with store.writing(), store.change():
        store.give(slots[:2], [Marks(marks[0].vector, units(2, 8)), marks[0]])
    assert store.keys(slots).counts.tolist() == [2, 3, 40]
    add(store, without_keys(units(1, 5)), "two", previous=1)
    assert store.keys(slots).counts.tolist() == [0, 0, 0]  # what is superseded is not read
    with store.writing(), store.change():
        store.set_model(Model("other", "1", 4))
    assert store.count().keyed == 0
    assert store.keys([]).rows.shape == (0, 4)


def test_check_finds_keys_of_another_width(opened: Callable[[], Store], engine: str) -> None:
    store = opened()
    slots = add(store, [Marks(units(1, 1)[0], units(3, 1)), *without_keys(units(1, 2))])
    execute = store.connection.raw.execute  # type: ignore[attr-defined]
    harm = "'\\x0102'" if engine == "postgresql" else "x'0102'"
    execute(f"UPDATE {KEPT[engine]} SET keys = {harm} WHERE passage = {slots[0]}")
    assert check(store).faults == ("the keys of 1 passages are not of the model's width, 16",)
    execute(NONE[engine])  # written before there were keys
    assert check(store) == Checked()
    assert store.keys(slots).counts.tolist() == [0, 0]
    assert [slot.id for (slot, *_) in store.unmarked()] == slots[:1]


def test_a_sentence_finds_a_long_passage(place: object) -> None:
    """By one vector a short text with two of the words is nearer."""
    with Memory(place, embedder=Sentences(), reader=None) as memory:  # type: ignore[arg-type]
        for text in TEXTS:
            memory.note(text)
        query = "the passphrase of the cellar"
        own = memory.embedder
        assert own is not None
        whole = memory.store.vectors([1, 2, 3]) @ own.embed([query])[0]
        assert whole.argmax() == 2
        assert memory.search(query)[0].text == LONG
        sought = seek(memory.store, own, query).vectors
        assert sought is not None
        best = [(own.embed(text.split(". ")) @ own.embed([query])[0]).max() for text in TEXTS]
        assert [sought.scores[slot] for slot in (1, 2, 3)] == pytest.approx(best, abs=0.01)
        assert memory.ask(query, hops=2).evidence[0].passage == LONG


def test_a_memory_of_before_is_read_and_gets_keys(
    place: object, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = "the passphrase of the cellar"
    with Memory(place, embedder=Sentences(), reader=None) as memory:  # type: ignore[arg-type]
        for text in TEXTS:
            memory.note(text)
        for statement in OLD[engine]:
            memory.store.connection.execute(statement)  # type: ignore[attr-defined]
    if engine == "sqlite":
        with monkeypatch.context() as patch:  # one who may not write leaves it as it is
            patch.setattr("mnemic.store.sqlite.connection.os.access", lambda *_: False)
            with Memory(place, embedder=Sentences(), reader=None) as memory:  # type: ignore[arg-type]
                assert memory.search(query)[0].text == TEXTS[2]
                assert (memory.stats().vectors, memory.stats().keyed) == (3, 0)
                version = memory.store.connection.value("PRAGMA user_version")  # type: ignore[attr-defined]
                assert version == 1
    with Memory(place, embedder=Sentences(), reader=None) as memory:  # type: ignore[arg-type]
        assert memory.search(query)[0].text == TEXTS[2]  # by its vector alone
        assert memory.check() == Checked()
        memory.note("What is new has keys. And the old does not mind that.")
        assert memory.stats().keyed == 1
        *_, last = memory.reindex(Sentences())
        assert last == (4, 4)
        assert memory.search(query)[0].text == LONG
        assert memory.check() == Checked()
        assert list(memory.reindex(Sentences())) == []


def test_nothing_is_left_of_forgotten_keys(place: object, engine: str) -> None:
    with Memory(place, embedder=Sentences(), reader=None) as memory:  # type: ignore[arg-type]
        for text in TEXTS:
            memory.note(text)
        keys = memory.store.keys([1]).rows
        assert len(keys) == 4
        traces = [pack_keys(keys[[number, number]])[:64] for number in range(4)]
        assert memory.store.remains(traces) == []  # they are remembered: no remains
        if isinstance(place, Path):
            content = place.read_bytes() + place.with_name("memory.db-wal").read_bytes()
            assert all(trace in content for trace in traces)
        with memory.store.writing(), memory.store.change():
            memory.store.erase([2])
        done = memory.forget(1, verify=True)
        assert (done.remains, done.scrubbed) == ((), True)
        assert memory.store.remains(traces) == []
        if isinstance(place, Path):
            assert not any(trace in place.read_bytes() for trace in traces)


def test_verify_looks_for_keys(place: object, engine: str) -> None:
    """If they were left anywhere, the proof would fail; a key that another text has is no trace."""
    with Memory(place, embedder=Sentences(), reader=None) as memory:  # type: ignore[arg-type]
        for text in (*TEXTS, f"{LONG.rsplit('. ', 1)[0]}. But she did"):
            memory.note(text)
        assert memory.forget(1, verify=True).remains == ()
        kind = "bytea" if engine == "postgresql" else "blob"
        execute = memory.store.connection.execute  # type: ignore[attr-defined]
        execute(f"CREATE TABLE copies (keys {kind})")
        execute(f"INSERT INTO copies SELECT keys FROM {KEPT[engine]} WHERE passage = 4")
        assert memory.forget(4, verify=True).remains


@pytest.mark.skipif(find_spec(PACKAGE) is None, reason="MiniLM is not installed")
def test_keys_of_a_folders_network_are_means_of_their_tokens() -> None:
    own = embedder("minilm")
    assert isinstance(own, FolderEmbedder)
    texts = [LONG, "One.", "", "He said that it was so. " * 120]
    found = own.marks(texts)
    assert numpy.stack([one.vector for one in found]) == pytest.approx(own.embed(texts), abs=1e-5)
    coded = [own.tokenizer.encode(text, special=False) for text in texts]
    lengths = [key_lengths(text, one.offsets) for text, one in zip(texts, coded)]
    assert [len(one.keys) for one in found] == [4, 0, 0, len(lengths[3])]
    states = own.read([coded[0].ids])[0].states
    assert len(states) == len(coded[0].ids)
    place = 0
    for key, length in zip(found[0].keys, lengths[0]):
        mean = states[place : place + length].mean(0)
        assert key == pytest.approx(mean / numpy.linalg.norm(mean), abs=1e-5)
        place += length
    assert numpy.linalg.norm(found[3].keys, axis=1) == pytest.approx(1, abs=1e-5)


def test_the_shipped_reader_has_keys() -> None:
    own = embedder("reader")
    assert isinstance(own, CheckpointEmbedder)
    found = own.marks(TEXTS)
    assert [len(one.keys) for one in found] == [4, 1, 1]
    assert numpy.stack([one.vector for one in found]) == pytest.approx(own.embed(TEXTS), abs=1e-5)
    assert found[1].keys[0] == pytest.approx(found[1].vector, abs=1e-5)
