"""Faults of a PostgreSQL server: each is a clear error with advice."""

import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from postgres_memory import NewAddress, address, execute, passages
from postgres_server import GUARDED

from mnemic import Memory
from mnemic.store import HashedNgrams, StoreError
from mnemic.store.contract import CheckReport, Draft
from mnemic.store.postgres.migrations import SCHEMAS
from mnemic.text.documents import Passage

__all__ = ["address"]  # a fixture


def refused(where: str, message: str) -> None:
    """Neither reading nor writing works, and each says why."""
    with Memory(where, embedder="hashed-ngrams") as memory:
        for verb in (lambda: memory.ask("Where?"), lambda: memory.note("x"), memory.stats):
            with pytest.raises(StoreError, match=message):
                verb()


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    refused(f"postgresql:///x?host={tmp_path}", "no PostgreSQL server answers there; is it running")


def test_a_wrong_password_or_database(postgres: str) -> None:
    execute(postgres, f"CREATE ROLE {GUARDED} LOGIN PASSWORD 'right'")
    folder = postgres.rpartition("=")[2]
    guarded_url = f"postgresql://{GUARDED}:%s@/postgres?host={quote(folder)}#guarded"
    refused(guarded_url % "wrong", "the password is wrong, or none was given")
    refused(guarded_url.replace(":%s", ""), "the password is wrong, or none was given")
    refused(postgres.replace("/postgres?", "/nowhere?"), "the server has no such database")
    execute(postgres, "CREATE EXTENSION IF NOT EXISTS vector")
    with Memory(guarded_url % "right", embedder="none") as memory:
        with pytest.raises(StoreError, match=r"there is no memory .*#guarded; begin one"):
            memory.stats()
        with pytest.raises(StoreError, match="GRANT CREATE ON DATABASE"):
            memory.note("x")
    execute(postgres, f"CREATE SCHEMA mnemic_guarded AUTHORIZATION {GUARDED}")
    with Memory(guarded_url % "right", embedder="none") as memory:  # what its owner made for it will do
        number = memory.note("A secret.")
        with pytest.raises(StoreError, match=r"may not read the server's files.*nothing was chan"):
            memory.forget(number, verify=True)
        assert memory.stats().documents == 1
        done = memory.forget(number)
        assert (done.scrubbed, memory.stats().documents) == (True, 0)
        assert "write-ahead log" in done.unreachable_traces


def test_a_database_without_pgvector(postgres: str) -> None:
    execute(postgres, "CREATE DATABASE bare", "CREATE ROLE plain LOGIN")
    execute(postgres, "GRANT CREATE ON DATABASE bare TO plain")
    bare = postgres.replace("/postgres?", "/bare?")
    memory = Memory(bare.replace("postgres@", "plain@"), embedder="none")
    with memory, pytest.raises(StoreError, match=r"have a superuser run .* CREATE EXTENSION vector"):
        memory.note("x")
    with Memory(bare, embedder="none") as memory:  # a superuser needs to do nothing
        assert memory.note("x") == 1


def test_without_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    refused("postgresql://host/notes", r"needs psycopg: pip install 'mnemic\[postgres\]'")


def test_a_newer_schema_and_one_of_another_program(address: str, new_address: NewAddress) -> None:
    execute(address, f"UPDATE facts SET value = '{len(SCHEMAS) + 1}' WHERE name = 'schema'")
    refused(address, "was written by a newer mnemic .* upgrade mnemic")
    other_address = new_address()
    schema = f"mnemic_{other_address.partition('#')[2]}"
    execute(other_address, f"CREATE SCHEMA {schema}", f"CREATE TABLE {schema}.songs (name text)")
    refused(other_address, "has tables of another program")


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

        expect_lost = pytest.raises(StoreError, match="the connection was lost")
        with expect_lost, memory.store.write_session(), memory.store.transaction():
            memory.store.add_document(Draft("half", "text", "half"), broken())
        assert memory.stats().documents == 2
        assert memory.check() == CheckReport()


def test_another_process_changes_the_embedder(address: str) -> None:
    with Memory(address, reader=None) as memory, Memory(address) as second_memory:
        memory.note("A third one.")
        list(second_memory.reindex(HashedNgrams(width=64)))
        with pytest.raises(StoreError, match=r"gave .* another embedder meanwhile; nothing was"):
            memory.note("A fourth one.")
        assert second_memory.check() == CheckReport()
