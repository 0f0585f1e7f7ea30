"""What only the PostgreSQL engine has: its ranking, its index, its addresses, what it leaves."""

from pathlib import Path

import numpy
import pytest
from app_runs import run
from postgres_memory import NewAddress, address, execute, passages

from mnemic import Memory
from mnemic.store import PostgresStore, SQLiteStore, StoreError
from mnemic.store.contract import CheckReport, Draft, EmbeddingModel, ScoredSlot
from mnemic.store.ingest.check import check_store
from mnemic.store.locate import locate_memory
from mnemic.store.postgres import vectors as postgres_vectors
from mnemic.store.retrieve.sentence_keys import without_sentence_vectors

__all__ = ["address"]  # a fixture

WORDS = """
    the cat dog ran runs running technology technological assemble US is u café CAFE naïve 1e5 a_b
    state-of-the-art 北京 首都 刘胜 о Ελλάδα
"""


def slots_above_last(matches: list[ScoredSlot]) -> set[int]:
    """Return the slots with a higher score than the last: ties may be cut off."""
    return {match.slot_id for match in matches if match.score > matches[-1].score + 1e-9}


def test_both_engines_rank_alike(new_address: NewAddress, tmp_path: Path) -> None:
    """The same scores, to the last digits: BM25 over the same words."""
    generator = numpy.random.default_rng(0)
    choices = WORDS.split()
    texts = [" ".join(generator.choice(choices, generator.integers(1, 60))) for _ in range(300)]
    stores = [SQLiteStore(tmp_path / "memory.db"), PostgresStore(new_address())]
    for store in stores:
        with store.write_session(), store.transaction():
            store.set_model(None)
            store.add_document(Draft("all", "text", "all"), passages([*texts, "Rare café: a zebra."]))
            retired_id = store.add_document(Draft("old", "text", "old"), passages(["zebra " * 9]))
            store.add_document(Draft("new", "text", "new", previous=retired_id), passages(["A horse."]))
    for query in (
        "running cats",
        "Café naive?",
        "zebras dogs",
        "assemblies of us",
        "technologies",
        "中国的首都北京",
        "刘胜死后",
        "ελλάδα 1E5",
        "the",
    ):
        for require_all in (False, True):
            sqlite_matches, postgres_matches = (
                store.search_bm25(query, 40, require_all=require_all) for store in stores
            )
            assert [match.score for match in sqlite_matches] == pytest.approx(
                [match.score for match in postgres_matches], 1e-6
            )
            assert slots_above_last(sqlite_matches) == slots_above_last(postgres_matches)
    for store in stores:
        assert check_store(store) == CheckReport()
        store.close()


def test_words_that_are_in_most_passages_count_almost_nothing(new_address: NewAddress) -> None:
    store = PostgresStore(new_address())
    with store.write_session(), store.transaction():
        store.set_model(None)
        store.add_document(Draft("all", "text", "all"), passages(["dog", "dog dog", "dog cat", "dog"]))
    dog, *_ = store.search_bm25("dog", 9)
    assert 0 < dog.score < 1e-5 < store.search_bm25("cat", 9)[0].score
    assert store.search_bm25("xyzzy", 9) == []
    assert len(store.search_bm25(" ".join(f"cat{n} cat" for n in range(3000)), 9)) == 1
    store.close()


