"""Write and read the passage and sentence vectors of slots in SQLite.

Shapes: n slots, d embedding width.
"""

import json
from collections.abc import Iterable, Sequence

import numpy

from mnemic.store.contract import PassageEmbedding, SentenceVectors, Vectors
from mnemic.store.retrieve.sentence_keys import pack_sentence_vectors, unpack_sentence_vectors
from mnemic.store.sqlite.connection import SQLiteConnection
from mnemic.store.sqlite.vectors import pack_vector, unpack_vectors

INSERT_VECTOR = "INSERT OR REPLACE INTO vectors VALUES (?, ?)"
INSERT_SENTENCE_VECTORS = "INSERT OR REPLACE INTO keys VALUES (?, ?)"
SELECT_ROWS = "SELECT * FROM {} WHERE passage IN (SELECT value FROM json_each(?))"


def write_embeddings(connection: SQLiteConnection, pairs: Iterable[tuple[int, PassageEmbedding]]) -> None:
    """Insert or replace the embeddings of slots."""
    rows = list(pairs)
    connection.execute_many(INSERT_VECTOR, ((slot_id, pack_vector(embedding.vector)) for slot_id, embedding in rows))
    connection.execute_many(
        INSERT_SENTENCE_VECTORS,
        ((slot_id, pack_sentence_vectors(embedding.sentence_vectors)) for slot_id, embedding in rows),
    )


def read_vectors(connection: SQLiteConnection, slot_ids: Sequence[int], width: int) -> Vectors:
    """Return the vectors (n d) of slots; zeros for a slot without one."""
    blobs = read_blobs(connection, "vectors", slot_ids)
    zeros = pack_vector(numpy.zeros(width, numpy.float32))
    return unpack_vectors((blobs.get(slot_id, zeros) for slot_id in slot_ids), width)


def read_sentence_vectors(connection: SQLiteConnection, slot_ids: Sequence[int], width: int) -> SentenceVectors:
    """Return the sentence vectors of slots; no rows for a slot without them."""
    blobs = read_blobs(connection, "keys", slot_ids)
    return unpack_sentence_vectors([blobs.get(slot_id, b"") for slot_id in slot_ids], width)


def read_blobs(connection: SQLiteConnection, table: str, slot_ids: Sequence[int]) -> dict[int, bytes]:
    """Return packed vectors by slot id; slots without a row are left out."""
    return dict(connection.fetch_all(SELECT_ROWS.format(table), (json.dumps(list(slot_ids)),)))
