"""The keys of slots: how they lie on the disk, and how near the nearest of them is.

A slot is as near to a question as the nearest of its sentences is. A key is the vector of one of
them, as the network read it within the whole passage; where a passage has no more than one, its
vector is its key.

Stored keys are the rows of a passage one after another, each number in 8 bits (``codes.rounded``).
A key has a length of 1, so that the size of a step is not stored: the row itself tells it.

Shapes: n slots, k keys of all of them, s keys of one, d width.
"""

from collections.abc import Iterable, Sequence

import numpy

from mnemic.store.contract import Keys, Marks, Vectors
from mnemic.store.sqlite.quantized_codes import rounded

CODE = numpy.dtype(numpy.int8)


def without_keys(vectors: Iterable[Vectors]) -> list[Marks]:
    """Texts that are found by their vectors (d each) alone."""
    return [Marks(vector, vector[None][:0]) for vector in vectors]


def pack_keys(keys: Vectors) -> bytes:
    """The keys (s d) of a slot as they are stored; nothing, if its vector says the same."""
    return rounded(keys)[1].tobytes() if len(keys) > 1 else b""


def unpack_keys(stored: Sequence[bytes], width: int) -> Keys:
    """The stored keys of some slots; ``b""`` for one that has none."""
    rows = numpy.frombuffer(b"".join(stored), CODE).reshape(-1, max(width, 1))
    found = rows.astype(numpy.float32)
    lengths = numpy.sqrt(numpy.einsum("kd,kd->k", found, found))
    found /= numpy.maximum(lengths, 1)[:, None]
    counts = [len(own) // max(width, 1) for own in stored]
    return Keys(found, numpy.array(counts, numpy.int64))


def nearest_keys(keys: Keys, vector: Vectors, otherwise: Vectors) -> Vectors:
    """The largest product that any of a slot's keys has with the vector (d); ``otherwise`` (n)
    where there is no key: n."""
    found = otherwise.copy()
    some = keys.counts > 0
    if some.any():
        firsts = numpy.cumsum(keys.counts) - keys.counts
        found[some] = numpy.maximum.reduceat(keys.rows @ vector, firsts[some])
    return found
