"""What only the PostgreSQL engine has: its ranking, its index, its addresses, what it leaves."""

from pathlib import Path

import numpy
import pytest
from app_runs import run
from postgres_memory import NewAddress, address, execute, passages

from mnemic import Memory
from mnemic.store import PostgresStore, SQLiteStore, StoreError
from mnemic.store.contract import Checked, Draft, Model, Scored
from mnemic.store.ingest.check import check
from mnemic.store.locate import locate
from mnemic.store.postgres import vectors as postgres_dense
from mnemic.store.retrieve.sentence_keys import without_keys

__all__ = ["address"]  # a fixture

WORDS = """
    the cat dog ran runs running technology technological assemble US is u café CAFE naïve 1e5 a_b
    state-of-the-art 北京 首都 о Ελλάδα
"""


def clear(found: list[Scored]) -> set[int]:
    """The slots before those that share the last score, of which any may have been left out."""
    return {one.slot for one in found if one.score > found[-1].score + 1e-9}


def test_both_engines_rank_alike(new_address: NewAddress, tmp_path: Path) -> None:
    """The same scores, to the last digits: BM25 over the same words."""
    dice = numpy.random.default_rng(0)
    choices = WORDS.split()
    texts = [" ".join(dice.choice(choices, dice.integers(1, 60))) for _ in range(300)]
    stores = [SQLiteStore(tmp_path / "memory.db"), PostgresStore(new_address())]
    for store in stores:
        with store.writing(), store.change():
            store.set_model(None)
            store.add(Draft("all", "text", "all"), passages([*texts, "Rare café: a zebra."]))
            gone = store.add(Draft("old", "text", "old"), passages(["zebra " * 9]))
            store.add(Draft("new", "text", "new", previous=gone), passages(["A horse."]))
    for query in (
        "running cats",
        "Café naive?",
        "zebras dogs",
        "assemblies of us",
        "technologies",
        "中国的首都北京",
        "ελλάδα 1E5",
        "the",
    ):
        for every in (False, True):
            own, other = (store.match(query, 40, every=every) for store in stores)
            assert [one.score for one in own] == pytest.approx([one.score for one in other], 1e-6)
            assert clear(own) == clear(other)
    for store in stores:
        assert check(store) == Checked()
        store.close()


def test_words_that_are_in_most_passages_count_almost_nothing(new_address: NewAddress) -> None:
    store = PostgresStore(new_address())
    with store.writing(), store.change():
        store.set_model(None)
        store.add(Draft("all", "text", "all"), passages(["dog", "dog dog", "dog cat", "dog"]))
    dog, *_ = store.match("dog", 9)
    assert 0 < dog.score < 1e-5 < store.match("cat", 9)[0].score
    assert store.match("xyzzy", 9) == []
    assert len(store.match(" ".join(f"cat{n} cat" for n in range(3000)), 9)) == 1
    store.close()


