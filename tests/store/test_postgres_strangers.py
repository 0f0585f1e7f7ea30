"""Schemas on a server that a stranger has planted: none runs code with another's rights."""

from collections.abc import Callable

import pytest
from postgres_memory import NewAddress, address, execute

from mnemic import Memory
from mnemic.store import StoreError
from mnemic.store.postgres.address import parse_address
from mnemic.store.postgres.strangers import TRUSTED_ROLES_VARIABLE

__all__ = ["address"]  # a fixture

AsRole = Callable[[str, str], str]
GRAB = """
    CREATE FUNCTION grab() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO loot VALUES (NEW.text);
        IF current_user = 'postgres' THEN ALTER ROLE eve SUPERUSER; END IF; RETURN NEW; END $$
"""
TRIGGER = "CREATE TRIGGER g AFTER INSERT ON passages FOR EACH ROW EXECUTE FUNCTION grab()"


@pytest.fixture
def as_role(postgres: str) -> AsRole:
    """Return a function that gives the address of a memory to a role."""
    for role in ("eve", "ann"):
        if not execute(postgres, f"SELECT 1 FROM pg_roles WHERE rolname = '{role}'"):
            execute(postgres, f"CREATE ROLE {role} LOGIN")
        execute(postgres, f"GRANT CREATE ON DATABASE postgres TO {role}")
    execute(postgres, "CREATE EXTENSION IF NOT EXISTS vector")
    return lambda location, role: location.replace("postgres@", f"{role}@")


def refuse(location: str, message: str) -> None:
    """Neither reading nor writing works."""
    with Memory(location, embedder="none", reader=None) as memory:
        for verb in (lambda: memory.note("The admin's secret."), memory.memories):
            with pytest.raises(StoreError, match=message):
                verb()


def test_a_planted_memory_makes_nobody_superuser(new_address: NewAddress, as_role: AsRole) -> None:
    location = new_address()
    hers = as_role(location, "eve")
    with Memory(hers, embedder="none", reader=None) as memory:
        memory.note("Nothing to see here.")
    execute(hers, "CREATE TABLE loot (text text)", GRAB, TRIGGER)
    refuse(location, r"the schema mnemic_\w+ belongs to eve, who could run code.*\?trust=eve")
    assert execute(location, "SELECT rolsuper FROM pg_roles WHERE rolname = 'eve'") == [(False,)]
    assert execute(location, "SELECT count(*) FROM loot") == [(0,)]


def test_an_empty_schema_of_a_stranger_is_refused(new_address: NewAddress, as_role: AsRole) -> None:
    """She may plant default rights, and functions that fit better than the server's own."""
    location = new_address()
    schema = f"mnemic_{location.partition('#')[2]}"
    execute(as_role(location, "eve"), f"CREATE SCHEMA {schema}")
    execute(location, f"GRANT ALL ON SCHEMA {schema} TO ann")
    refuse(as_role(location, "ann"), "belongs to eve")
    assert execute(location, f"SELECT 1 FROM pg_class WHERE relnamespace = '{schema}'::regnamespace") == []


@pytest.mark.parametrize(
    "plant",
    [
        "CREATE TABLE loot (text text)",
        "CREATE FUNCTION length(varchar) RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE DOMAIN trap AS text",
        "CREATE VIEW view AS SELECT 1",
    ],
)
def test_a_stranger_in_a_memory_of_ones_own(address: str, as_role: AsRole, plant: str) -> None:
    schema = f"mnemic_{address.partition('#')[2]}"
    execute(address, f"GRANT ALL ON SCHEMA {schema} TO eve")
    execute(as_role(address, "eve"), plant)
    refuse(address, "belongs to eve, who could run code")


@pytest.mark.parametrize(
    "plant", [TRIGGER, "CREATE RULE r AS ON INSERT TO passages DO ALSO UPDATE facts SET value = value"]
)
def test_triggers_and_rules_are_refused_whoever_made_them(address: str, plant: str) -> None:
    execute(address, GRAB, plant)
    refuse(address, "runs code whenever something is written")


