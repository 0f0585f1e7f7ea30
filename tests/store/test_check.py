"""Checks of a memory by a writer and by a reader, in both engines."""

import sqlite3
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import numpy
import pytest

from mnemic import Memory
from mnemic.store import ENGINES, CheckReport, Store, StoreError
from mnemic.store.contract import Draft, EmbeddingModel
from mnemic.store.ingest.check import SCRUB_CHECK, check_store
from mnemic.store.retrieve.sentence_keys import without_sentence_vectors
from mnemic.store.sqlite.check import INDEX_CHECK
from mnemic.text.documents import Passage, Sentence

Opened = Callable[[], Store]
HARMS = {
    "DELETE FROM vectors WHERE passage = 1": "1 passages have no vector",
    "UPDATE passages SET text = 'other words' WHERE id = 2": "does not agree with the texts",
    "UPDATE passages SET number = 7 WHERE id = 2": "not numbered from 0",
    "UPDATE documents SET retired = 'then'": "is in the full-text index, but is not active",
}
OWN_HARMS = {
    "sqlite": {
        'UPDATE sentences SET "end" = 99': "lies outside its text",
        "INSERT INTO boxes VALUES (1, 0, 5, 0, 5, 9)": "a box of passage 1 lies outside its page",
        "UPDATE vectors SET vector = x'00'": "not of the model's width",
    },
    "postgresql": {
        "UPDATE passages SET sentences = '{{0,99,1,0,99}}'": "lies outside its text",
        "UPDATE passages SET boxes = '{{5,0,5,9}}' WHERE id = 1": "a box of passage 1 lies outside its page",
        "UPDATE vectors SET vector = '[1]'": "not of the model's width",
        "DELETE FROM lexicon WHERE passage = 2": "passage 2 is active, but is not in the full-text",
    },
}
LEFT_OUT = {"sqlite": (INDEX_CHECK,), "postgresql": ()}  # by one who does not write


