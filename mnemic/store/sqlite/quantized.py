"""Vector search in a large SQLite memory: quantized first, then exact.

Quantized vectors are cached in a file beside the memory. The memory has a *stamp*, which changes
whenever vectors are replaced, dropped or erased; a cache with another stamp is not used. Other
changes leave the cache valid: new slots have higher ids than all before and are searched in a
second segment, and retired slots drop out when the exact vectors are fetched.

Shapes: n slots, d embedding width.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

import numpy

from mnemic.store.contract import NearestSlots, ScoredSlot, StoreError, Vectors
from mnemic.store.sqlite.connection import SQLiteConnection
from mnemic.store.sqlite.embeddings import read_blobs
from mnemic.store.sqlite.lock import lock_writer
from mnemic.store.sqlite.quantized_codes import (
    QuantizedVectors,
    has_numkong,
    quantize_blocks,
    quantize_vectors,
    score_quantized,
    select_top_k_of_many,
)
from mnemic.store.sqlite.quantized_file import delete_cache, read_quantized, temporary_path, write_quantized
from mnemic.store.sqlite.vectors import STORED_DTYPE, VectorBlock, unpack_vectors

MIN_SLOTS = 50_000  # exact search is fast enough for fewer slots
OVERSAMPLING = 2  # exact products are computed for this multiple of the limit
REBUILD_RATIO = 8  # quantize again when one slot in this many is new or retired
SELECT_STAMP = "SELECT value FROM facts WHERE name = 'vectors'"


def renew_stamp(connection: SQLiteConnection) -> str:
    """Set a new random stamp and return it."""
    stamp = token_hex(16)
    connection.execute("INSERT OR REPLACE INTO facts VALUES ('vectors', ?)", (stamp,))
    return stamp


def read_vector_blocks(connection: SQLiteConnection, width: int, after: int = 0) -> Iterator[VectorBlock]:
    """Yield blocks of slots with their vectors, in ascending order of ids."""
    sql = "SELECT passage, vector FROM vectors WHERE passage > ? ORDER BY passage"
    for rows in connection.fetch_blocks(sql, (after,)):
        slot_ids = numpy.array([row[0] for row in rows], numpy.int64)
        yield VectorBlock(slot_ids, unpack_vectors((row[1] for row in rows), width))


def count_vectors(connection: SQLiteConnection, after: int = 0) -> int:
    """Return the number of vectors of slots with ids above ``after``."""
    return connection.fetch_value("SELECT count(*) FROM vectors WHERE passage > ?", (after,))


class QuantizedIndex:
    """Quantized vectors of a memory: the cached segment, and one of newer slots."""

    def __init__(self, connection: SQLiteConnection) -> None:
        self.connection = connection
        self.path = connection.path.with_name(f"{connection.path.name}-codes")
        self.reset()

    def reset(self) -> None:
        """Forget the quantized vectors in memory."""
        self.state: object = None  # change state of the memory at the last refresh
        self.stamp: str | None = None
        self.segments: list[QuantizedVectors] = []  # that of the cache, and one of newer slots

    def is_usable(self, num_slots: int) -> bool:
        """Return whether to use the index: a large memory, outside a transaction.

        A transaction may be rolled back; the index holds committed vectors only.
        """
        return num_slots >= MIN_SLOTS and has_numkong() and not self.connection.raw.in_transaction

    def list_files(self) -> list[Path]:
        """Return the paths of the cache and of its temporary file."""
        return [self.path, temporary_path(self.path)]

    def delete(self) -> None:
        """Delete the cache file and the quantized vectors in memory."""
        self.reset()
        delete_cache(self.path)

    def search(self, vector: Vectors, limit: int, num_slots: int) -> NearestSlots:
        """Find the slots with the largest exact products; estimate mean and deviation."""
        if self.state != self.connection.read_change_state():
            self.refresh(len(vector), num_slots)
        scores = numpy.concatenate([score_quantized(segment, vector) for segment in self.segments])
        if not len(scores):
            return NearestSlots([], 0.0, 0.0)
        num_candidates = OVERSAMPLING * limit
        exact_scores = self.score_exactly(self.slot_ids_at(select_top_k_of_many(scores, num_candidates)), vector)
        # As long as many of the best are retired:
        while len(exact_scores) < limit and num_candidates < len(scores):
            num_candidates *= OVERSAMPLING
            exact_scores = self.score_exactly(self.slot_ids_at(select_top_k_of_many(scores, num_candidates)), vector)
        order = sorted(exact_scores, key=lambda slot_id: (-exact_scores[slot_id], slot_id))[:limit]
        scored_slots = [ScoredSlot(slot_id, exact_scores[slot_id]) for slot_id in order]
        mean = float(scores.mean())
        scores -= mean
        return NearestSlots(scored_slots, mean, float(scores @ scores / len(scores)) ** 0.5)

    def slot_ids_at(self, positions: numpy.ndarray) -> list[int]:
        """Return the slot ids at positions in the concatenated segments."""
        slot_ids, start = list[int](), 0
        for segment in self.segments:
            inside = positions[(positions >= start) & (positions < start + len(segment.slot_ids))]
            slot_ids += segment.slot_ids[inside - start].tolist()
            start += len(segment.slot_ids)
        return slot_ids

    def score_exactly(self, slot_ids: list[int], vector: Vectors) -> dict[int, float]:
        """Return the exact products of slots, by slot id; retired slots are left out."""
        blobs = read_blobs(self.connection, "vectors", slot_ids)
        scores = unpack_vectors(blobs.values(), len(vector)) @ vector
        return dict(zip(blobs, scores.tolist()))

    def find_quantized(self, traces: Sequence[bytes]) -> set[bytes]:
        """Return the traces that occur in the quantized vectors of active slots."""
        quantized_traces = set[bytes]()
        for rows in self.connection.fetch_blocks("SELECT vector FROM vectors"):
            vectors = unpack_vectors((row[0] for row in rows), len(rows[0][0]) // STORED_DTYPE.itemsize)
            codes = quantize_vectors(vectors)[1].tobytes()
            quantized_traces |= {trace for trace in traces if trace in codes}
        return quantized_traces

    def refresh(self, width: int, num_slots: int) -> None:
        """Bring the segments up to date with the memory; load or rebuild the cache."""
        with self.connection.snapshot():
            stamp = self.connection.fetch_value(SELECT_STAMP)
            version, _ = self.connection.read_change_state()
            if not self.segments or stamp != self.stamp:
                self.reset()
                cached = read_quantized(self.path, stamp, width) if stamp else None
                self.segments = [] if cached is None else [cached]
            if self.segments:
                self.add_new_slots(width)
            num_quantized = sum(len(segment.slot_ids) for segment in self.segments)
            num_new = num_quantized - len(self.segments[0].slot_ids) if self.segments else num_slots
            is_stale = max(num_new, num_quantized - num_slots) * REBUILD_RATIO > num_slots
            if is_stale:
                self.segments = [self.quantize_slots(width, 0)]
        self.stamp = stamp
        if is_stale:
            self.save_cache()
        self.state = (version, self.connection.raw.total_changes)

    def add_new_slots(self, width: int) -> None:
        """Quantize the slots that are newer than all segments."""
        last_slot_id = max((int(segment.slot_ids[-1]) for segment in self.segments if len(segment.slot_ids)), default=0)
        new_segment = self.quantize_slots(width, last_slot_id)
        if len(new_segment.slot_ids):
            newer = [*self.segments[1:], new_segment]
            joined = QuantizedVectors(*(numpy.concatenate(arrays) for arrays in zip(*newer)))
            self.segments = [self.segments[0], joined]

    def quantize_slots(self, width: int, after: int) -> QuantizedVectors:
        """Quantize the vectors of slots with ids above ``after``."""
        blocks = read_vector_blocks(self.connection, width, after)
        return quantize_blocks(blocks, count_vectors(self.connection, after), width)

    def save_cache(self) -> None:
        """Write the cache for the next process, unless another one is writing."""
        if not self.connection.writable or not len(self.segments[0].slot_ids):
            return
        try:
            with lock_writer(self.connection.path, timeout_s=0), self.connection.transaction():
                if self.connection.fetch_value(SELECT_STAMP) == self.stamp:
                    stamp = renew_stamp(self.connection)
                    write_quantized(self.path, self.segments[0], stamp)
                    self.stamp = stamp
        except (StoreError, OSError):  # another process writes, or the disk is full
            with suppress(OSError):
                temporary_path(self.path).unlink(missing_ok=True)
