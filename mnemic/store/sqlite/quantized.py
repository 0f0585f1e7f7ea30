"""Vector search in a large SQLite memory: quantized first, then exact.

The fast first pass compares the query with vectors of 8 bits per number. With ``numkong``, a
million of them take a few hundredths of a second; exact vectors then rescore the best. Every vector
is compared, and no index has to be built, as a graph of neighbors would.

Quantized vectors are cached in a file beside the memory: a page with one line of JSON, then slot
ids, scales and codes as raw arrays. It is written to a temporary file, synced and renamed; reading
it verifies its SHA-256, and an invalid file is ignored. The memory has a *stamp*, which changes
whenever vectors are replaced, dropped or erased; a cache with another stamp is not used. Other
changes leave the cache valid: new slots have higher ids than all before and are searched in a
second segment, and retired slots drop out when the exact vectors are fetched.

Shapes: n slots, d embedding width.
"""

import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from secrets import token_hex
from threading import Lock
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

from mnemic.files import list_temporaries, replace_file
from mnemic.store.contract import NearestSlots, ScoredSlot, StoreError, Vectors
from mnemic.store.retrieve.sentence_keys import STORED_DTYPE, quantize_vectors, unpack_vectors
from mnemic.store.sqlite.connection import SQLiteConnection
from mnemic.store.sqlite.locks import lock_writer
from mnemic.store.sqlite.vectors import (
    SlotsState,
    count_vectors,
    fill_arrays,
    read_slots_state,
    read_vector_blocks,
    select_top_k,
)

MIN_SLOTS = 50_000  # exact search is fast enough for fewer slots
OVERSAMPLING = 2  # exact products are computed for this multiple of the limit
REBUILD_RATIO = 8  # quantize again when one slot in this many is new or retired
MAX_THREADS = 4  # more would wait for the memory bandwidth
MIN_SLOTS_PER_THREAD = 50_000  # fewer are not worth a thread
PEAK_BLOCK = 256  # neighboring slots whose maximum is compared first
CACHE_VERSION = 1
HEADER_BYTES = 4096  # of the cache, before the first array
SELECT_STAMP = "SELECT value FROM facts WHERE name = 'vectors'"


class QuantizedVectors(NamedTuple):
    """Slot ids in ascending order, with 8-bit vectors and one scale per vector."""

    slot_ids: NDArray[numpy.int64]  # n
    scales: NDArray[numpy.float32]  # n
    codes: NDArray[numpy.int8]  # n d


@cache
def has_numkong() -> bool:
    """Return whether ``numkong`` is installed."""
    return find_spec("numkong") is not None


def allocate_quantized(count: int, width: int) -> QuantizedVectors:
    """Allocate the arrays of ``count`` vectors."""
    return QuantizedVectors(
        numpy.empty(count, numpy.int64), numpy.empty(count, numpy.float32), numpy.empty((count, width), numpy.int8)
    )


def quantize_slots(connection: SQLiteConnection, width: int, after: int = 0) -> QuantizedVectors:
    """Quantize the vectors of slots with ids above ``after``, in one snapshot."""
    quantized = allocate_quantized(count_vectors(connection, after), width)
    blocks = read_vector_blocks(connection, width, after)
    fill_arrays(quantized, ((slot_ids, *quantize_vectors(vectors)) for slot_ids, vectors in blocks))
    return quantized


