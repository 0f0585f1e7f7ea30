"""The contract of ``Store``, tested for every engine in ``ENGINES``."""

import inspect
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import count
from pathlib import Path

import numpy
import pytest

from mnemic.store import ENGINES, Store, StoreError
from mnemic.store.contract import CheckReport, Draft, EmbeddingModel, FileRecord
from mnemic.store.ingest.check import check_store
from mnemic.store.retrieve.sentence_keys import without_sentence_vectors
from mnemic.text.documents import Passage, Sentence

MODEL = EmbeddingModel("tests", "0", 4)
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
    stores, location = [], new_place()

    def again() -> Store:
        stores.append(ENGINES[engine](location))
        return stores[-1]

    with (first := again()).write_session(), first.transaction():
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
    embeddings = without_sentence_vectors(vectors_of(len(texts)))
    pairs = [(passage(text, page), embeddings[page]) for page, text in enumerate(texts)]
    with store.write_session(), store.transaction():
        return store.add_document(Draft(name, "text", name, previous=previous), pairs)


def put(store: Store, path: str, document: int, action: str = "") -> None:
    with store.write_session(), store.transaction():
        store.put_file_record(FileRecord(path, document, 1, 2), action)


def test_what_is_written_is_read_by_another(opened: Opened) -> None:
    number = add(opened(), "one", "The cat sat.", "A dog ran.")
    store = opened()
    document = store.get_document(number)
    assert document is not None
    assert (document.digest, document.passages, document.characters) == ("one", 2, 22)
    assert [slot.passage for slot in store.list_slots(number)] == [passage("The cat sat.", 0), passage("A dog ran.", 1)]
    slots = [slot.id for slot in store.list_slots(number)]
    assert [slot.id for slot in store.get_slots(slots[::-1])] == slots[::-1]
    assert store.get_vectors([*slots, 999]).tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0]]
    assert store.get_model() == MODEL
    assert store.is_initialized()
    assert check_store(store) == CheckReport()


def test_a_change_is_there_whole_or_not_at_all(opened: Opened) -> None:
    store, reader = opened(), opened()

    def fails() -> Iterator[tuple[Passage, None]]:
        yield passage("Half of it."), None
        raise RuntimeError("the other half")

    with pytest.raises(RuntimeError), store.write_session(), store.transaction():
        store.add_document(Draft("half", "text", "half"), fails())
    assert list(store.list_documents()) == list(reader.list_documents()) == []
    assert store.search_bm25("half", 9) == []
    with store.write_session(), store.transaction():
        store.add_document(Draft("whole", "text", "whole"), [(passage("All of it, half too."), None)])
        assert list(reader.list_documents()) == []  # and the reader is not kept waiting
    assert [document.title for document in reader.list_documents()] == ["whole"]


def test_words_and_vectors_find_slots(opened: Opened) -> None:
    store = opened()
    number = add(store, "one", "The cat sat on the mat.", "A dog ran.", "Cats and cats, cats.")
    slots = [slot.id for slot in store.list_slots(number)]
    matches = store.search_bm25("What did the cats do?", 9)
    assert [match.slot_id for match in matches] == [slots[2], slots[0]]  # other forms of a word, more first
    assert matches[0].score > matches[1].score > 0
    assert [match.slot_id for match in store.search_bm25("cats", 1)] == [slots[2]]
    assert [match.slot_id for match in store.search_bm25("cat mat", 9, require_all=True)] == [slots[0]]
    assert store.search_bm25("?!", 9) == []
    assert store.search_bm25('"a" OR (b*) NEAR -"', 9) is not None  # nothing in a question is a command
    nearest = store.search_vectors(vector(0, 1, 0, 0), 2)
    assert [match.slot_id for match in nearest.best] == [slots[2], slots[1]]
    assert (nearest.mean, nearest.std) == pytest.approx((1.0, (2 / 3) ** 0.5))
    assert store.count_slots() == 3


def test_nearest_is_what_sorting_everything_finds(opened: Opened) -> None:
    store, generator = opened(), numpy.random.default_rng(0)
    vectors = generator.normal(size=(1300, 4)).astype(numpy.float16).astype(numpy.float32)
    with store.write_session(), store.transaction():
        embeddings = enumerate(without_sentence_vectors(vectors))
        store.add_document(
            Draft("many", "text", "many"), ((passage(f"w{n}"), embedding) for n, embedding in embeddings)
        )
    for query in generator.normal(size=(3, 4)).astype(numpy.float32):
        scores = vectors @ query
        nearest = store.search_vectors(query, 20)
        assert [neighbor.slot_id - 1 for neighbor in nearest.best] == numpy.argsort(-scores)[:20].tolist()
        assert (nearest.mean, nearest.std) == pytest.approx((scores.mean(), scores.std()), 1e-4)


def test_what_is_superseded_is_kept_but_not_read(opened: Opened) -> None:
    store = opened()
    old = add(store, "old", "The key is under the mat.")
    new = add(store, "new", "The key is in the drawer.", previous=old)
    assert [document.id for document in store.list_documents()] == [new]
    assert [document.slot_id for document in store.search_bm25("key", 9)] == [store.list_slots(new).__next__().id]
    assert len(store.search_vectors(vector(1, 0, 0, 0), 9).best) == store.count_slots() == 1
    assert [document.id for document in store.list_versions(new)] == [old, new]
    assert [document.id for document in store.list_versions(old)] == [old, new]
    assert [slot.passage.text for slot in store.list_slots(old)] == ["The key is under the mat."]
    assert [event.what for event in store.list_events([old, new])] == ["remembered", "remembered", "superseded"]
    assert store.find_by_digest("old") is None
    assert check_store(store) == CheckReport()


