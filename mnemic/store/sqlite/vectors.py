"""Exact vector search: compare a query with the vectors of all slots, block by block.

Shapes: n slots, d embedding width.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy
from numpy.typing import NDArray

from mnemic.store.contract import NearestSlots, ScoredSlot, Vectors

STORED_DTYPE = numpy.dtype("<f2")  # on disk: half the size, the same neighbors
MAX_CACHE_BYTES = 1_000_000_000  # vectors that stay in memory between two searches


class VectorBlock(NamedTuple):
    """A block of slots with their vectors."""

    slot_ids: NDArray[numpy.int64]  # n
    vectors: Vectors  # n d


def pack_vector(vector: Vectors) -> bytes:
    """Convert a vector to the bytes that are stored."""
    return numpy.asarray(vector, dtype=STORED_DTYPE).tobytes()


def unpack_vectors(stored: Iterable[bytes], width: int) -> Vectors:
    """Convert stored bytes to vectors (n d)."""
    rows = list(stored)
    flat = numpy.frombuffer(b"".join(rows), dtype=STORED_DTYPE)
    return flat.reshape(len(rows), width).astype(numpy.float32)


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
    """A cache of all vectors, valid while the table does not change."""

    def __init__(self) -> None:
        self.state: object = None  # of the table when it was read
        self.block: VectorBlock | None = None

    def load_blocks(
        self, state: object, width: int, count_slots: Callable[[], int], blocks_on_disk: Iterable[VectorBlock]
    ) -> Iterable[VectorBlock]:
        """Return all vectors: cached ones of this ``state``, else ``blocks_on_disk``.

        ``state`` is None within a transaction, which may be rolled back.
        """
        if self.block is not None and state is not None and state == self.state:
            return [self.block]
        self.state = self.block = None  # free the old vectors before the new ones are read
        slots = count_slots()
        if slots * width * numpy.dtype(numpy.float32).itemsize > MAX_CACHE_BYTES:
            return blocks_on_disk
        self.state, self.block = state, join_blocks(blocks_on_disk, slots, width)
        return [self.block]


def join_blocks(blocks: Iterable[VectorBlock], count: int, width: int) -> VectorBlock:
    """Join blocks, ``count`` slots in all, into one: one product is faster than many."""
    joined = VectorBlock(numpy.empty(count, numpy.int64), numpy.empty((count, width), numpy.float32))
    end = 0
    for block in blocks:
        start, end = end, end + len(block.slot_ids)
        joined.slot_ids[start:end], joined.vectors[start:end] = block
    assert end == count, "the table was read in one snapshot"
    return joined