@pytest.fixture(params=sorted(ENGINES))
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def opened(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    """Opens the same small memory again and again, as other processes would."""
    server = engine == "postgresql"
    location = request.getfixturevalue("new_address")() if server else tmp_path / "memory.db"
    stores: list[Store] = []

    def again() -> Store:
        stores.append(ENGINES[engine](location))
        return stores[-1]

    texts = ("The cat sat.", "A dog ran.")
    passages = [Passage(text, None, (Sentence(0, len(text), 1, 0, len(text)),)) for text in texts]
    with (first := again()).write_session(), first.transaction():
        first.set_model(EmbeddingModel("tests", "0", 4))
        embeddings = without_sentence_vectors(numpy.ones((2, 4), numpy.float32))
        first.add_document(Draft("one", "text", "one"), zip(passages, embeddings))
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
    """Pretend that the user may write neither file nor folder, as root always may."""
    patch.setattr("mnemic.store.sqlite.connection.os.access", lambda *_: False)


def test_check_sees_what_is_wrong(opened: Opened, engine: str) -> None:
    """Break each table and index by hand."""
    store = opened()
    for harm, message in (HARMS | OWN_HARMS[engine]).items():
        execute(store, "BEGIN")
        execute(store, harm)
        assert message in " ".join(check_store(store).faults), harm
        execute(store, "ROLLBACK")
    assert check_store(store) == CheckReport()


def test_beside_a_writer(opened: Opened, engine: str) -> None:
    """An open transaction is not seen; faults and skipped checks are reported."""
    writer, store = opened(), opened()
    with writer.write_session():
        with writer.transaction():
            execute(writer, "DELETE FROM vectors")
            report = check_store(store)
            assert (report.faults, report.left_out) == ((), LEFT_OUT[engine])
            assert ("another process" in report.why) == bool(report.left_out)
        execute(writer, "UPDATE passages SET number = 7 WHERE id = 2")
        faults = " ".join(check_store(store).faults)
    assert "2 passages have no vector" in faults
    assert "not numbered from 0" in faults


def test_one_state_is_looked_at(opened: Opened, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process drops all vectors in the middle of it."""
    store, writer = opened(), opened()
    model = store.get_model()

    def meanwhile() -> EmbeddingModel | None:
        with writer.write_session(), writer.transaction():
            writer.set_model(EmbeddingModel("other", "1", 2))
        return model

    monkeypatch.setattr(store, "get_model", meanwhile)
    assert store.check() == CheckReport((), LEFT_OUT[engine])
    monkeypatch.undo()
    assert store.check().faults == ("2 passages have no vector; `mnemic reindex` makes them",)


def test_a_read_only_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is looked at and left as it is, and nothing is made beside it."""
    files = sorted(path.parent.iterdir())
    before = sha256(path.read_bytes()).hexdigest()
    only_read(monkeypatch)
    with Memory(path, reader=None) as memory:
        reason = f"{path} is read-only; reading it still works"
        assert memory.check() == CheckReport((), (INDEX_CHECK,), reason)
    assert sha256(path.read_bytes()).hexdigest() == before
    assert sorted(path.parent.iterdir()) == files


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        ("DELETE FROM vectors WHERE passage = 1", "1 passages have no vector"),
        ("DELETE FROM documents WHERE id = 2", "refers to a row of documents"),
        ("", "damaged"),
    ],
)
def test_what_is_wrong_with_a_read_only_file(
    path: Path, harm: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if harm:
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute(harm)
        connection.close()
    else:  # a page is overwritten
        content = bytearray(path.read_bytes())
        pages = range(4096, len(content), 4096)
        position = next(at for at in pages if b"milk" in content[at : at + 4096])
        content[position : position + 100] = bytes(100)
        path.write_bytes(content)
    only_read(monkeypatch)
    with Memory(path, reader=None) as memory:
        assert message in " ".join(memory.check().faults)


def test_what_was_forgotten_can_only_be_cleared_by_a_writer(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One was killed between erasing and clearing."""
    with Memory(path, reader=None) as memory, memory.store.write_session(), memory.store.transaction():
        memory.store.erase_documents([2])
    with monkeypatch.context() as patch, Memory(path, reader=None) as memory:
        only_read(patch)
        assert memory.check().left_out == (INDEX_CHECK, SCRUB_CHECK)
    with Memory(path, reader=None) as memory:
        assert memory.check() == CheckReport()
        assert memory.store.find_traces([b"kitchen"]) == []


def test_a_read_only_file_that_its_owner_writes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader may have read old and new pages: an error, not a fault."""
    with monkeypatch.context() as patch:
        only_read(patch)
        reader = Memory(path, reader=None)
        assert reader.check().faults == ()
    with Memory(path, reader=None) as owner:
        owner.note("A third one. " * 500)
    with reader, pytest.raises(StoreError, match="was written by another process"):
        reader.check()
    assert reader.check() == CheckReport()  # it was opened again


@pytest.mark.parametrize("kind", ["database", "user"])
def test_a_server_that_lets_only_read(kind: str, new_address: Callable[[], str]) -> None:
    address = new_address()
    schema = f"mnemic_{address.partition('#')[2]}"
    with Memory(address, embedder="hashed-ngrams", reader=None) as memory:
        memory.note("The milk is in the kitchen.")
        if kind == "user":
            for statement in (
                "CREATE ROLE onlooker LOGIN",
                f"GRANT USAGE ON SCHEMA {schema} TO onlooker",
                f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO onlooker",
            ):
                execute(memory.store, statement)
            reader_address, message = (address.replace("postgres@", "onlooker@"), "this user may only read it")
        else:
            option = "&options=-cdefault_transaction_read_only%3Don#"
            reader_address, message = address.replace("#", option), "the database is read-only"
        with Memory(reader_address, reader=None) as reader:
            with pytest.raises(StoreError, match=message):
                reader.note("New.")
            assert reader.check() == CheckReport()
            execute(memory.store, "INSERT INTO facts VALUES ('remains', '3')")
            report = reader.check()
            assert (report.faults, report.left_out) == ((), (SCRUB_CHECK,))
            assert message in report.why
            execute(memory.store, "DELETE FROM vectors")
            assert "1 passages have no vector" in " ".join(reader.check().faults)
