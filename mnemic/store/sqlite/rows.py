"""Read rows of the SQLite tables as values of ``contract``."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from mnemic.store.contract import Document, MemorySlot, MemoryStats
from mnemic.store.sqlite.connection import SQLiteConnection
from mnemic.text.documents import Passage, Sentence

SELECT_DOCUMENT = """
    SELECT id, digest, kind, title, notes, previous, remembered, retired, passages, characters,
        (SELECT json_group_array(path) FROM places WHERE document = documents.id)
    FROM documents
"""
SELECT_VERSIONS = """
    WITH RECURSIVE older (id) AS (
        SELECT ?1 UNION
        SELECT previous FROM documents JOIN older USING (id) WHERE previous IS NOT NULL
    ), newer (id) AS (
        SELECT ?1 UNION SELECT documents.id FROM documents JOIN newer ON previous = newer.id
    )
    SELECT id FROM older UNION SELECT id FROM newer ORDER BY 1
"""
ACTIVE_DOCUMENTS = "(SELECT id FROM documents WHERE retired IS NULL)"


def parse_document_row(row: tuple[Any, ...]) -> Document:
    """Convert a row of ``SELECT_DOCUMENT`` to a document."""
    *fields, notes, previous, remembered, retired, passages, characters, paths_json = row
    parsed_notes, paths = tuple(json.loads(notes)), tuple(sorted(json.loads(paths_json)))
    dates = (previous, remembered, retired)
    return Document._make((*fields, parsed_notes, *dates, passages, characters, paths))


def list_version_ids(connection: SQLiteConnection, document_id: int) -> list[int]:
    """Return the ids of all versions of a document, the oldest first."""
    return [row[0] for row in connection.fetch_all(SELECT_VERSIONS, (document_id,))]


def read_slots(connection: SQLiteConnection, where: str, value: Any) -> Iterator[MemorySlot]:
    """Yield the slots that a WHERE clause selects, with their sentences."""
    sql = f"SELECT id, document, number, page, text FROM passages {where}"
    for block in connection.fetch_blocks(sql, (value,)):
        slot_ids_json = json.dumps([row[0] for row in block])
        sentences_by_slot: dict[int, list[Sentence]] = {row[0]: [] for row in block}
        for passage, *sentence in connection.fetch_all(
            "SELECT * FROM sentences WHERE passage IN (SELECT value FROM json_each(?)) ORDER BY passage, start",
            (slot_ids_json,),
        ):
            sentences_by_slot[passage].append(Sentence(*sentence))
        for slot_id, document, number, page, text in block:
            yield MemorySlot(slot_id, document, number, Passage(text, page, tuple(sentences_by_slot[slot_id])))


def collect_stats(connection: SQLiteConnection, num_bytes: int) -> MemoryStats:
    """Count the rows of all tables; ``num_bytes`` is the size of the files."""
    fetch_value = connection.fetch_value
    passages = f"SELECT id FROM passages WHERE document IN {ACTIVE_DOCUMENTS}"
    return MemoryStats(
        documents=fetch_value("SELECT count(*) FROM documents WHERE retired IS NULL"),
        retired=fetch_value("SELECT count(*) FROM documents WHERE retired IS NOT NULL"),
        places=fetch_value("SELECT count(*) FROM places"),
        passages=fetch_value(f"SELECT count(*) FROM ({passages})"),
        sentences=fetch_value(f"SELECT count(*) FROM sentences WHERE passage IN ({passages})"),
        vectors=fetch_value("SELECT count(*) FROM vectors"),
        keyed=fetch_value("SELECT count(*) FROM keys"),
        bytes=num_bytes,
    )


def get_utc_time() -> str:
    """Return the current time in UTC, in ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")
