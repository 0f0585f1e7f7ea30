"""What the PostgreSQL engine writes into its tables and reads, as the contract's values."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from mnemic.store.contract import Counts, Document, Passages, Slot
from mnemic.store.postgres.bm25 import INSERT, words_in
from mnemic.store.postgres.connection import Connection, Values
from mnemic.store.postgres.vectors import give
from mnemic.store.sqlite.rows import as_document
from mnemic.text.documents import Passage, Sentence

AT_ONCE = 256  # rows
DOCUMENT = """
    SELECT id, digest, kind, title, notes, previous, remembered, retired, passages, characters,
        (SELECT coalesce(json_agg(path), '[]')::text FROM places WHERE document = documents.id)
    FROM documents
"""
CHAIN = """
    WITH RECURSIVE older (id) AS (
        SELECT %(own)s::bigint UNION
        SELECT previous FROM documents JOIN older USING (id) WHERE previous IS NOT NULL
    ), newer (id) AS (
        SELECT %(own)s::bigint UNION
        SELECT documents.id FROM documents JOIN newer ON previous = newer.id
    )
    SELECT id FROM older UNION SELECT id FROM newer ORDER BY 1
"""
SLOT = "SELECT id, document, number, page, text, sentences FROM passages"
PASSAGES = """
    INSERT INTO passages (document, number, page, text, sentences)
    SELECT %s, number, page, text, sentences::bigint[]
    FROM unnest(%s::bigint[], %s::bigint[], %s::text[], %s::text[])
        AS given (number, page, text, sentences)
    ORDER BY number RETURNING id
"""
COUNTS = """
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


def insert_document(connection: Connection, values: Sequence[Any]) -> int:
    """digest, kind, title, notes, previous, remembered → the document's id."""
    sql = (
        "INSERT INTO documents (digest, kind, title, notes, previous, remembered) "
        "VALUES (%s, %s, %s, %s, %s, %s) RETURNING id"
    )
    return int(connection.value(sql, values))


def insert_passages(connection: Connection, document: int, passages: Passages) -> None:
    """Passages behind those that are there, into the table and into both indexes."""
    first = connection.value("SELECT passages FROM documents WHERE id = %s", (document,))
    rest, count, characters = iter(passages), 0, 0
    while pairs := list(islice(rest, AT_ONCE)):
        own = [passage for passage, _ in pairs]
        texts = [passage.text for passage in own]
        numbers = list(range(first + count, first + count + len(own)))
        told = [as_array(passage.sentences) for passage in own]
        values = (document, numbers, [passage.page for passage in own], texts, told)
        slots = [slot for (slot,) in connection.rows(PASSAGES, values)]
        connection.execute(INSERT, (slots, [words_in(text) for text in texts]))
        give(connection, [(slot, own) for slot, (_, own) in zip(slots, pairs) if own is not None])
        count, characters = count + len(own), characters + sum(map(len, texts))
    connection.execute(
        "UPDATE documents SET passages = passages + %s, characters = characters + %s WHERE id = %s",
        (count, characters, document),
    )


def as_array(sentences: Sequence[Sentence]) -> str:
    """Sentences as PostgreSQL reads an array of rows."""
    return "{" + ",".join("{" + ",".join(map(str, one)) + "}" for one in sentences) + "}"


def unindex(connection: Connection, document: int) -> None:
    """Take a document's passages out of the full-text index and drop their vectors."""
    for table in ("lexicon", "vectors"):
        own = "(SELECT id FROM passages WHERE document = %s)"
        connection.execute(f"DELETE FROM {table} WHERE passage IN {own}", (document,))


def read_documents(connection: Connection, where: str, values: Values) -> list[Document]:
    return [as_document(row) for row in connection.rows(f"{DOCUMENT} {where}", values)]


def read_slots(connection: Connection, where: str, values: Values) -> list[Slot]:
    """The passages that ``where`` chooses, with their sentences."""
    return [
        Slot(slot, document, number, Passage(text, page, tuple(Sentence(*one) for one in told)))
        for slot, document, number, page, text, told in connection.rows(f"{SLOT} {where}", values)
    ]


def paged(connection: Connection, sql: str, first: Any) -> Iterator[tuple[Any, ...]]:
    """All rows by their first column, a few hundred at a time: no statement is open meanwhile."""
    last = first
    while rows := connection.rows(f"{sql} LIMIT {AT_ONCE}", (last,)):
        yield from rows
        last = rows[-1][0]


def count(connection: Connection) -> Counts:
    """How much there is."""
    (row,) = connection.rows(COUNTS, (f'"{connection.address.schema}"',))
    return Counts(*row)
