"""Write and read passages in the PostgreSQL tables, as values of ``contract``."""

from collections.abc import Sequence
from itertools import islice
from typing import Any

from mnemic.store.connection import BATCH_SIZE
from mnemic.store.contract import EmbeddedPassages, MemorySlot
from mnemic.store.postgres.bm25 import INSERT_WORDS, normalize_words
from mnemic.store.postgres.connection import PostgresConnection
from mnemic.store.postgres.vectors import write_embeddings
from mnemic.store.question_keys import QUESTION_INDEX
from mnemic.text.documents import Passage, Sentence
from mnemic.text.documents.boxes import from_units

SELECT_SLOT = "SELECT id, document, number, page, text, sentences, boxes FROM passages"
INSERT_PASSAGES = """
    INSERT INTO passages (document, number, page, text, sentences, boxes)
    SELECT %s, number, page, text, sentences::bigint[], boxes::bigint[]
    FROM unnest(%s::bigint[], %s::bigint[], %s::text[], %s::text[], %s::text[])
        AS given (number, page, text, sentences, boxes)
    ORDER BY number RETURNING id
"""
INSERT_QUESTIONS = """
    INSERT INTO questions
    SELECT passage, text, keys FROM unnest(%s::bigint[], %s::text[], %s::bytea[]) AS given (passage, text, keys)
"""


def insert_passages(
    connection: PostgresConnection, document_id: int, first_number: int, passages: EmbeddedPassages
) -> tuple[int, int]:
    """Insert passages with both indexes; return their number and their characters."""
    rest, number, characters = iter(passages), first_number, 0
    while pairs := list(islice(rest, BATCH_SIZE)):
        batch = [passage for passage, _ in pairs]
        texts = [passage.text for passage in batch]
        numbers = list(range(number, number + len(batch)))
        sentence_arrays = [format_array(passage.sentences) for passage in batch]
        box_arrays = [format_array([box.to_units() for box in passage.boxes]) or None for passage in batch]
        values = (document_id, numbers, [passage.page for passage in batch], texts, sentence_arrays, box_arrays)
        slot_ids = [slot_id for (slot_id,) in connection.fetch_all(INSERT_PASSAGES, values)]
        connection.execute(INSERT_WORDS, (slot_ids, [normalize_words(text) for text in texts]))
        embedded = [(slot_id, embedding) for slot_id, (_, embedding) in zip(slot_ids, pairs) if embedding is not None]
        write_embeddings(connection, embedded)
        number, characters = number + len(batch), characters + sum(map(len, texts))
    return number - first_number, characters


def format_array(rows: Sequence[Sequence[int]]) -> str:
    """Format rows as a literal of a two-dimensional PostgreSQL array; empty without any."""
    return "{" + ",".join("{" + ",".join(map(str, row)) + "}" for row in rows) + "}" if rows else ""


def unindex_document(connection: PostgresConnection, document_id: int) -> None:
    """Remove passages of a document from the indexes, with vectors and questions."""
    for table in ("lexicon", "vectors", "questions"):
        passages = "(SELECT id FROM passages WHERE document = %s)"
        connection.execute(f"DELETE FROM {table} WHERE passage IN {passages}", (document_id,))


def write_questions(connection: PostgresConnection, rows: Sequence[tuple[int, str, bytes | None]]) -> None:
    """Insert or replace the questions of slots, with their packed vectors."""
    slot_ids, texts, packed = map(list, zip(*rows))
    connection.execute("DELETE FROM questions WHERE passage = ANY (%s)", (slot_ids,))
    connection.execute(INSERT_QUESTIONS, (slot_ids, texts, packed))
    indexed = [(slot_id, normalize_words(text)) for slot_id, text in zip(slot_ids, texts) if text]
    words = ([slot_id for slot_id, _ in indexed], [words for _, words in indexed])
    connection.execute(INSERT_WORDS.replace("lexicon", QUESTION_INDEX), words)


def read_slots(connection: PostgresConnection, where: str, values: Sequence[Any]) -> list[MemorySlot]:
    """Return the slots that a WHERE clause selects, with their sentences and boxes."""
    slots = []
    for slot_id, document, number, page, text, rows, boxes in connection.fetch_all(f"{SELECT_SLOT} {where}", values):
        passage = Passage(text, page, tuple(Sentence(*row) for row in rows), tuple(map(from_units, boxes or ())))
        slots.append(MemorySlot(slot_id, document, number, passage))
    return slots
