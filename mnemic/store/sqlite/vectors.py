"""Vectors in SQLite: write, read, and search exactly, block by block.

Shapes: n slots, d embedding width.
"""

from collections.abc import Iterable, Iterator, Sequence
from threading import Lock
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

from mnemic.store.contract import NearestSlots, PassageEmbedding, ScoredSlot, Vectors
from mnemic.store.retrieve.sentence_keys import pack_sentence_vectors, pack_vector, unpack_vectors
from mnemic.store.sqlite.connection import SQLiteConnection

SELECT_SLOTS_STATE = "SELECT (SELECT value FROM facts WHERE name = 'vectors'), count(*), max(id) FROM lexicon_docsize"
SELECT_DOCUMENT_VECTORS = (
    "SELECT passage, vector FROM vectors JOIN passages ON passages.id = passage WHERE document {} ORDER BY passage"
)
MAX_FETCHED_SLOTS = 5000  # of a filter: fewer are fetched, of more the others are left out
MAX_CACHE_BYTES = 1_000_000_000  # vectors that stay in memory between two searches


class SlotsState(NamedTuple):
    """Values of which one changes whenever active slots or their vectors do.

    Ids of slots are never given twice, and what replaces vectors renews the stamp of ``quantized``.
    """

    stamp: str | None
    num_slots: int  # that are active
    last_id: int | None


class VectorBlock(NamedTuple):
    """A block of slots with their vectors."""

    slot_ids: NDArray[numpy.int64]  # n
    vectors: Vectors  # n d


def read_slots_state(connection: SQLiteConnection) -> SlotsState:
    """Return the state of the active slots, cached until the file changes."""
    return SlotsState(*connection.fetch_unchanged(SELECT_SLOTS_STATE))


def write_embeddings(connection: SQLiteConnection, pairs: Iterable[tuple[int, PassageEmbedding]]) -> None:
    """Insert or replace the embeddings of slots."""
    for slot_id, (vector, sentence_vectors) in pairs:
        connection.execute("INSERT OR REPLACE INTO vectors VALUES (?, ?)", (slot_id, pack_vector(vector)))
        row = (slot_id, pack_sentence_vectors(sentence_vectors))
        connection.execute("INSERT OR REPLACE INTO keys VALUES (?, ?)", row)


def read_vector_blocks(connection: SQLiteConnection, width: int, after: int = 0) -> Iterator[VectorBlock]:
    """Yield blocks of slots with their vectors, in ascending order of ids."""
    sql = "SELECT passage, vector FROM vectors WHERE passage > ? ORDER BY passage"
    for rows in connection.fetch_blocks(sql, (after,)):
        yield unpack_block(rows, width)


def unpack_block(rows: Sequence[tuple[int, bytes]], width: int) -> VectorBlock:
    """Unpack rows of slot ids and stored vectors."""
    slot_ids, stored = zip(*rows)
    return VectorBlock(numpy.array(slot_ids, numpy.int64), unpack_vectors(stored, width))


def search_documents(
    connection: SQLiteConnection, vector: Vectors, limit: int, document_ids: Sequence[int]
) -> NearestSlots:
    """Find the nearest slots of some documents, whose vectors alone are read."""
    select = SELECT_DOCUMENT_VECTORS.format(connection.in_ids)
    blocks = connection.fetch_blocks(select, (connection.pack_ids(document_ids),))
    return search_blocks((unpack_block(rows, len(vector)) for rows in blocks), vector, limit)


def list_slot_ids(connection: SQLiteConnection, document_ids: Sequence[int]) -> NDArray[numpy.int64]:
    """Return the ids of the slots of documents, in ascending order."""
    select = f"SELECT id FROM passages WHERE document {connection.in_ids} ORDER BY id"
    return numpy.array(connection.fetch_all(select, (connection.pack_ids(document_ids),)), numpy.int64).reshape(-1)


def select_slots(blocks: Iterable[VectorBlock], slot_ids: NDArray[numpy.int64] | None) -> Iterator[VectorBlock]:
    """Yield the blocks with the vectors of these slots only; None: of all."""
    for block in blocks:
        if slot_ids is None:
            yield block
        else:
            is_selected = numpy.isin(block.slot_ids, slot_ids, assume_unique=True)
            yield VectorBlock(block.slot_ids[is_selected], block.vectors[is_selected])


def count_vectors(connection: SQLiteConnection, after: int = 0) -> int:
    """Return the number of vectors of slots with ids above ``after``."""
    return connection.fetch_value("SELECT count(*) FROM vectors WHERE passage > ?", (after,))


def search_blocks(blocks: Iterable[VectorBlock], vector: Vectors, limit: int) -> NearestSlots:
    """Find the slots with the largest products; compute mean and deviation of all."""
    slot_ids: list[NDArray[numpy.int64]] = [numpy.zeros(0, numpy.int64)]
    scores: list[Vectors] = [numpy.zeros(0, numpy.float32)]
    count, total, squares = 0, 0.0, 0.0
    for block in blocks:
        products = block.vectors @ vector  # n
        count, total = count + len(products), total + float(products.sum(dtype=numpy.float64))
        squares += float((products.astype(numpy.float64) ** 2).sum())
        positions = select_top_k(products, limit)
        slot_ids.append(block.slot_ids[positions])
        scores.append(products[positions])
    all_scores, all_slot_ids = numpy.concatenate(scores), numpy.concatenate(slot_ids)
    order = numpy.lexsort((all_slot_ids, -all_scores))[:limit]  # of equal scores, the older slot first
    mean = total / max(count, 1)
    std = max(squares / max(count, 1) - mean**2, 0.0) ** 0.5
    best = [ScoredSlot(int(all_slot_ids[position]), float(all_scores[position])) for position in order]
    return NearestSlots(best, mean, std)


def select_top_k(scores: Vectors, top_k: int) -> NDArray[numpy.int64]:
    """Return the positions of the ``top_k`` largest scores, unordered."""
    if len(scores) <= top_k:
        return numpy.arange(len(scores))
    return numpy.argpartition(scores, len(scores) - top_k)[-top_k:]


class VectorCache:
    """A cache of all vectors for all threads, valid while the table does not change."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.state: object = None  # of the table when it was read
        self.block: VectorBlock | None = None

    def load_blocks(self, connection: SQLiteConnection, state: object, width: int) -> Iterable[VectorBlock]:
        """Return all vectors: cached ones of this ``state``, else those of the table.

        ``state`` is None within a transaction, which may be rolled back.
        """
        blocks = read_vector_blocks(connection, width)
        if state is None:
            return blocks
        with self.lock:
            if self.block is None or state != self.state:
                self.block = None  # free the old vectors before the new ones are read
                count = count_vectors(connection)
                if count * width * numpy.dtype(numpy.float32).itemsize > MAX_CACHE_BYTES:
                    return blocks
                joined = VectorBlock(numpy.empty(count, numpy.int64), numpy.empty((count, width), numpy.float32))
                fill_arrays(joined, blocks)  # one product is faster than many
                self.state, self.block = state, joined
            return [self.block]


def fill_arrays(arrays: Sequence[NDArray[Any]], blocks: Iterable[Sequence[NDArray[Any]]]) -> None:
    """Fill arrays with blocks of their rows, one after another."""
    end = 0
    for block in blocks:
        start, end = end, end + len(block[0])
        for array, rows in zip(arrays, block):
            array[start:end] = rows
    assert end == len(arrays[0]), "the table was read in one snapshot"