def test_an_index_finds_what_looking_at_all_finds(
    new_address: NewAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = numpy.random.default_rng(0)
    keys = dice.normal(size=(3000, 16)).astype(numpy.float32)
    keys /= numpy.linalg.norm(keys, axis=1, keepdims=True)
    store = PostgresStore(new_address())
    some = (pair[0] for pair in passages([f"w{n}" for n in range(3000)]))
    with store.writing(), store.change():
        store.set_model(Model("tests", "0", 16))
        number = store.add(Draft("all", "text", "all"), zip(some, without_keys(keys)))
    queries = dice.normal(size=(20, 16)).astype(numpy.float32)
    exact = [store.nearest(query, 20) for query in queries]
    monkeypatch.setattr(postgres_dense, "INDEXED", 1000)
    monkeypatch.setattr(postgres_dense, "SAMPLED", 3000)  # a sample that is everything
    with store.writing():
        pass
    assert postgres_dense.indexed(store.connection)
    plan = store.connection.rows(
        f"EXPLAIN {postgres_dense.APPROXIMATE.format(width=16)}",
        {"own": str(queries[0].tolist()), "reach": 40, "share": 1, "most": 20},
    )
    assert "vectors_near" in str(plan)
    shared = []
    for query, truth in zip(queries, exact):
        near = store.nearest(query, 20)
        shared.append(len({one.slot for one in near.best} & {one.slot for one in truth.best}))
        assert (near.mean, near.deviation) == pytest.approx((truth.mean, truth.deviation), abs=1e-6)
    assert sum(shared) >= 0.98 * 20 * len(queries)
    with store.writing():
        with store.change():
            store.erase([number])
        assert store.scrub()
        assert not postgres_dense.indexed(store.connection)
    store.close()


def test_a_memory_moves_between_engines(tmp_path: Path, new_address: NewAddress) -> None:
    places = (tmp_path / "first.db", new_address(), tmp_path / "last.db")
    with Memory(places[0], embedder="hashed-ngrams") as memory:
        file = tmp_path / "a.txt"
        file.write_text("The key is under the mat. 北京是中国的首都。", encoding="utf-8")
        memory.remember(file)
        memory.update(memory.note("It is on Monday."), "It is on Friday, \u2028 at noon: '½'.")
    texts, answers = [], []
    for number, place in enumerate(places):
        with Memory(place, embedder="hashed-ngrams", reader=None) as memory:
            if number:
                list(memory.take(tmp_path / f"{number - 1}.jsonl"))
            list(memory.export(tmp_path / f"{number}.jsonl"))
            texts.append((tmp_path / f"{number}.jsonl").read_bytes())
            answers.append(memory.ask("Where is the key?"))
            assert memory.check() == Checked()
    assert texts[0] == texts[1] == texts[2]
    assert answers[0].text == answers[1].text == "The key is under the mat."
    assert answers[0].score == pytest.approx(answers[1].score, 1e-3)
    assert answers[0] == answers[2]


def test_several_memories_in_one_database(address: str, new_address: NewAddress) -> None:
    with (
        Memory(address, reader=None) as one,
        Memory(new_address(), embedder="none", reader=None) as two,
    ):
        two.note("The bread is in the kitchen.")
        assert one.ask("What is in the kitchen?").text == "The milk is in the kitchen."
        assert two.ask("What is in the kitchen?").text == "The bread is in the kitchen."
        assert (one.stats().documents, two.stats().documents) == (2, 1)


def test_an_address_is_shown_without_its_password() -> None:
    for told, shown in {
        "postgresql://ann:s3cret@host:5432/notes#work": "postgresql://ann@host:5432/notes#work",
        "postgres://host/notes": "postgres://host/notes",
        "postgresql:///notes?user=ann&password=s3cret": "postgresql:///notes?user=ann",
        "postgresql://ann:s3c/r@et@host/notes": "postgresql://ann@host/notes",
    }.items():
        assert str(locate(told)) == shown
        assert "s3c" not in repr(locate(told))
    with pytest.raises(StoreError, match="small letters, digits"):
        locate("postgresql://host/notes#Work of mine")
    with pytest.raises(StoreError, match="cannot be understood") as error:
        Memory("postgresql://ann:s3c/r@et@host/notes?nonsense=1").stats()
    assert "s3c" not in str(error.value)


@pytest.mark.parametrize("reading", ["SELECT * FROM documents", "SELECT 1"])
def test_who_still_sees_what_was_erased(
    address: str, reading: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is forgotten is then told to leave traces, and the next writer clears them.

    One who reads anything at all, in a transaction that goes on, may read the memory later in it.
    """
    monkeypatch.setattr("mnemic.store.postgres.scrub.PATIENCE", 0.1)
    reader = PostgresStore(address)
    reader.connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    reader.connection.execute(reading)
    with Memory(address, reader=None) as memory:
        done = memory.forget(2, verify=True)
        assert not done.scrubbed
        assert done.remains
        assert len(list(reader.documents())) == 2  # it still sees what it saw
        reader.connection.execute("COMMIT")
        assert memory.check() == Checked()
        assert not memory.store.unscrubbed()
        assert memory.store.remains([b"kitchen", b"contract"]) == []
    reader.close()


def test_statistics_hold_no_text(address: str) -> None:
    """They are copies that nobody thinks of when something is forgotten."""
    asked = "SELECT most_common_vals::text, histogram_bounds::text, most_common_elems::text FROM"
    own = "pg_stats WHERE schemaname = current_schema()"
    with Memory(address, reader=None) as memory:
        for number in range(50):
            memory.note(f"The milk is in kitchen {number}.")
    told = str(execute(address, "ANALYZE", f"{asked} {own}"))
    assert "remembered" in told or "note" in told
    assert "milk" not in told
    assert "kitchen" not in told


def test_the_commands(
    tmp_path: Path, new_address: NewAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    gone = run("forget", "lease.txt", "--verify")
    assert "verified: no trace is left in the files of the memory" in gone.out
    assert "write-ahead log" in gone.err
    there = run("stats", "--memory", "postgresql://nobody:s3cret@127.0.0.1:1/x")
    assert (there.code, "s3cret" in there.err) == (2, False)
    assert "no PostgreSQL server answers there" in there.err