def score_quantized(quantized: QuantizedVectors, vector: Vectors) -> Vectors:
    """Return the approximate products of all slots with a vector (d): n."""
    import numkong

    if not (count := len(quantized.slot_ids)):
        return numpy.zeros(0, numpy.float32)
    (query_scale,), query_codes = quantize_vectors(vector[None])
    threads = max(min(MAX_THREADS, os.cpu_count() or 1, count // MIN_SLOTS_PER_THREAD), 1)
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
        return select_top_k(scores, top_k)
    threshold = numpy.partition(peaks, len(peaks) - top_k)[len(peaks) - top_k]
    positions = numpy.flatnonzero(scores >= threshold)
    return positions[select_top_k(scores[positions], top_k)]


def write_quantized(path: Path, quantized: QuantizedVectors, stamp: str) -> None:
    """Write a cache that is valid while the memory has this stamp."""
    with replace_file(path) as file:
        file.write(bytes(HEADER_BYTES))
        digest = sha256()
        for array in quantized:
            digest.update(view_bytes(array))
            file.write(view_bytes(array))
        count, width = quantized.codes.shape
        header = {"version": CACHE_VERSION, "stamp": stamp, "count": count, "width": width}
        file.seek(0)
        file.write(json.dumps(header | {"sha256": digest.hexdigest()}).encode("ascii"))


def read_quantized(path: Path, stamp: str, width: int) -> QuantizedVectors | None:
    """Read a cache; return None if it is damaged or has another stamp."""
    try:
        with path.open("rb") as file:
            header = dict(json.loads(file.read(HEADER_BYTES).rstrip(b"\0")))
            count, digest = int(header.pop("count")), header.pop("sha256")
            if count < 1 or header != {"version": CACHE_VERSION, "stamp": stamp, "width": width}:
                return None
            if os.fstat(file.fileno()).st_size != HEADER_BYTES + count * (8 + 4 + width):
                return None
            quantized, actual_digest = allocate_quantized(count, width), sha256()
            for array in quantized:
                file.readinto(view_bytes(array))
                actual_digest.update(view_bytes(array))
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return quantized if actual_digest.hexdigest() == digest else None


def view_bytes(array: NDArray[Any]) -> memoryview:
    """Return a view of the bytes of an array."""
    return array.reshape(-1).view(numpy.uint8).data


def renew_stamp(connection: SQLiteConnection) -> str:
    """Set a new random stamp and return it."""
    stamp = token_hex(16)
    connection.execute("INSERT OR REPLACE INTO facts VALUES ('vectors', ?)", (stamp,))
    return stamp


class QuantizedIndex:
    """Quantized vectors for all threads: a cached segment, and one of newer slots."""

    def __init__(self, memory: Path) -> None:
        self.lock = Lock()
        self.path = memory.with_name(f"{memory.name}-codes")
        self.reset()

    def reset(self) -> None:
        """Forget the quantized vectors in memory."""
        self.state: SlotsState | None = None  # at the last refresh
        self.needs_saving = False  # the first segment was quantized here
        self.stamp: str | None = None
        self.segments: list[QuantizedVectors] = []  # that of the cache, and one of newer slots

    def is_usable(self, connection: SQLiteConnection, num_slots: int) -> bool:
        """Return whether to use the index: a large memory, outside a transaction.

        A transaction may be rolled back; the index holds committed vectors only.
        """
        return num_slots >= MIN_SLOTS and has_numkong() and not connection.in_transaction

    def list_files(self) -> list[Path]:
        """Return the paths of the cache and of temporary files that killed writers left."""
        return [self.path, self.path.with_name(f"{self.path.name}.new"), *list_temporaries(self.path)]

    def delete(self) -> None:
        """Delete the quantized vectors in memory, the cache, and what a killed writer left."""
        with self.lock:
            self.reset()
            for path in self.list_files():
                path.unlink(missing_ok=True)

    def search(
        self, connection: SQLiteConnection, vector: Vectors, limit: int, selected: NDArray[numpy.int64] | None = None
    ) -> NearestSlots:
        """Find the slots with the largest exact products; estimate mean and deviation.

        ``selected`` are the ids of the slots to compare, all by default.
        """
        segments = self.update_segments(connection, len(vector))
        scores = numpy.concatenate([score_quantized(segment, vector) for segment in segments])
        slot_ids = numpy.concatenate([segment.slot_ids for segment in segments])
        if selected is not None:
            is_selected = numpy.isin(slot_ids, selected, assume_unique=True)
            scores, slot_ids = scores[is_selected], slot_ids[is_selected]
        if not len(scores):
            return NearestSlots([], 0.0, 0.0)
        num_candidates = OVERSAMPLING * limit
        while True:
            positions = select_top_k_of_many(scores, num_candidates)
            blobs = connection.fetch_blobs("vector", "vectors", slot_ids[positions].tolist())
            exact_scores = dict(zip(blobs, (unpack_vectors([*blobs.values()], len(vector)) @ vector).tolist()))
            if len(exact_scores) >= limit or num_candidates >= len(scores):
                break
            num_candidates *= OVERSAMPLING  # many of the best are retired
        order = sorted(exact_scores, key=lambda slot_id: (-exact_scores[slot_id], slot_id))[:limit]
        scored_slots = [ScoredSlot(slot_id, exact_scores[slot_id]) for slot_id in order]
        mean = float(scores.mean())
        scores -= mean
        return NearestSlots(scored_slots, mean, float(scores @ scores / len(scores)) ** 0.5)

    def update_segments(self, connection: SQLiteConnection, width: int) -> list[QuantizedVectors]:
        """Return the segments of the memory as this connection sees it."""
        with self.lock:
            if self.state != read_slots_state(connection):
                self.refresh(connection, width)
            if self.needs_saving and not connection.raw.in_transaction:  # a snapshot cannot write
                self.save_cache(connection)
            return self.segments

    def refresh(self, connection: SQLiteConnection, width: int) -> None:
        """Bring the segments up to date with the memory; load or rebuild the cache."""
        with connection.snapshot():
            state = read_slots_state(connection)
            if not self.segments or state.stamp != self.stamp:
                cached = read_quantized(self.path, state.stamp, width) if state.stamp else None
                self.segments = [] if cached is None else [cached]
            if self.segments:
                self.add_new_slots(connection, width)
            num_quantized = sum(len(segment.slot_ids) for segment in self.segments)
            num_new = num_quantized - len(self.segments[0].slot_ids) if self.segments else state.num_slots
            is_stale = max(num_new, num_quantized - state.num_slots) * REBUILD_RATIO > state.num_slots
            if is_stale:
                self.segments = [quantize_slots(connection, width)]
        self.state, self.stamp = state, state.stamp
        self.needs_saving = self.needs_saving or is_stale

    def add_new_slots(self, connection: SQLiteConnection, width: int) -> None:
        """Quantize the slots that are newer than all segments."""
        last_slot_id = max((int(segment.slot_ids[-1]) for segment in self.segments if len(segment.slot_ids)), default=0)
        new_segment = quantize_slots(connection, width, last_slot_id)
        if len(new_segment.slot_ids):
            newer = [*self.segments[1:], new_segment]
            joined = QuantizedVectors(*(numpy.concatenate(arrays) for arrays in zip(*newer)))
            self.segments = [self.segments[0], joined]

    def save_cache(self, connection: SQLiteConnection) -> None:
        """Write the cache for the next process, unless another one is writing."""
        self.needs_saving = False
        if not connection.writable or not len(self.segments[0].slot_ids) or self.state is None:
            return
        can_fail = suppress(StoreError, OSError)  # another process writes, or the disk is full
        with can_fail, lock_writer(connection.path, 0, any_owner=connection.is_foreign), connection.transaction():
            if connection.fetch_value(SELECT_STAMP) == self.stamp:
                stamp = renew_stamp(connection)
                write_quantized(self.path, self.segments[0], stamp)
                self.state, self.stamp = self.state._replace(stamp=stamp), stamp


def find_quantized(connection: SQLiteConnection, traces: Sequence[bytes]) -> set[bytes]:
    """Return the traces that occur in the quantized vectors of active slots."""
    quantized_traces = set[bytes]()
    for rows in connection.fetch_blocks("SELECT vector FROM vectors"):
        vectors = unpack_vectors([row[0] for row in rows], len(rows[0][0]) // STORED_DTYPE.itemsize)
        codes = quantize_vectors(vectors)[1].tobytes()
        quantized_traces |= {trace for trace in traces if trace in codes}
    return quantized_traces
