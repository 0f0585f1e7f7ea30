"""Exact search among vectors that lie in a table: every slot is looked at, in blocks.

Shapes: n slots, d width.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy
from numpy.typing import NDArray

from mnemic.store.contract import Nearest, Scored, Vectors

STORED = numpy.dtype("<f2")  # as they lie on the disk: half the room, the same neighbours
KEPT = 1_000_000_000  # bytes of vectors that are kept in memory between two searches


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
    """Vectors that stay in memory as long as the table is as it was, if they fit."""

    def __init__(self) -> None:
        self.state: object = None  # of the table when it was read
        self.block: Block | None = None

    def read(
        self, state: object, width: int, count: Callable[[], int], fresh: Iterable[Block]
    ) -> Iterable[Block]:
        """All vectors: those that were read in this ``state``, else ``fresh`` ones.

        No state: a change is under way, which may yet be taken back.
        """
        if self.block is not None and state is not None and state == self.state:
            return [self.block]
        self.state = self.block = None  # before the new ones are made: there is room for one
        slots = count()
        if slots * width * numpy.dtype(numpy.float32).itemsize > KEPT:
            return fresh
        self.state, self.block = state, whole(fresh, slots, width)
        return [self.block]


def whole(blocks: Iterable[Block], count: int, width: int) -> Block:
    """The same as one block, written into place: one product is quicker than many."""
    found = Block(numpy.empty(count, numpy.int64), numpy.empty((count, width), numpy.float32))
    end = 0
    for block in blocks:
        start, end = end, end + len(block.slots)
        found.slots[start:end], found.vectors[start:end] = block
    assert end == count, "the table was read in one state"
    return found
