"""Make a small memory on a PostgreSQL server, and run SQL in its schema."""

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
    """Make a small memory, closed."""
    location = new_address()
    with Memory(location, embedder="hashed-ngrams") as memory:
        memory.note("The contract ends on 30 June.")
        memory.note("The milk is in the kitchen.")
    return location


def execute(location: str, *statements: str) -> list[tuple[object, ...]]:
    """Execute statements in the schema of a memory; return the last one's rows."""
    import psycopg

    url, _, name = location.partition("#")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"SET search_path = mnemic_{name or 'default'}, public")
        for statement in statements:
            cursor = connection.execute(statement)  # type: ignore[call-overload]
        return cursor.fetchall() if cursor.description else []
