"""Filters of questions: what is left out is not there, for words and for vectors."""

import os
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import count
from pathlib import Path

import numpy
import pytest

from mnemic import Memory
from mnemic.store import ENGINES, Store, StoreError
from mnemic.store.contract import Draft, EmbeddingModel, FileRecord
from mnemic.store.retrieve.filters import make_filters, parse_days
from mnemic.store.retrieve.sentence_keys import without_sentence_vectors
from mnemic.store.sqlite import quantized, vectors
from mnemic.text.documents import Passage, Sentence

NUM_DOCUMENTS, NUM_PASSAGES, LIMIT = 12, 7, 5
FOLDERS = ("/data/ann", "/data/anne", "/data/ann/old", "/data/box.zip!/ann")


def make_passage(text: str) -> Passage:
    return Passage(text, None, (Sentence(0, len(text), 1, 0, len(text)),))


@pytest.fixture(scope="module", params=sorted(ENGINES))
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A memory of files in four folders, of two kinds, one per day, and of one note."""
    is_server = request.param == "postgresql"
    location = request.getfixturevalue("new_address")() if is_server else tmp_path_factory.mktemp("filters") / "a.db"
    generator, numbers = numpy.random.default_rng(0), count()
    store = ENGINES[request.param](location)
    with store.write_session(), store.transaction():
        store.set_model(EmbeddingModel("tests", "0", 8))
        for document in range(NUM_DOCUMENTS + 1):
            rows = generator.normal(size=(NUM_PASSAGES, 8)).astype(numpy.float32)
            texts = [f"The cat {'sat ' * (next(numbers) % 5)} on mat {document}." for _ in rows]
            pairs = zip(map(make_passage, texts), without_sentence_vectors(rows))
            kind = "note" if document == NUM_DOCUMENTS else ("pdf", "text")[document % 2]
            document_id = store.add_document(Draft(str(document), kind, ""), pairs)
            if document < NUM_DOCUMENTS:
                path = f"{FOLDERS[document % 4]}/file{document}"
                modified = datetime(2024, 3, document + 1, 12).astimezone()
                record = FileRecord(path, document_id, 1, int(modified.timestamp()) * 10**9)
                store.put_file_record(record, "")
    yield store
    store.close()


FILTERS = [
    {"inside": "/data/ann"},
    {"inside": "/data/ann/old/file2"},
    {"inside": "/data/box.zip"},
    {"inside": "/data", "kind": "pdf"},
    {"inside": "/"},
    {"kind": "text", "since": "2024-03-03", "until": "2024-03-09"},
    {"since": date(2024, 3, 11)},
    {"kind": "note", "until": "2024"},
    {"inside": "/nowhere"},
]
EXPECTED = [
    {0, 2, 4, 6, 8, 10},
    {2},
    {3, 7, 11},
    {0, 2, 4, 6, 8, 10},
    set(range(12)),
    {3, 5, 7},
    {10, 11, 12},
    set(),
    set(),
]


@pytest.mark.parametrize("is_large", [False, True])
@pytest.mark.parametrize(("filters", "expected"), list(zip(FILTERS, EXPECTED)))
def test_a_filter_ranks_its_documents_as_if_there_were_no_others(
    store: Store, filters: dict[str, str], expected: set[int], is_large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The best of the whole memory, without the others: exact, with the same scores."""
    if is_large:  # the paths of large memories: through all vectors, and through quantized ones
        monkeypatch.setattr(vectors, "MAX_FETCHED_SLOTS", 0)
        monkeypatch.setattr(quantized, "MIN_SLOTS", 1)
    document_ids = store.find_documents(make_filters(**filters))  # type: ignore[arg-type]
    assert document_ids is not None
    assert {int(store.get_document(number).digest) for number in document_ids} == expected  # type: ignore[union-attr]
    num_slots = NUM_PASSAGES * len(expected)
    assert store.count_slots(document_ids) == num_slots
    slots = {slot.id for number in document_ids for slot in store.list_slots(number)}
    everything = store.search_bm25("cat sat", 999)
    assert len(everything) == NUM_PASSAGES * (NUM_DOCUMENTS + 1)
    matches = store.search_bm25("cat sat", LIMIT, document_ids=document_ids)
    scores = sorted((score for slot_id, score in everything if slot_id in slots), reverse=True)[:LIMIT]
    assert [match.score for match in matches] == pytest.approx(scores)
    assert {match.slot_id for match in matches} <= slots
    query = numpy.random.default_rng(1).normal(size=8).astype(numpy.float32)
    nearest = store.search_vectors(query, LIMIT, document_ids)
    products = store.get_vectors(sorted(slots)) @ query
    ranks = numpy.argsort(-products)[:LIMIT]
    assert [match.slot_id for match in nearest.best] == [sorted(slots)[rank] for rank in ranks]
    if len(slots):
        tolerance = 0.05 if is_large else 1e-4  # quantized vectors give an estimate
        assert (nearest.mean, nearest.std) == pytest.approx((products.mean(), products.std()), abs=tolerance)


