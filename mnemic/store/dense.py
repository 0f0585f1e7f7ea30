"""Exact search among vectors that lie in a table: every slot is looked at, in blocks.

Shapes: n slots, d width.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy
from numpy.typing import NDArray

from mnemic.store.contract import Nearest, Scored, Vectors

STORED = numpy.dtype("<f2")  # as they lie on the disk: half the room, the same neighbours
KEPT = 400_000_000  # bytes of vectors that are kept in memory between two searches


class Block(NamedTuple):
    """Some slots with their vectors."""

    slots: NDArray[numpy.int64]  # n
    vectors: Vectors  # n d


def pack(vector: Vectors) -> bytes:
    """A vector as it is stored."""
    return numpy.asarray(vector, dtype=STORED).tobytes()


def unpack(stored: Iterable[bytes], width: int) -> Vectors:
    """Stored vectors as rows (n d)."""
    rows = list(stored)
    flat = numpy.frombuffer(b"".join(rows), dtype=STORED)
    return flat.reshape(len(rows), width).astype(numpy.float32)


def search(blocks: Iterable[Block], vector: Vectors, most: int) -> Nearest:
    """The slots with the largest products, and mean and deviation of all products."""
    slots: list[NDArray[numpy.int64]] = [numpy.zeros(0, numpy.int64)]
    scores: list[Vectors] = [numpy.zeros(0, numpy.float32)]
    count, total, squares = 0, 0.0, 0.0
    for block in blocks:
        own = block.vectors @ vector  # n
        count, total = count + len(own), total + float(own.sum(dtype=numpy.float64))
        squares += float((own.astype(numpy.float64) ** 2).sum())
        chosen = best_of(own, most)
        slots.append(block.slots[chosen])
        scores.append(own[chosen])
    every, numbers = numpy.concatenate(scores), numpy.concatenate(slots)
    order = numpy.lexsort((numbers, -every))[:most]  # of equal ones the older first
    mean = total / max(count, 1)
    deviation = max(squares / max(count, 1) - mean**2, 0.0) ** 0.5
    best = [Scored(int(numbers[place]), float(every[place])) for place in order]
    return Nearest(best, mean, deviation)


def best_of(scores: Vectors, most: int) -> NDArray[numpy.int64]:
    """Where the largest scores are, in any order."""
    if len(scores) <= most:
        return numpy.arange(len(scores))
    return numpy.argpartition(scores, len(scores) - most)[-most:]


class Kept:
    """Blocks of vectors that stay in memory as long as the table is as it was, if they fit."""

    def __init__(self) -> None:
        self.state: object = None  # of the table when it was read
        self.blocks: list[Block] = []

    def read(self, state: object, fresh: Iterator[Block]) -> Iterator[Block]:
        """The blocks; from memory if they were read in this ``state``, else ``fresh`` ones."""
        if state is not None and state == self.state:
            yield from self.blocks
            return
        self.state, self.blocks = None, []
        kept: list[Block] | None = []
        size = 0
        for block in fresh:
            size += block.vectors.nbytes
            if size > KEPT:
                kept = None
            if kept is not None:
                kept.append(block)
            yield block
        if kept is not None:
            self.state, self.blocks = state, merged(kept)


def merged(blocks: list[Block]) -> list[Block]:
    """The same as one block: one product is quicker than many."""
    if not blocks:
        return []
    slots = numpy.concatenate([block.slots for block in blocks])
    return [Block(slots, numpy.concatenate([block.vectors for block in blocks]))]
