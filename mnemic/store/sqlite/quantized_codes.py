"""Quantize vectors to 8 bits, and compute their products with a query.

This is the fast first pass of a search. With ``numkong``, a million vectors take a few hundredths
of a second; exact vectors then rescore the best. Every vector is compared, and no index has to be
built, as a graph of neighbors would.

Shapes: n slots, d embedding width.
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
from mnemic.store.sqlite.vectors import VectorBlock

MAX_CODE = 127  # largest absolute value of a code
MAX_THREADS = 4  # more would wait for the memory bandwidth
MIN_SLOTS_PER_THREAD = 50_000  # fewer are not worth a thread
PEAK_BLOCK = 256  # neighboring slots whose maximum is compared first


class QuantizedVectors(NamedTuple):
    """Slot ids in ascending order, with 8-bit vectors and one scale per vector."""

    slot_ids: NDArray[numpy.int64]  # n
    scales: NDArray[numpy.float32]  # n
    codes: NDArray[numpy.int8]  # n d


@cache
def has_numkong() -> bool:
    """Return whether ``numkong`` is installed."""
    return find_spec("numkong") is not None


def quantize_vectors(vectors: Vectors) -> tuple[NDArray[numpy.float32], NDArray[numpy.int8]]:
    """Quantize vectors (n d) to scales (n) and 8-bit codes (n d).

    A vector is about ``scale * codes``.
    """
    scales = numpy.abs(vectors).max(axis=1, initial=1e-12) / MAX_CODE
    return scales.astype(numpy.float32), numpy.rint(vectors / scales[:, None]).astype(numpy.int8)


def quantize_blocks(blocks: Iterable[VectorBlock], count: int, width: int) -> QuantizedVectors:
    """Quantize blocks of vectors, ``count`` in all, into preallocated arrays."""
    quantized = QuantizedVectors(
        numpy.empty(count, numpy.int64), numpy.empty(count, numpy.float32), numpy.empty((count, width), numpy.int8)
    )
    end = 0
    for block in blocks:
        start, end = end, end + len(block.slot_ids)
        quantized.slot_ids[start:end] = block.slot_ids
        quantized.scales[start:end], quantized.codes[start:end] = quantize_vectors(block.vectors)
    assert end == count, "the table was read in one snapshot"
    return quantized


def score_quantized(quantized: QuantizedVectors, vector: Vectors) -> Vectors:
    """Return the approximate products of all slots with a vector (d): n."""
    import numkong

    if not (count := len(quantized.slot_ids)):
        return numpy.zeros(0, numpy.float32)
    (query_scale,), query_codes = quantize_vectors(vector[None])
    threads = max(min(MAX_THREADS, cpu_count() or 1, count // MIN_SLOTS_PER_THREAD), 1)
    ends = [count * thread // threads for thread in range(threads + 1)]
    products = numpy.empty(count, numpy.float32)

    def score_range(start: int, end: int) -> None:
        products_in_codes = numkong.cdist(query_codes, quantized.codes[start:end], "dot", out_dtype="float32")
        numpy.multiply(numpy.asarray(products_in_codes)[0], quantized.scales[start:end], out=products[start:end])

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(score_range, ends[:-1], ends[1:]))
    products *= query_scale
    return products


def select_top_k_of_many(scores: Vectors, top_k: int) -> NDArray[numpy.int64]:
    """Return the positions of the largest scores, unordered; fast for millions.

    The ``top_k``-th largest of the maxima of all blocks is a threshold that at least ``top_k``
    scores reach; only these are partitioned.
    """
    num_in_blocks = len(scores) // PEAK_BLOCK * PEAK_BLOCK
    peaks = scores[:num_in_blocks].reshape(-1, PEAK_BLOCK).max(axis=1)
    if len(peaks) < top_k:
        positions = numpy.arange(len(scores))
    else:
        threshold = numpy.partition(peaks, len(peaks) - top_k)[len(peaks) - top_k]
        positions = numpy.flatnonzero(scores >= threshold)
    if len(positions) <= top_k:
        return positions
    return positions[numpy.argpartition(scores[positions], len(positions) - top_k)[-top_k:]]
