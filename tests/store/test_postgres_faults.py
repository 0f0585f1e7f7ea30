"""What can happen to a memory on a PostgreSQL server: each a clear error that says what to do."""

import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from postgres_memory import NewAddress, address, execute, passages
from postgres_server import GUARDED

from mnemic import Memory
from mnemic.store import HashedNgrams, StoreError
from mnemic.store.contract import Checked, Draft
from mnemic.store.postgres.migrations import SCHEMAS
from mnemic.text.documents import Passage

__all__ = ["address"]  # a fixture


def refused(where: str, said: str) -> None:
    """Neither reading nor writing works, and each says why."""
    with Memory(where, embedder="hashed-ngrams") as memory:
        for verb in (lambda: memory.ask("Where?"), lambda: memory.note("x"), memory.stats):
            with pytest.raises(StoreError, match=said):
                verb()


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    refused(f"postgresql:///x?host={tmp_path}", "no PostgreSQL server answers there; is it running")


def test_a_wrong_password_or_database(postgres: str) -> None:
    execute(postgres, f"CREATE ROLE {GUARDED} LOGIN PASSWORD 'right'")
    folder = postgres.rpartition("=")[2]
    own = f"postgresql://{GUARDED}:%s@/postgres?host={quote(folder)}#guarded"
    refused(own % "wrong", "the password is wrong, or none was given")
    refused(own.replace(":%s", ""), "the password is wrong, or none was given")
    refused(postgres.replace("/postgres?", "/nowhere?"), "the server has no such database")
    execute(postgres, "CREATE EXTENSION IF NOT EXISTS vector")
    with Memory(own % "right", embedder="none") as memory:
        with pytest.raises(StoreError, match=r"there is no memory .*#guarded; begin one"):
            memory.stats()
        with pytest.raises(StoreError, match="GRANT CREATE ON DATABASE"):
            memory.note("x")
    execute(postgres, f"CREATE SCHEMA mnemic_guarded AUTHORIZATION {GUARDED}")
    with Memory(own % "right", embedder="none") as memory:  # what its owner made for it will do
        number = memory.note("A secret.")
        with pytest.raises(StoreError, match=r"may not read the server's files.*nothing was chan"):
            memory.forget(number, verify=True)
        assert memory.stats().documents == 1
        done = memory.forget(number)
        assert (done.scrubbed, memory.stats().documents) == (True, 0)
        assert "write-ahead log" in done.beyond


def test_a_database_without_pgvector(postgres: str) -> None:
    execute(postgres, "CREATE DATABASE bare", "CREATE ROLE plain LOGIN")
    execute(postgres, "GRANT CREATE ON DATABASE bare TO plain")
    bare = postgres.replace("/postgres?", "/bare?")
    memory = Memory(bare.replace("postgres@", "plain@"), embedder="none")
    with (
        memory,
        pytest.raises(StoreError, match=r"have a superuser run .* CREATE EXTENSION vector"),
    ):
        memory.note("x")
    with Memory(bare, embedder="none") as memory:  # a superuser needs to do nothing
        assert memory.note("x") == 1


def test_without_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    refused("postgresql://host/notes", r"needs psycopg: pip install 'mnemic\[postgres\]'")


def test_a_newer_schema_and_one_of_another_program(address: str, new_address: NewAddress) -> None:
    execute(address, f"UPDATE facts SET value = '{len(SCHEMAS) + 1}' WHERE name = 'schema'")
    refused(address, "was written by a newer mnemic .* upgrade mnemic")
    other = new_address()
    schema = f"mnemic_{other.partition('#')[2]}"
    execute(other, f"CREATE SCHEMA {schema}", f"CREATE TABLE {schema}.songs (name text)")
    refused(other, "has tables of another program")


def test_a_connection_that_is_lost_is_made_again(address: str) -> None:
    end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'mnemic'"
    with Memory(address, reader=None) as memory:
        assert memory.stats().documents == 2
        execute(address, end)
        with pytest.raises(StoreError, match="the connection was lost; what was acknowledged"):
            memory.stats()
        assert memory.ask("Where is the milk?").text == "The milk is in the kitchen."

        def broken() -> Iterator[tuple[Passage, None]]:
            yield from passages(["Half of it."] * 256)
            execute(address, end)
            yield from passages(["The rest."])

        lost = pytest.raises(StoreError, match="the connection was lost")
        with lost, memory.store.writing(), memory.store.change():
            memory.store.add(Draft("half", "text", "half"), broken())
        assert memory.stats().documents == 2
        assert memory.check() == Checked()


def test_another_process_changes_the_embedder(address: str) -> None:
    with Memory(address, reader=None) as memory, Memory(address) as other:
        memory.note("A third one.")
        list(other.reindex(HashedNgrams(width=64)))
        with pytest.raises(StoreError, match=r"gave .* another embedder meanwhile; nothing was"):
            memory.note("A fourth one.")
        assert other.check() == Checked()
