"""How the SQLite engine writes documents and their passages, and takes them out of the indexes."""

from collections.abc import Sequence
from typing import Any

from mnemic.store.contract import Passages
from mnemic.store.retrieve import query_words as lexical
from mnemic.store.sqlite.connection import Connection
from mnemic.store.sqlite.embeddings import give


def insert_document(connection: Connection, values: Sequence[Any]) -> int:
    """digest, kind, title, notes, previous, remembered, retired → the document's id."""
    done = connection.execute(
        "INSERT INTO documents (digest, kind, title, notes, previous, remembered, retired) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        values,
    )
    assert done.lastrowid is not None
    return done.lastrowid


def insert_passages(connection: Connection, document: int, passages: Passages) -> None:
    """Passages behind those that are there, into the table and into both indexes."""
    run, count, characters = connection.execute, 0, 0
    first = connection.value("SELECT passages FROM documents WHERE id = ?", (document,))
    for passage, own in passages:
        words = lexical.spaced(passage.text)
        slot = run(
            "INSERT INTO passages (document, number, page, text, words) VALUES (?, ?, ?, ?, ?)",
            (document, first + count, passage.page, passage.text, words),
        ).lastrowid
        connection.many(
            "INSERT INTO sentences VALUES (?, ?, ?, ?, ?, ?)",
            [(slot, *sentence) for sentence in passage.sentences],
        )
        run("INSERT INTO lexicon (rowid, words) VALUES (?, ?)", (slot, words or passage.text))
        if own is not None and slot is not None:
            give(connection, [(slot, own)])
        count, characters = count + 1, characters + len(passage.text)
    run(
        "UPDATE documents SET passages = passages + ?, characters = characters + ? WHERE id = ?",
        (count, characters, document),
    )


def unindex(connection: Connection, document: int) -> None:
    """Take a document's passages out of the full-text index and drop their vectors.

    The index must be told the very words it was given; the view has them, while it is read.
    """
    own = "(SELECT id FROM passages WHERE document = ?)"
    connection.execute(
        "INSERT INTO lexicon (lexicon, rowid, words) "
        f"SELECT 'delete', id, words FROM words_read WHERE id IN {own}",
        (document,),
    )
    connection.execute(f"DELETE FROM vectors WHERE passage IN {own}", (document,))