def test_without_filters_all_documents_are_read(store: Store) -> None:
    assert store.find_documents(make_filters()) is None
    with pytest.raises(StoreError, match=r"no kind 'pfd' \(did you mean 'pdf'\?\); kinds are .*, note"):
        store.find_documents(make_filters(kind="pfd"))


def test_days_months_and_years() -> None:
    assert parse_days("2024-02") == (date(2024, 2, 1), date(2024, 2, 29))
    assert parse_days("2023") == (date(2023, 1, 1), date(2023, 12, 31))
    assert parse_days(datetime(2023, 5, 6, 7)) == (date(2023, 5, 6),) * 2
    for wrong in ("yesterday", "2024-13", "2024-02-30", "1066", "24-01-01", "", "2024-00"):
        with pytest.raises(StoreError, match="a date is written 2024-03-31"):
            parse_days(wrong)
    with pytest.raises(StoreError, match="no day is both"):
        make_filters(since="2025", until="2024")
    with pytest.raises(StoreError, match="is empty"):
        make_filters(inside="")
    assert make_filters(kind=".MD").kind == "markdown"
    assert make_filters("~").inside == os.path.expanduser("~")


def test_questions_and_searches_have_filters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder, day in {"home": "Monday", "work": "Friday"}.items():
        Path(folder).mkdir()
        Path(folder, "plan.md").write_text(f"# Plan\n\nThe party is on {day}.\n", encoding="utf-8")
        years = {"home": 2020, "work": 2022}
        at = datetime(years[folder], 6, 1, tzinfo=UTC).timestamp()
        os.utime(Path(folder, "plan.md"), (at, at))
    with Memory("memory.db", embedder="hashed-ngrams", reader=None) as memory:
        memory.remember("home", "work")
        memory.note("The party is on Sunday.")
        question = "When is the party?"
        today = date.today()
        for day, filters in {
            "Monday": {"inside": "home"},
            "Friday": {"inside": Path("work", "plan.md"), "kind": "md"},
            "Sunday": {"since": today - timedelta(days=1), "until": today + timedelta(days=1)},
        }.items():
            answer = memory.ask(question, **filters)  # type: ignore[arg-type]
            assert answer.text == f"The party is on {day}."
            assert answer.looked == answer.read == 1
            assert [day in hit.text for hit in memory.search(question, **filters)] == [True]  # type: ignore[arg-type]
        assert memory.ask(question, until="2021").text == "The party is on Monday."
        none = memory.ask(question, inside="home", since="2021", hops=2)
        assert (none.has_answer, none.looked, memory.search(question, inside="home", since="2021")) == (False, 0, [])
        assert none.notes == (f"no document fits: inside {tmp_path / 'home'}, since 2021-01-01; leave one out",)


def test_of_a_file_and_its_copy_that_inside_the_folder_is_cited(tmp_path: Path) -> None:
    for name in ("copy.txt", "home/lease.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("The lease ends on 30 June.", encoding="utf-8")
    with Memory(tmp_path / "memory.db", embedder="none", reader=None) as memory:
        memory.remember(tmp_path / "copy.txt", tmp_path / "home")
        inside = str(tmp_path / "home" / "lease.txt")
        assert memory.ask("When does the lease end?", inside=tmp_path / "home").evidence[0].name == inside
        assert memory.search("lease", inside=inside)[0].name == inside
        assert memory.search("lease")[0].name == str(tmp_path / "copy.txt")
