"""What every engine of the lasting memory promises; a new one is picked up from ``ENGINES``."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import numpy
import pytest

from mnemic.store import ENGINES, Store, StoreError
from mnemic.store.contract import Checked, Draft, Model, Place
from mnemic.store.ingest.check import check
from mnemic.store.retrieve.sentence_keys import without_keys
from mnemic.text.documents import Passage, Sentence

MODEL = Model("tests", "0", 4)
Opened = Callable[[], Store]


@pytest.fixture(params=sorted(ENGINES))
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def new_place(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], object]:
    """Gives places for memories that are not there yet: files, or addresses on a server."""
    if engine == "postgresql":
        return request.getfixturevalue("new_address")  # type: ignore[no-any-return]
    numbers = count()
    return lambda: tmp_path / f"memory{next(numbers)}.db"


@pytest.fixture
def opened(engine: str, new_place: Callable[[], object]) -> Iterator[Opened]:
    """Opens the same memory again and again, as other processes would."""
    stores, place = [], new_place()

    def again() -> Store:
        stores.append(ENGINES[engine](place))
        return stores[-1]

    with (first := again()).writing(), first.change():
        first.set_model(MODEL)
    yield again
    for store in stores:
        store.close()


def passage(text: str, page: int | None = None) -> Passage:
    return Passage(text, page, (Sentence(0, len(text), 1, 10, 10 + len(text)),))


def vector(*numbers: float) -> numpy.ndarray:
    return numpy.array(numbers, numpy.float32)


def vectors_of(count: int) -> numpy.ndarray:
    return numpy.array([[1, page, 0, 0] for page in range(count)], numpy.float32)


def add(store: Store, name: str, *texts: str, previous: int | None = None) -> int:
    marks = without_keys(vectors_of(len(texts)))
    pairs = [(passage(text, page), marks[page]) for page, text in enumerate(texts)]
    with store.writing(), store.change():
        return store.add(Draft(name, "text", name, previous=previous), pairs)


def put(store: Store, path: str, document: int, what: str = "") -> None:
    with store.writing(), store.change():
        store.put(Place(path, document, 1, 2), what)


def test_what_is_written_is_read_by_another(opened: Opened) -> None:
    number = add(opened(), "one", "The cat sat.", "A dog ran.")
    store = opened()
    document = store.document(number)
    assert document is not None
    assert (document.digest, document.passages, document.characters) == ("one", 2, 22)
    assert [slot.passage for slot in store.slots_of(number)] == [
        passage("The cat sat.", 0),
        passage("A dog ran.", 1),
    ]
    slots = [slot.id for slot in store.slots_of(number)]
    assert [slot.id for slot in store.slots(slots[::-1])] == slots[::-1]
    assert store.vectors([*slots, 999]).tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0]]
    assert store.model() == MODEL
    assert store.begun()
    assert check(store) == Checked()


def test_a_change_is_there_whole_or_not_at_all(opened: Opened) -> None:
    store, reader = opened(), opened()

    def fails() -> Iterator[tuple[Passage, None]]:
        yield passage("Half of it."), None
        raise RuntimeError("the other half")

    with pytest.raises(RuntimeError), store.writing(), store.change():
        store.add(Draft("half", "text", "half"), fails())
    assert list(store.documents()) == list(reader.documents()) == []
    assert store.match("half", 9) == []
    with store.writing(), store.change():
        store.add(Draft("whole", "text", "whole"), [(passage("All of it, half too."), None)])
        assert list(reader.documents()) == []  # and the reader is not kept waiting
    assert [one.title for one in reader.documents()] == ["whole"]


def test_words_and_vectors_find_slots(opened: Opened) -> None:
    store = opened()
    number = add(store, "one", "The cat sat on the mat.", "A dog ran.", "Cats and cats, cats.")
    slots = [slot.id for slot in store.slots_of(number)]
    found = store.match("What did the cats do?", 9)
    assert [one.slot for one in found] == [slots[2], slots[0]]  # other forms of a word, more first
    assert found[0].score > found[1].score > 0
    assert [one.slot for one in store.match("cats", 1)] == [slots[2]]
    assert [one.slot for one in store.match("cat mat", 9, every=True)] == [slots[0]]
    assert store.match("?!", 9) == []
    assert store.match('"a" OR (b*) NEAR -"', 9) is not None  # nothing in a question is a command
    near = store.nearest(vector(0, 1, 0, 0), 2)
    assert [one.slot for one in near.best] == [slots[2], slots[1]]
    assert (near.mean, near.deviation) == pytest.approx((1.0, (2 / 3) ** 0.5))
    assert store.size() == 3


def test_nearest_is_what_sorting_everything_finds(opened: Opened) -> None:
    store, dice = opened(), numpy.random.default_rng(0)
    keys = dice.normal(size=(1300, 4)).astype(numpy.float16).astype(numpy.float32)
    with store.writing(), store.change():
        marks = enumerate(without_keys(keys))
        store.add(Draft("many", "text", "many"), ((passage(f"w{n}"), own) for n, own in marks))
    for query in dice.normal(size=(3, 4)).astype(numpy.float32):
        scores = keys @ query
        near = store.nearest(query, 20)
        assert [one.slot - 1 for one in near.best] == numpy.argsort(-scores)[:20].tolist()
        assert (near.mean, near.deviation) == pytest.approx((scores.mean(), scores.std()), 1e-4)


def test_what_is_superseded_is_kept_but_not_read(opened: Opened) -> None:
    store = opened()
    old = add(store, "old", "The key is under the mat.")
    new = add(store, "new", "The key is in the drawer.", previous=old)
    assert [one.id for one in store.documents()] == [new]
    assert [one.slot for one in store.match("key", 9)] == [store.slots_of(new).__next__().id]
    assert len(store.nearest(vector(1, 0, 0, 0), 9).best) == store.size() == 1
    assert [one.id for one in store.versions(new)] == [old, new]
    assert [one.id for one in store.versions(old)] == [old, new]
    assert [slot.passage.text for slot in store.slots_of(old)] == ["The key is under the mat."]
    assert [event.what for event in store.history([old, new])] == [
        "remembered",
        "remembered",
        "superseded",
    ]
    assert store.equal("old") is None
    assert check(store) == Checked()


def test_a_document_lives_as_long_as_it_has_a_place(opened: Opened) -> None:
    store = opened()
    number = add(store, "one", "The cat sat.")
    put(store, "/a", number)
    put(store, "/b", number, "copied")
    other = add(store, "two", "A dog ran.", previous=number)
    put(store, "/a", other)
    assert {one.id: one.places for one in store.documents()} == {number: ("/b",), other: ("/a",)}
    with store.writing(), store.change():
        store.remove("/b")
        store.remove("/nowhere")
    assert [one.id for one in store.documents()] == [other]
    assert store.once_at("/b") == [number]
    assert store.place("/a") == Place("/a", other, 1, 2)
    assert [place.path for place in store.places()] == ["/a"]
    assert check(store) == Checked()


def test_what_is_erased_is_nowhere(opened: Opened) -> None:
    store = opened()
    old = add(store, "old", "A secret passphrase: xylophones.")
    new = add(store, "new", "Nothing of interest.", previous=old)
    put(store, "/secret/place.txt", new)
    with store.writing():
        with store.change():
            store.erase([old, new])
        assert store.unscrubbed()
        assert store.scrub()
    assert not store.unscrubbed()
    assert list(store.documents(retired=True)) == list(store.places()) == []
    assert store.match("xylophones interest", 9) == store.history([old, new]) == []
    assert store.nearest(vector(1, 0, 0, 0), 9).best == []
    assert store.remains([b"passphrase", b"interest", b"/secret/place"]) == []
    assert store.count()[:6] == (0, 0, 0, 0, 0, 0)
    assert add(store, "new", "Nothing.") > new  # a number is never given twice


def test_the_scan_finds_what_is_there_and_tells_what_is_remembered(opened: Opened) -> None:
    store = opened()
    number = add(store, "one", "A secret passphrase.")
    assert store.remains([b"passphrase"]) == []  # it is remembered: no remains
    with store.writing(), store.change():
        store.erase([number])
    assert store.remains([b"passphrase", b"nowhere at all"]) == [b"passphrase"]  # not scrubbed yet


def test_another_model_means_other_vectors(opened: Opened) -> None:
    store = opened()
    number = add(store, "one", "The cat sat.", "A dog ran.")
    add(store, "gone", "x", previous=add(store, "older", "y"))
    with store.writing(), store.change():
        store.set_model(Model("other", "1", 2))
    assert check(store).faults == ("3 passages have no vector; `mnemic reindex` makes them",)
    (lacking,) = store.unmarked()
    assert [slot.document for slot in lacking][:2] == [number, number]
    for slots in store.unmarked():
        with store.writing(), store.change():
            store.give(
                [slot.id for slot in slots],
                without_keys(numpy.ones((len(slots), 2), numpy.float32)),
            )
    assert check(store) == Checked()
    assert store.vectors([lacking[0].id]).tolist() == [[1, 1]]


def test_who_writes_keeps_no_reader_waiting(opened: Opened, engine: str) -> None:
    store, other = opened(), opened()
    number = add(store, "one", "The cat sat.")
    with store.writing():
        if engine == "sqlite":  # one writer
            with pytest.raises(StoreError, match=r"another process \(process \d+\) is writing"):
                other.writing().__enter__()
        with store.change():
            store.erase([number])
            assert [one.id for one in other.documents()] == [number]
            assert len(other.match("cat", 9)) == 1
    with other.writing():
        pass


def test_a_document_of_another_memory_is_as_it_was_there(
    opened: Opened, engine: str, new_place: Callable[[], object]
) -> None:
    store = opened()
    old = add(store, "old", "The key is under the mat.")
    new = add(store, "new", "The key is in the drawer.", previous=old)
    put(store, "/a", new, "moved")
    there = ENGINES[engine](new_place())
    with there.writing():
        for number in (old, new):
            document = store.document(number)
            assert document is not None
            places = [place for place in store.places() if place.document == number]
            found = [(slot.passage, None) for slot in store.slots_of(number)]
            with there.change():
                there.restore(document, found, places, store.history([number]))
    assert list(there.documents(retired=True)) == list(store.documents(retired=True))
    for number in (old, new):
        assert there.history([number]) == store.history([number])
    assert there.match("mat", 9) == []
    assert len(there.match("drawer", 9)) == 1
    assert check(there) == Checked()
    there.close()