def test_an_index_finds_what_looking_at_all_finds(new_address: NewAddress, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = numpy.random.default_rng(0)
    keys = generator.normal(size=(3000, 16)).astype(numpy.float32)
    keys /= numpy.linalg.norm(keys, axis=1, keepdims=True)
    store = PostgresStore(new_address())
    index_passages = (pair[0] for pair in passages([f"w{n}" for n in range(3000)]))
    with store.write_session(), store.transaction():
        store.set_model(EmbeddingModel("tests", "0", 16))
        number = store.add_document(Draft("all", "text", "all"), zip(index_passages, without_sentence_vectors(keys)))
    queries = generator.normal(size=(20, 16)).astype(numpy.float32)
    exact = [store.search_vectors(query, 20) for query in queries]
    monkeypatch.setattr(postgres_vectors, "MIN_INDEXED_VECTORS", 1000)
    monkeypatch.setattr(postgres_vectors, "NUM_SAMPLED", 3000)  # a sample that is everything
    with store.write_session():
        pass
    assert postgres_vectors.has_index(store.connection)
    plan = store.connection.fetch_all(
        f"EXPLAIN {postgres_vectors.SEARCH_INDEX.format(width=16)}",
        {"own": str(queries[0].tolist()), "reach": 40, "share": 1, "most": 20},
    )
    assert "vectors_near" in str(plan)
    shared = []
    for query, truth in zip(queries, exact):
        nearest = store.search_vectors(query, 20)
        shared.append(
            len({neighbor.slot_id for neighbor in nearest.best} & {neighbor.slot_id for neighbor in truth.best})
        )
        assert (nearest.mean, nearest.std) == pytest.approx((truth.mean, truth.std), abs=1e-6)
    assert sum(shared) >= 0.98 * 20 * len(queries)
    with store.write_session():
        with store.transaction():
            store.erase_documents([number])
        assert store.scrub()
        assert not postgres_vectors.has_index(store.connection)
    store.close()


def test_a_memory_moves_between_engines(tmp_path: Path, new_address: NewAddress) -> None:
    locations = (tmp_path / "first.db", new_address(), tmp_path / "last.db")
    with Memory(locations[0], embedder="hashed-ngrams") as memory:
        file = tmp_path / "a.txt"
        file.write_text("The key is under the mat. 北京是中国的首都。", encoding="utf-8")
        memory.remember(file)
        memory.update(memory.note("It is on Monday."), "It is on Friday, \u2028 at noon: '½'.")
    texts, answers = [], []
    for number, location in enumerate(locations):
        with Memory(location, embedder="hashed-ngrams", reader=None) as memory:
            if number:
                list(memory.take(tmp_path / f"{number - 1}.jsonl"))
            list(memory.export(tmp_path / f"{number}.jsonl"))
            texts.append((tmp_path / f"{number}.jsonl").read_bytes())
            answers.append(memory.ask("Where is the key?"))
            assert memory.check() == CheckReport()
    assert texts[0] == texts[1] == texts[2]
    assert answers[0].text == answers[1].text == "The key is under the mat."
    assert answers[0].score == pytest.approx(answers[1].score, 1e-3)
    assert answers[0] == answers[2]


def test_several_memories_in_one_database(address: str, new_address: NewAddress) -> None:
    with Memory(address, reader=None) as first, Memory(new_address(), embedder="none", reader=None) as second:
        second.note("The bread is in the kitchen.")
        assert first.ask("What is in the kitchen?").text == "The milk is in the kitchen."
        assert second.ask("What is in the kitchen?").text == "The bread is in the kitchen."
        assert (first.stats().documents, second.stats().documents) == (2, 1)


def test_an_address_is_shown_without_its_password() -> None:
    for full_address, text in {
        "postgresql://ann:s3cret@host:5432/notes#work": "postgresql://ann@host:5432/notes#work",
        "postgres://host/notes": "postgres://host/notes",
        "postgresql:///notes?user=ann&password=s3cret": "postgresql:///notes?user=ann",
        "postgresql://ann:s3c/r@et@host/notes": "postgresql://ann@host/notes",
    }.items():
        assert str(locate_memory(full_address)) == text
        assert "s3c" not in repr(locate_memory(full_address))
    with pytest.raises(StoreError, match="small letters, digits"):
        locate_memory("postgresql://host/notes#Work of mine")
    with pytest.raises(StoreError, match="cannot be understood") as error:
        Memory("postgresql://ann:s3c/r@et@host/notes?nonsense=1").stats()
    assert "s3c" not in str(error.value)


@pytest.mark.parametrize("reading", ["SELECT * FROM documents", "SELECT 1"])
def test_who_still_sees_what_was_erased(address: str, reading: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is forgotten is then told to leave traces, and the next writer clears them.

    One who reads anything at all, in a transaction that goes on, may read the memory later in it.
    """
    monkeypatch.setattr("mnemic.store.postgres.scrub.READER_TIMEOUT_S", 0.1)
    reader = PostgresStore(address)
    reader.connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    reader.connection.execute(reading)
    with Memory(address, reader=None) as memory:
        done = memory.forget(2, verify=True)
        assert not done.scrubbed
        assert done.traces
        assert len(list(reader.list_documents())) == 2  # it still sees what it saw
        reader.connection.execute("COMMIT")
        assert memory.check() == CheckReport()
        assert not memory.store.has_pending_scrub()
        assert memory.store.find_traces([b"kitchen", b"contract"]) == []
    reader.close()


def test_statistics_hold_no_text(address: str) -> None:
    """They are copies that nobody thinks of when something is forgotten."""
    select_statistics = "SELECT most_common_vals::text, histogram_bounds::text, most_common_elems::text FROM"
    rows = "pg_stats WHERE schemaname = current_schema()"
    with Memory(address, reader=None) as memory:
        for number in range(50):
            memory.note(f"The milk is in kitchen {number}.")
    statistics = str(execute(address, "ANALYZE", f"{select_statistics} {rows}"))
    assert "remembered" in statistics or "note" in statistics
    assert "milk" not in statistics
    assert "kitchen" not in statistics


def test_the_commands(tmp_path: Path, new_address: NewAddress, monkeypatch: pytest.MonkeyPatch) -> None:
    where = new_address().replace("postgres@", "postgres:s3cret@")
    monkeypatch.chdir(tmp_path)
    Path("lease.txt").write_text("The lease ends on 30 June.", encoding="utf-8")
    done = run("remember", "lease.txt", "--embedder", "hashed-ngrams", "--memory", where)
    assert done.out.splitlines()[0] == "files: 1 new; 1 new passages", done.err
    monkeypatch.setenv("MNEMIC_MEMORY", where)
    assert "The lease ends on 30 June." in run("ask", "When does the lease end?").out
    stats, sound = run("stats").out, run("check").out
    assert "is sound" in sound
    assert "s3cret" not in done.out + stats + sound
    forgotten = run("forget", "lease.txt", "--verify")
    assert "verified: no trace is left in the files of the memory" in forgotten.out
    assert "write-ahead log" in forgotten.err
    remembered = run("stats", "--memory", "postgresql://nobody:s3cret@127.0.0.1:1/x")
    assert (remembered.code, "s3cret" in remembered.err) == (2, False)
    assert "no PostgreSQL server answers there" in remembered.err
