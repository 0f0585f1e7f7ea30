"""Insert documents and passages into the SQLite tables, and remove them from the indexes."""

from collections.abc import Sequence
from typing import Any

from mnemic.store.contract import EmbeddedPassages
from mnemic.store.retrieve.query_words import segment_chinese
from mnemic.store.sqlite.connection import SQLiteConnection
from mnemic.store.sqlite.embeddings import write_embeddings


def insert_document(connection: SQLiteConnection, values: Sequence[Any]) -> int:
    """Insert a document and return its id.

    ``values``: digest, kind, title, notes, previous, remembered, retired.
    """
    cursor = connection.execute(
        "INSERT INTO documents (digest, kind, title, notes, previous, remembered, retired) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        values,
    )
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def insert_passages(connection: SQLiteConnection, document_id: int, passages: EmbeddedPassages) -> None:
    """Append passages to a document, with its full-text and vector indexes."""
    run, count, characters = connection.execute, 0, 0
    first = connection.fetch_value("SELECT passages FROM documents WHERE id = ?", (document_id,))
    for passage, embedding in passages:
        words = segment_chinese(passage.text)
        slot_id = run(
            "INSERT INTO passages (document, number, page, text, words) VALUES (?, ?, ?, ?, ?)",
            (document_id, first + count, passage.page, passage.text, words),
        ).lastrowid
        connection.execute_many(
            "INSERT INTO sentences VALUES (?, ?, ?, ?, ?, ?)", [(slot_id, *sentence) for sentence in passage.sentences]
        )
        run("INSERT INTO lexicon (rowid, words) VALUES (?, ?)", (slot_id, words or passage.text))
        if embedding is not None and slot_id is not None:
            write_embeddings(connection, [(slot_id, embedding)])
        count, characters = count + 1, characters + len(passage.text)
    run(
        "UPDATE documents SET passages = passages + ?, characters = characters + ? WHERE id = ?",
        (count, characters, document_id),
    )


def unindex_document(connection: SQLiteConnection, document_id: int) -> None:
    """Remove the passages of a document from the full-text index, and their vectors.

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
