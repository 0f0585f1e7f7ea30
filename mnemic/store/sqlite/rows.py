"""What the SQLite engine reads from its tables, as the contract's values."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from mnemic.store.contract import Counts, Document, Slot
from mnemic.store.sqlite.connection import Connection
from mnemic.text.documents import Passage, Sentence

DOCUMENT = """
    SELECT id, digest, kind, title, notes, previous, remembered, retired, passages, characters,
        (SELECT json_group_array(path) FROM places WHERE document = documents.id)
    FROM documents
"""
CHAIN = """
    WITH RECURSIVE older (id) AS (
        SELECT ?1 UNION
        SELECT previous FROM documents JOIN older USING (id) WHERE previous IS NOT NULL
    ), newer (id) AS (
        SELECT ?1 UNION SELECT documents.id FROM documents JOIN newer ON previous = newer.id
    )
    SELECT id FROM older UNION SELECT id FROM newer ORDER BY 1
"""
READ = "(SELECT id FROM documents WHERE retired IS NULL)"


def as_document(row: tuple[Any, ...]) -> Document:
    """A row of ``DOCUMENT``."""
    *known, notes, previous, remembered, retired, passages, characters, places = row
    told, paths = tuple(json.loads(notes)), tuple(sorted(json.loads(places)))
    times = (previous, remembered, retired)
    return Document._make((*known, told, *times, passages, characters, paths))


def chain(connection: Connection, document: int) -> list[int]:
    """A document with what it superseded and what superseded it, the oldest first."""
    return [row[0] for row in connection.rows(CHAIN, (document,))]


def read_slots(connection: Connection, where: str, value: Any) -> Iterator[Slot]:
    """The passages that ``where`` chooses, with their sentences."""
    sql = f"SELECT id, document, number, page, text FROM passages {where}"
    for block in connection.blocks(sql, (value,)):
        wanted = json.dumps([row[0] for row in block])
        inside: dict[int, list[Sentence]] = {row[0]: [] for row in block}
        for passage, *sentence in connection.rows(
            "SELECT * FROM sentences WHERE passage IN (SELECT value FROM json_each(?)) "
            "ORDER BY passage, start",
            (wanted,),
        ):
            inside[passage].append(Sentence(*sentence))
        for slot, document, number, page, text in block:
            yield Slot(slot, document, number, Passage(text, page, tuple(inside[slot])))


def count(connection: Connection, size: int) -> Counts:
    """How much there is; ``size`` is that of the files."""
    one = connection.value
    passages = f"SELECT id FROM passages WHERE document IN {READ}"
    return Counts(
        documents=one("SELECT count(*) FROM documents WHERE retired IS NULL"),
        retired=one("SELECT count(*) FROM documents WHERE retired IS NOT NULL"),
        places=one("SELECT count(*) FROM places"),
        passages=one(f"SELECT count(*) FROM ({passages})"),
        sentences=one(f"SELECT count(*) FROM sentences WHERE passage IN ({passages})"),
        vectors=one("SELECT count(*) FROM vectors"),
        keyed=one("SELECT count(*) FROM keys"),
        bytes=size,
    )


def now() -> str:
    """The time, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")
