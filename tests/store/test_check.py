"""Checking a memory, by one who writes and by one who may only read; both engines."""

import sqlite3
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import numpy
import pytest

from mnemic import Memory
from mnemic.store import ENGINES, Checked, Store, StoreError
from mnemic.store.contract import Draft, Model
from mnemic.store.ingest.check import CLEARING, check
from mnemic.store.retrieve.sentence_keys import without_keys
from mnemic.store.sqlite.check import INDEX
from mnemic.text.documents import Passage, Sentence

Opened = Callable[[], Store]
HARMS = {
    "DELETE FROM vectors WHERE passage = 1": "1 passages have no vector",
    "UPDATE passages SET text = 'other words' WHERE id = 2": "does not agree with the texts",
    "UPDATE passages SET number = 7 WHERE id = 2": "not numbered from 0",
    "UPDATE documents SET retired = 'then'": "is in the full-text index, but is not read",
}
OWN_HARMS = {
    "sqlite": {
        'UPDATE sentences SET "end" = 99': "lies outside its text",
        "UPDATE vectors SET vector = x'00'": "not of the model's width",
    },
    "postgresql": {
        "UPDATE passages SET sentences = '{{0,99,1,0,99}}'": "lies outside its text",
        "UPDATE vectors SET vector = '[1]'": "not of the model's width",
        "DELETE FROM lexicon WHERE passage = 2": "passage 2 is read, but is not in the full-text",
    },
}
LEFT_OUT = {"sqlite": (INDEX,), "postgresql": ()}  # by one who does not write


