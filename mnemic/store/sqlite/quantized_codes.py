"""A quick first look at a large memory: every slot's vector rounded to whole numbers of 8 bits.

Looking at all of a million such codes takes a few hundredths of a second, where the products are
done by ``numkong``; the best are then weighed again by their exact vectors. Nothing is left out and
nothing has to be built up, as a graph of neighbours would have to be.

Shapes: n slots, d width.
"""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.util import find_spec
from os import cpu_count
from typing import NamedTuple

import numpy
from numpy.typing import NDArray

from mnemic.store.contract import Vectors
from mnemic.store.sqlite.vectors import Block

LARGEST = 127  # of a code
THREADS = 4  # at most; more would wait for the memory of the machine
PART = 50_000  # slots that are worth a thread
STRETCH = 256  # neighbouring slots whose best one is looked at first


class Codes(NamedTuple):
    """Slots in rising order, with their vectors as whole numbers and the size of one step."""

    slots: NDArray[numpy.int64]  # n
    steps: NDArray[numpy.float32]  # n
    rows: NDArray[numpy.int8]  # n d


@cache
def available() -> bool:
    return find_spec("numkong") is not None


def rounded(vectors: Vectors) -> tuple[NDArray[numpy.float32], NDArray[numpy.int8]]:
    """Vectors (n d) as steps (n) and whole numbers (n d): about ``step * number``."""
    steps = numpy.abs(vectors).max(axis=1, initial=1e-12) / LARGEST
    return steps.astype(numpy.float32), numpy.rint(vectors / steps[:, None]).astype(numpy.int8)


def codes_of(blocks: Iterable[Block], count: int, width: int) -> Codes:
    """The codes of ``count`` slots, written into place as their vectors pass by."""
    codes = Codes(
        numpy.empty(count, numpy.int64),
        numpy.empty(count, numpy.float32),
        numpy.empty((count, width), numpy.int8),
    )
    end = 0
    for block in blocks:
        start, end = end, end + len(block.slots)
        codes.slots[start:end] = block.slots
        codes.steps[start:end], codes.rows[start:end] = rounded(block.vectors)
    assert end == count, "the table was read in one state"
    return codes


def products(codes: Codes, vector: Vectors) -> Vectors:
    """About how large each slot's product with the vector (d) is: n."""
    import numkong

    if not (count := len(codes.slots)):
        return numpy.zeros(0, numpy.float32)
    (step,), query = rounded(vector[None])
    threads = max(min(THREADS, cpu_count() or 1, count // PART), 1)
    ends = [count * number // threads for number in range(threads + 1)]
    found = numpy.empty(count, numpy.float32)

    def work(start: int, end: int) -> None:
        whole = numkong.cdist(query, codes.rows[start:end], "dot", out_dtype="float32")
        numpy.multiply(numpy.asarray(whole)[0], codes.steps[start:end], out=found[start:end])

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, ends[:-1], ends[1:]))
    found *= step
    return found


def best_of_many(scores: Vectors, most: int) -> NDArray[numpy.int64]:
    """Where the largest scores are, in any order; as ``dense.best_of``, but quick for millions.

    The ``most``-th largest of the peaks of all stretches is a bar that at least ``most`` scores
    reach; only those that do are sorted.
    """
    whole = len(scores) // STRETCH * STRETCH
    peaks = scores[:whole].reshape(-1, STRETCH).max(axis=1)
    if len(peaks) < most:
        chosen = numpy.arange(len(scores))
    else:
        bar = numpy.partition(peaks, len(peaks) - most)[len(peaks) - most]
        chosen = numpy.flatnonzero(scores >= bar)
    if len(chosen) <= most:
        return chosen
    return chosen[numpy.argpartition(scores[chosen], len(chosen) - most)[-most:]]
