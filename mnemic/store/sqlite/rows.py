"""Write and read passages in the SQLite tables, as values of ``contract``."""

from collections.abc import Sequence
from typing import Any

from mnemic.store.contract import DamageError, EmbeddedPassages, MemorySlot
from mnemic.store.retrieve.query_words import segment_chinese
from mnemic.store.sqlite.connection import SQLiteConnection
from mnemic.store.sqlite.vectors import write_embeddings
from mnemic.text.documents import Box, Passage, Sentence
from mnemic.text.documents.boxes import from_units

INSERT_PASSAGE = "INSERT INTO passages (document, number, page, text, words) VALUES (?, ?, ?, ?, ?)"


def insert_passages(
    connection: SQLiteConnection, document_id: int, first_number: int, passages: EmbeddedPassages
) -> tuple[int, int]:
    """Insert passages with both indexes; return their number and their characters."""
    number, characters = first_number, 0
    for passage, embedding in passages:
        words = segment_chinese(passage.text)
        values = (document_id, number, passage.page, passage.text, words)
        slot_id = connection.insert_row(INSERT_PASSAGE, values)
        for sentence in passage.sentences:
            connection.execute("INSERT INTO sentences VALUES (?, ?, ?, ?, ?, ?)", (slot_id, *sentence))
        for box_number, box in enumerate(passage.boxes):
            connection.execute("INSERT INTO boxes VALUES (?, ?, ?, ?, ?, ?)", (slot_id, box_number, *box.to_units()))
        connection.execute("INSERT INTO lexicon (rowid, words) VALUES (?, ?)", (slot_id, words or passage.text))
        if embedding is not None:
            write_embeddings(connection, [(slot_id, embedding)])
        number, characters = number + 1, characters + len(passage.text)
    return number - first_number, characters


def unindex_document(connection: SQLiteConnection, document_id: int) -> None:
    """Remove passages of a document from the indexes, with vectors and questions.

    FTS5 needs the same words for a deletion as for the insertion; the view ``words_read`` has them
    as long as the document is active.
    """
    passages = "(SELECT id FROM passages WHERE document = ?)"
    connection.execute(
        "INSERT INTO lexicon (lexicon, rowid, words) "
        f"SELECT 'delete', id, words FROM words_read WHERE id IN {passages}",
        (document_id,),
    )
    connection.execute(f"DELETE FROM vectors WHERE passage IN {passages}", (document_id,))
    connection.execute(f"DELETE FROM question_lexicon WHERE rowid IN {passages}", (document_id,))
    connection.execute(f"DELETE FROM questions WHERE passage IN {passages}", (document_id,))


def write_questions(connection: SQLiteConnection, rows: Sequence[tuple[int, str, bytes | None]]) -> None:
    """Insert or replace the questions of slots, with their packed vectors."""
    for slot_id, text, packed in rows:
        connection.execute("INSERT OR REPLACE INTO questions VALUES (?, ?, ?)", (slot_id, text, packed))
        connection.execute("DELETE FROM question_lexicon WHERE rowid = ?", (slot_id,))
        if text:
            words = segment_chinese(text) or text
            connection.execute("INSERT INTO question_lexicon (rowid, words) VALUES (?, ?)", (slot_id, words))


def read_slots(connection: SQLiteConnection, where: str, values: Sequence[Any]) -> list[MemorySlot]:
    """Return the slots that a WHERE clause selects, with their sentences and boxes."""
    rows = connection.fetch_all(f"SELECT id, document, number, page, text FROM passages {where}", values)
    sentences: dict[int, list[Sentence]] = {row[0]: [] for row in rows}
    select_sentences = f"SELECT * FROM sentences WHERE passage {connection.in_ids} ORDER BY passage, start"
    for slot_id, *sentence in connection.fetch_all(select_sentences, (connection.pack_ids(list(sentences)),)):
        if slot_id not in sentences or not all(isinstance(number, int) for number in sentence):
            raise DamageError(f"{connection.location}: a sentence of passage {slot_id}")
        sentences[slot_id].append(Sentence(*sentence))
    for slot_id, document, number, page, text in rows:
        if not isinstance(text, str) or not all(isinstance(value, int) for value in (document, number, page or 0)):
            raise DamageError(f"{connection.location}: passage {slot_id}")
    boxes = read_boxes(connection, list(sentences))
    return [
        MemorySlot(
            slot_id, document, number, Passage(text, page, tuple(sentences[slot_id]), tuple(boxes.get(slot_id, ())))
        )
        for slot_id, document, number, page, text in rows
    ]


def read_boxes(connection: SQLiteConnection, slot_ids: Sequence[int]) -> dict[int, list[Box]]:
    """Return the boxes of slots whose lines have any, in the order of the lines."""
    boxes: dict[int, list[Box]] = {}
    select = f"SELECT passage, x_min, top, x_max, bottom FROM boxes WHERE passage {connection.in_ids}"
    for slot_id, *units in connection.fetch_all(f"{select} ORDER BY passage, number", (connection.pack_ids(slot_ids),)):
        if not all(isinstance(unit, int) for unit in units):
            raise DamageError(f"{connection.location}: a box of passage {slot_id}")
        boxes.setdefault(slot_id, []).append(from_units(units))
    return boxes