@pytest.fixture(params=sorted(ENGINES))
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def opened(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    """Opens the same small memory again and again, as other processes would."""
    server = engine == "postgresql"
    place = request.getfixturevalue("new_address")() if server else tmp_path / "memory.db"
    stores: list[Store] = []

    def again() -> Store:
        stores.append(ENGINES[engine](place))
        return stores[-1]

    texts = ("The cat sat.", "A dog ran.")
    passages = [Passage(one, None, (Sentence(0, len(one), 1, 0, len(one)),)) for one in texts]
    with (first := again()).writing(), first.change():
        first.set_model(Model("tests", "0", 4))
        marks = without_keys(numpy.ones((2, 4), numpy.float32))
        first.add(Draft("one", "text", "one"), zip(passages, marks))
    yield again
    for store in stores:
        store.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A memory in a file that nobody has open."""
    with Memory(tmp_path / "memory.db", embedder="hashed-ngrams") as memory:
        memory.note("The contract ends on 30 June.")
        memory.note("The milk is in the kitchen.")
    return tmp_path / "memory.db"


def execute(store: Store, statement: str) -> None:
    store.connection.raw.execute(statement)  # type: ignore[attr-defined]


def only_read(patch: pytest.MonkeyPatch) -> None:
    """As for a user who may write neither file nor folder; root may write every one."""
    patch.setattr("mnemic.store.sqlite.connection.os.access", lambda *_: False)


def test_check_sees_what_is_wrong(opened: Opened, engine: str) -> None:
    """Break each table and index by hand."""
    store = opened()
    for harm, said in (HARMS | OWN_HARMS[engine]).items():
        execute(store, "BEGIN")
        execute(store, harm)
        assert said in " ".join(check(store).faults), harm
        execute(store, "ROLLBACK")
    assert check(store) == Checked()


def test_beside_a_writer(opened: Opened, engine: str) -> None:
    """Its half-made change is not seen; what is wrong is, and what was left out is told."""
    writer, store = opened(), opened()
    with writer.writing():
        with writer.change():
            execute(writer, "DELETE FROM vectors")
            found = check(store)
            assert (found.faults, found.left_out) == ((), LEFT_OUT[engine])
            assert ("another process" in found.why) == bool(found.left_out)
        execute(writer, "UPDATE passages SET number = 7 WHERE id = 2")
        faults = " ".join(check(store).faults)
    assert "2 passages have no vector" in faults
    assert "not numbered from 0" in faults


def test_one_state_is_looked_at(
    opened: Opened, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process drops all vectors in the middle of it."""
    store, writer = opened(), opened()
    model = store.model()

    def meanwhile() -> Model | None:
        with writer.writing(), writer.change():
            writer.set_model(Model("other", "1", 2))
        return model

    monkeypatch.setattr(store, "model", meanwhile)
    assert store.check() == Checked((), LEFT_OUT[engine])
    monkeypatch.undo()
    assert store.check().faults == ("2 passages have no vector; `mnemic reindex` makes them",)


def test_a_read_only_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is looked at and left as it is, and nothing is made beside it."""
    files = sorted(path.parent.iterdir())
    before = sha256(path.read_bytes()).hexdigest()
    only_read(monkeypatch)
    with Memory(path, reader=None) as memory:
        why = f"{path} is read-only; reading it still works"
        assert memory.check() == Checked((), (INDEX,), why)
    assert sha256(path.read_bytes()).hexdigest() == before
    assert sorted(path.parent.iterdir()) == files


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        ("DELETE FROM vectors WHERE passage = 1", "1 passages have no vector"),
        ("DELETE FROM documents WHERE id = 2", "belongs to something in documents"),
        ("", "damaged"),
    ],
)
def test_what_is_wrong_with_a_read_only_file(
    path: Path, harm: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if harm:
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute(harm)
        connection.close()
    else:  # a page is overwritten
        content = bytearray(path.read_bytes())
        pages = range(4096, len(content), 4096)
        place = next(at for at in pages if b"milk" in content[at : at + 4096])
        content[place : place + 100] = bytes(100)
        path.write_bytes(content)
    only_read(monkeypatch)
    with Memory(path, reader=None) as memory:
        assert said in " ".join(memory.check().faults)


def test_what_was_forgotten_can_only_be_cleared_by_a_writer(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One was killed between erasing and clearing."""
    with Memory(path, reader=None) as memory, memory.store.writing(), memory.store.change():
        memory.store.erase([2])
    with monkeypatch.context() as patch, Memory(path, reader=None) as memory:
        only_read(patch)
        assert memory.check().left_out == (INDEX, CLEARING)
    with Memory(path, reader=None) as memory:
        assert memory.check() == Checked()
        assert memory.store.remains([b"kitchen"]) == []


def test_a_read_only_file_that_its_owner_writes(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read then may be half old and half new: that is no fault of the memory."""
    with monkeypatch.context() as patch:
        only_read(patch)
        reader = Memory(path, reader=None)
        assert reader.check().faults == ()
    with Memory(path, reader=None) as owner:
        owner.note("A third one. " * 500)
    with reader, pytest.raises(StoreError, match="was written by another process"):
        reader.check()
    assert reader.check() == Checked()  # it was opened again


@pytest.mark.parametrize("kind", ["database", "user"])
def test_a_server_that_lets_only_read(kind: str, new_address: Callable[[], str]) -> None:
    where = new_address()
    schema = f"mnemic_{where.partition('#')[2]}"
    with Memory(where, embedder="hashed-ngrams", reader=None) as memory:
        memory.note("The milk is in the kitchen.")
        if kind == "user":
            for statement in (
                "CREATE ROLE onlooker LOGIN",
                f"GRANT USAGE ON SCHEMA {schema} TO onlooker",
                f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO onlooker",
            ):
                execute(memory.store, statement)
            own, said = where.replace("postgres@", "onlooker@"), "this user may only read it"
        else:
            option = "&options=-cdefault_transaction_read_only%3Don#"
            own, said = where.replace("#", option), "the database is read-only"
        with Memory(own, reader=None) as reader:
            with pytest.raises(StoreError, match=said):
                reader.note("New.")
            assert reader.check() == Checked()
            execute(memory.store, "INSERT INTO facts VALUES ('remains', '3')")
            found = reader.check()
            assert (found.faults, found.left_out) == ((), (CLEARING,))
            assert said in found.why
            execute(memory.store, "DELETE FROM vectors")
            assert "1 passages have no vector" in " ".join(reader.check().faults)
