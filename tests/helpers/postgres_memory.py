"""A small memory on the PostgreSQL server, and what somebody else does in its database."""

from collections.abc import Callable, Iterator

import pytest

from mnemic import Memory
from mnemic.text.documents import Passage, Sentence

NewAddress = Callable[[], str]


def passages(texts: list[str]) -> Iterator[tuple[Passage, None]]:
    for text in texts:
        yield Passage(text, None, (Sentence(0, len(text), 1, 0, len(text)),)), None


@pytest.fixture
def address(new_address: NewAddress) -> str:
    """A small memory that nobody has open."""
    location = new_address()
    with Memory(location, embedder="hashed-ngrams") as memory:
        memory.note("The contract ends on 30 June.")
        memory.note("The milk is in the kitchen.")
    return location


def execute(where: str, *statements: str) -> list[tuple[object, ...]]:
    """As somebody else would, in the schema of a memory; what the last statement finds."""
    import psycopg

    url, _, name = where.partition("#")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"SET search_path = mnemic_{name or 'default'}, public")
        for statement in statements:
            done = connection.execute(statement)  # type: ignore[call-overload]
        return done.fetchall() if done.description else []