def test_a_role_is_trusted_by_name(new_address: NewAddress, as_role: AsRole, monkeypatch: pytest.MonkeyPatch) -> None:
    location = as_role(new_address(), "ann")
    schema = f"mnemic_{location.partition('#')[2]}"
    with Memory(location, embedder="none", reader=None) as memory:
        memory.note("The key is under the mat.")
    execute(location, *(f"GRANT {right} SCHEMA {schema} TO eve" for right in ("USAGE ON", "SELECT ON ALL TABLES IN")))
    reader = location.replace("ann@", "eve@")
    refuse(reader, "belongs to ann")
    with Memory(reader.replace("?", "?trust=ann&"), embedder="none", reader=None) as memory:
        assert memory.ask("Where is the key?").text == "The key is under the mat."
        with pytest.raises(StoreError, match="may only read"):
            memory.note("Two.")
    monkeypatch.setenv(TRUSTED_ROLES_VARIABLE, "bob, ann")
    with Memory(reader, embedder="none", reader=None) as memory:
        assert len(memory.memories()) == 1


@pytest.mark.parametrize(
    ("grant", "message"),
    [
        ("CREATE ON SCHEMA {} TO eve", r"eve has the right CREATE ON SCHEMA mnemic_\w+ .*REVOKE .*\?trust=eve"),
        ("CREATE ON SCHEMA {} TO PUBLIC", r"PUBLIC has the right CREATE ON SCHEMA mnemic_\w+"),
        ("TRIGGER ON passages TO eve", "eve has the right TRIGGER ON passages"),
        ("ALL ON ALL TABLES IN SCHEMA {} TO eve", "eve has the right TRIGGER ON"),
    ],
)
def test_a_right_to_add_code_later(address: str, as_role: AsRole, grant: str, message: str) -> None:
    execute(address, f"GRANT {grant.format('mnemic_' + address.partition('#')[2])}")
    refuse(address, message)


def test_a_role_of_the_session_is_not_the_user(new_address: NewAddress, as_role: AsRole) -> None:
    """Whoever has logged in as somebody else can be that one again: RESET ROLE."""
    location = new_address()
    hers = as_role(location, "eve")
    with Memory(hers, embedder="none", reader=None) as memory:
        memory.note("Nothing to see here.")
    refuse(location.replace("?", "?options=-c%20role%3Deve&"), "belongs to eve")


SHADOW = """
    CREATE FUNCTION public.length(varchar) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE 'hers'; END $$
"""


def test_a_function_that_hides_one_of_the_server(address: str, new_address: NewAddress, as_role: AsRole) -> None:
    """In the schema of pgvector: it is never called, nor if it comes while the memory is used."""
    execute(address, "GRANT CREATE ON SCHEMA public TO eve")
    hers = as_role(address, "eve")
    try:
        with Memory(address, embedder="hashed-ngrams", reader=None) as memory:
            assert len(memory.memories()) == 2
            execute(hers, SHADOW)
            assert memory.store.connection.fetch_value("SELECT length('abc'::varchar)") == 3
            memory.note("The admin's secret.")
            assert memory.search("secret")
            assert memory.check().faults == ()
        with (
            Memory(new_address(), embedder="none", reader=None) as memory,
            pytest.raises(StoreError, match="the function length in the schema public belongs to eve"),
        ):
            memory.note("A table with a type of pgvector is made.")
    finally:
        execute(address, "DROP OWNED BY eve", "REVOKE ALL ON SCHEMA public FROM eve")


def test_names_are_looked_up_in_the_memory_alone(address: str) -> None:
    with Memory(address, reader=None) as memory:
        path = memory.store.connection.fetch_value("SHOW search_path")
    assert path == f'"mnemic_{address.partition("#")[2]}", pg_temp'


def test_trust_is_no_part_of_the_servers_url() -> None:
    parsed = parse_address("postgresql://eve@/notes?trust=ann,bob%20b&host=/tmp#work")
    assert (parsed.url, parsed.trusted_roles) == ("postgresql://eve@/notes?host=/tmp", ("ann", "bob b"))
    assert parse_address("postgresql:///notes?host=/tmp&trust=ann").url == "postgresql:///notes?host=/tmp"
    assert parse_address("postgresql:///notes?trust=ann").url == "postgresql:///notes"
