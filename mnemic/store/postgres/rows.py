"""Write and read rows of the PostgreSQL tables as values of ``contract``."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from mnemic.store.contract import Document, EmbeddedPassages, MemorySlot, MemoryStats
from mnemic.store.postgres.bm25 import INSERT_WORDS, normalize_words
from mnemic.store.postgres.connection import PostgresConnection, Values
from mnemic.store.postgres.vectors import write_embeddings
from mnemic.store.sqlite.rows import parse_document_row
from mnemic.text.documents import Passage, Sentence

BATCH_SIZE = 256  # rows per statement
SELECT_DOCUMENT = """
    SELECT id, digest, kind, title, notes, previous, remembered, retired, passages, characters,
        (SELECT coalesce(json_agg(path), '[]')::text FROM places WHERE document = documents.id)
    FROM documents
"""
SELECT_VERSIONS = """
    WITH RECURSIVE older (id) AS (
        SELECT %(own)s::bigint UNION
        SELECT previous FROM documents JOIN older USING (id) WHERE previous IS NOT NULL
    ), newer (id) AS (
        SELECT %(own)s::bigint UNION
        SELECT documents.id FROM documents JOIN newer ON previous = newer.id
    )
    SELECT id FROM older UNION SELECT id FROM newer ORDER BY 1
"""
SELECT_SLOT = "SELECT id, document, number, page, text, sentences FROM passages"
INSERT_PASSAGES = """
    INSERT INTO passages (document, number, page, text, sentences)
    SELECT %s, number, page, text, sentences::bigint[]
    FROM unnest(%s::bigint[], %s::bigint[], %s::text[], %s::text[])
        AS given (number, page, text, sentences)
    ORDER BY number RETURNING id
"""
SELECT_STATS = """
    SELECT (SELECT count(*) FROM documents WHERE retired IS NULL),
        (SELECT count(*) FROM documents WHERE retired IS NOT NULL),
        (SELECT count(*) FROM places),
        (SELECT count(*) FROM lexicon),
        (SELECT coalesce(sum(array_length(sentences, 1)), 0)::bigint
            FROM passages JOIN lexicon ON passage = id),
        (SELECT count(*) FROM vectors),
        (SELECT count(*) FROM vectors WHERE keys IS NOT NULL),
        (SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class AS c
            WHERE relnamespace = %s::regnamespace AND relkind = 'r')
"""


def insert_document(connection: PostgresConnection, values: Sequence[Any]) -> int:
    """Insert a document and return its id.

    ``values``: digest, kind, title, notes, previous, remembered.
    """
    sql = (
        "INSERT INTO documents (digest, kind, title, notes, previous, remembered) "
        "VALUES (%s, %s, %s, %s, %s, %s) RETURNING id"
    )
    return int(connection.fetch_value(sql, values))


def insert_passages(connection: PostgresConnection, document_id: int, passages: EmbeddedPassages) -> None:
    """Append passages to a document, with its full-text and vector indexes."""
    first = connection.fetch_value("SELECT passages FROM documents WHERE id = %s", (document_id,))
    rest, count, characters = iter(passages), 0, 0
    while pairs := list(islice(rest, BATCH_SIZE)):
        batch = [passage for passage, _ in pairs]
        texts = [passage.text for passage in batch]
        numbers = list(range(first + count, first + count + len(batch)))
        sentence_arrays = [format_array(passage.sentences) for passage in batch]
        values = (document_id, numbers, [passage.page for passage in batch], texts, sentence_arrays)
        slot_ids = [slot_id for (slot_id,) in connection.fetch_all(INSERT_PASSAGES, values)]
        connection.execute(INSERT_WORDS, (slot_ids, [normalize_words(text) for text in texts]))
        write_embeddings(
            connection,
            [(slot_id, embedding) for slot_id, (_, embedding) in zip(slot_ids, pairs) if embedding is not None],
        )
        count, characters = count + len(batch), characters + sum(map(len, texts))
    connection.execute(
        "UPDATE documents SET passages = passages + %s, characters = characters + %s WHERE id = %s",
        (count, characters, document_id),
    )


def format_array(sentences: Sequence[Sentence]) -> str:
    """Format sentences as a literal of a two-dimensional PostgreSQL array."""
    return "{" + ",".join("{" + ",".join(map(str, sentence)) + "}" for sentence in sentences) + "}"


def unindex_document(connection: PostgresConnection, document_id: int) -> None:
    """Remove the passages of a document from the full-text index, and their vectors."""
    for table in ("lexicon", "vectors"):
        passages = "(SELECT id FROM passages WHERE document = %s)"
        connection.execute(f"DELETE FROM {table} WHERE passage IN {passages}", (document_id,))


def read_documents(connection: PostgresConnection, where: str, values: Values) -> list[Document]:
    """Return the documents that a WHERE clause selects."""
    return [parse_document_row(row) for row in connection.fetch_all(f"{SELECT_DOCUMENT} {where}", values)]


def read_slots(connection: PostgresConnection, where: str, values: Values) -> list[MemorySlot]:
    """Return the slots that a WHERE clause selects, with their sentences."""
    return [
        MemorySlot(slot_id, document, number, Passage(text, page, tuple(Sentence(*sentence) for sentence in sentences)))
        for slot_id, document, number, page, text, sentences in connection.fetch_all(f"{SELECT_SLOT} {where}", values)
    ]


def read_pages(connection: PostgresConnection, sql: str, first: Any) -> Iterator[tuple[Any, ...]]:
    """Yield rows page by page, by their first column; no statement stays open."""
    last = first
    while rows := connection.fetch_all(f"{sql} LIMIT {BATCH_SIZE}", (last,)):
        yield from rows
        last = rows[-1][0]


def collect_stats(connection: PostgresConnection) -> MemoryStats:
    """Count the rows of all tables, and their bytes."""
    (row,) = connection.fetch_all(SELECT_STATS, (f'"{connection.address.schema}"',))
    return MemoryStats(*row)