def test_a_document_lives_as_long_as_it_has_a_place(opened: Opened) -> None:
    store = opened()
    number = add(store, "one", "The cat sat.")
    put(store, "/a", number)
    put(store, "/b", number, "copied")
    other_id = add(store, "two", "A dog ran.", previous=number)
    put(store, "/a", other_id)
    assert {document.id: document.places for document in store.list_documents()} == {number: ("/b",), other_id: ("/a",)}
    with store.write_session(), store.transaction():
        store.remove_file_record("/b")
        store.remove_file_record("/nowhere")
    assert [document.id for document in store.list_documents()] == [other_id]
    assert store.find_by_path("/b") == [number]
    assert store.get_file_record("/a") == FileRecord("/a", other_id, 1, 2)
    assert [record.path for record in store.list_file_records()] == ["/a"]
    assert check_store(store) == CheckReport()


def test_what_is_erased_is_nowhere(opened: Opened) -> None:
    store = opened()
    old = add(store, "old", "A secret passphrase: xylophones.")
    new = add(store, "new", "Nothing of interest.", previous=old)
    put(store, "/secret/place.txt", new)
    with store.write_session():
        with store.transaction():
            store.erase_documents([old, new])
        assert store.has_pending_scrub()
        assert store.scrub()
    assert not store.has_pending_scrub()
    assert list(store.list_documents(retired=True)) == list(store.list_file_records()) == []
    assert store.search_bm25("xylophones interest", 9) == store.list_events([old, new]) == []
    assert store.search_vectors(vector(1, 0, 0, 0), 9).best == []
    assert store.find_traces([b"passphrase", b"interest", b"/secret/place"]) == []
    assert store.collect_stats()[:6] == (0, 0, 0, 0, 0, 0)
    assert add(store, "new", "Nothing.") > new  # a number is never given twice


def test_the_scan_finds_what_is_there_and_tells_what_is_remembered(opened: Opened) -> None:
    store = opened()
    number = add(store, "one", "A secret passphrase.")
    assert store.find_traces([b"passphrase"]) == []  # it is remembered: no remains
    with store.write_session(), store.transaction():
        store.erase_documents([number])
    assert store.find_traces([b"passphrase", b"nowhere at all"]) == [b"passphrase"]  # not scrubbed yet


def test_another_model_means_other_vectors(opened: Opened) -> None:
    store = opened()
    number = add(store, "one", "The cat sat.", "A dog ran.")
    add(store, "gone", "x", previous=add(store, "older", "y"))
    with store.write_session(), store.transaction():
        store.set_model(EmbeddingModel("other", "1", 2))
    assert check_store(store).faults == ("3 passages have no vector; `mnemic reindex` makes them",)
    (lacking,) = store.list_unembedded_slots()
    assert [slot.document for slot in lacking][:2] == [number, number]
    for slots in store.list_unembedded_slots():
        with store.write_session(), store.transaction():
            store.set_embeddings(
                [slot.id for slot in slots], without_sentence_vectors(numpy.ones((len(slots), 2), numpy.float32))
            )
    assert check_store(store) == CheckReport()
    assert store.get_vectors([lacking[0].id]).tolist() == [[1, 1]]


def test_who_writes_keeps_no_reader_waiting(opened: Opened, engine: str) -> None:
    store, reader = opened(), opened()
    number = add(store, "one", "The cat sat.")
    with store.write_session():
        if engine == "sqlite":  # one writer
            with pytest.raises(StoreError, match=r"another process \(process \d+\) is writing"):
                reader.write_session().__enter__()
        with store.transaction():
            store.erase_documents([number])
            assert [document.id for document in reader.list_documents()] == [number]
            assert len(reader.search_bm25("cat", 9)) == 1
    with reader.write_session():
        pass


def test_a_document_of_another_memory_is_as_it_was_there(
    opened: Opened, engine: str, new_place: Callable[[], object]
) -> None:
    store = opened()
    old = add(store, "old", "The key is under the mat.")
    new = add(store, "new", "The key is in the drawer.", previous=old)
    put(store, "/a", new, "moved")
    copy = ENGINES[engine](new_place())
    with copy.write_session():
        for number in (old, new):
            document = store.get_document(number)
            assert document is not None
            records = [record for record in store.list_file_records() if record.document == number]
            passages = [(slot.passage, None) for slot in store.list_slots(number)]
            with copy.transaction():
                copy.restore_document(document, passages, records, store.list_events([number]))
    assert list(copy.list_documents(retired=True)) == list(store.list_documents(retired=True))
    for number in (old, new):
        assert copy.list_events([number]) == store.list_events([number])
    assert copy.search_bm25("mat", 9) == []
    assert len(copy.search_bm25("drawer", 9)) == 1
    assert check_store(copy) == CheckReport()
    copy.close()


@pytest.mark.parametrize(
    "function",
    [
        "rows.insert_passages",
        "rows.unindex_document",
        "rows.read_slots",
        "vectors.write_embeddings",
        "bm25.search_bm25",
        "check.check_memory",
    ],
)
def test_engines_have_the_functions_that_the_store_calls(function: str) -> None:
    """In files of the same name, with the same arguments."""
    module, _, name = function.partition(".")
    engines = [import_module(f"mnemic.store.{engine}.{module}") for engine in ("sqlite", "postgres")]
    first, second = (list(inspect.signature(getattr(engine, name)).parameters) for engine in engines)
    assert first == second


def test_engines_have_the_same_files() -> None:
    """But for an address, and for files beside the memory, which a server does not need."""
    folder = Path(inspect.getfile(Store)).parent
    first, second = ({path.stem for path in (folder / engine).glob("*.py")} for engine in ("sqlite", "postgres"))
    assert first ^ second == {"quantized", "side_files", "address"}
