"""The nearest slots of a large memory in SQLite: codes first, then exact vectors of the best.

Codes are kept in a cache beside the memory. The memory bears a *stamp*, which is another whenever
vectors were replaced, all dropped or erased; a cache of another stamp is not used. What else can
happen leaves a cache good: new slots have higher numbers than all before and are looked at beside
it, and one that is no longer read falls out when the exact vectors are fetched.

Shapes: n slots, d width.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

import numpy

from mnemic.store.contract import Nearest, Scored, StoreError, Vectors
from mnemic.store.sqlite.connection import Connection
from mnemic.store.sqlite.embeddings import rows_of
from mnemic.store.sqlite.lock import sole_writer
from mnemic.store.sqlite.quantized_codes import (
    Codes,
    available,
    best_of_many,
    codes_of,
    products,
    rounded,
)
from mnemic.store.sqlite.quantized_file import beside, drop_codes, read_codes, write_codes
from mnemic.store.sqlite.vectors import STORED, Block, unpack

FROM = 50_000  # slots; fewer are quick enough by exact products alone
WIDER = 2  # of what is wanted, so much is weighed exactly
WORN = 8  # codes are made anew when one slot in so many is not among them, or no longer read
STAMP = "SELECT value FROM facts WHERE name = 'vectors'"


def renew(connection: Connection) -> str:
    """Give the memory another stamp."""
    stamp = token_hex(16)
    connection.execute("INSERT OR REPLACE INTO facts VALUES ('vectors', ?)", (stamp,))
    return stamp


def vector_blocks(connection: Connection, width: int, after: int = 0) -> Iterator[Block]:
    """The slots with a vector, in rising order."""
    sql = "SELECT passage, vector FROM vectors WHERE passage > ? ORDER BY passage"
    for rows in connection.blocks(sql, (after,)):
        numbers = numpy.array([row[0] for row in rows], numpy.int64)
        yield Block(numbers, unpack((row[1] for row in rows), width))


def vector_count(connection: Connection, after: int = 0) -> int:
    return connection.value("SELECT count(*) FROM vectors WHERE passage > ?", (after,))


class Large:
    """Codes of a memory as it was, and of what came since."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.path = connection.path.with_name(f"{connection.path.name}-codes")
        self.forget()

    def forget(self) -> None:
        self.state: object = None  # of the memory when it was last looked at
        self.stamp: str | None = None
        self.parts: list[Codes] = []  # those of the cache, and of newer slots

    def suits(self, slots: int) -> bool:
        """Not within a change, which may yet be taken back: codes hold what is there for good."""
        return slots >= FROM and available() and not self.connection.raw.in_transaction

    def files(self) -> list[Path]:
        return [self.path, beside(self.path)]

    def drop(self) -> None:
        """Remove the cache, and what is known of it."""
        self.forget()
        drop_codes(self.path)

    def nearest(self, vector: Vectors, most: int, live: int) -> Nearest:
        """The slots with the largest products, exactly; their mean and deviation, about."""
        if self.state != self.connection.state():
            self.refresh(len(vector), live)
        scores = numpy.concatenate([products(part, vector) for part in self.parts])
        if not len(scores):
            return Nearest([], 0.0, 0.0)
        wanted = WIDER * most
        best = self.exact(self.numbers(best_of_many(scores, wanted)), vector)
        while len(best) < most and wanted < len(scores):  # many of the best are no longer read
            wanted *= WIDER
            best = self.exact(self.numbers(best_of_many(scores, wanted)), vector)
        order = sorted(best, key=lambda slot: (-best[slot], slot))[:most]
        found = [Scored(slot, best[slot]) for slot in order]
        mean = float(scores.mean())
        scores -= mean
        return Nearest(found, mean, float(scores @ scores / len(scores)) ** 0.5)

    def numbers(self, places: numpy.ndarray) -> list[int]:
        """The slots at these places of all parts."""
        found, start = list[int](), 0
        for part in self.parts:
            inside = places[(places >= start) & (places < start + len(part.slots))]
            found += part.slots[inside - start].tolist()
            start += len(part.slots)
        return found

    def exact(self, numbers: list[int], vector: Vectors) -> dict[int, float]:
        """The products of those of these slots that are read."""
        found = rows_of(self.connection, "vectors", numbers)
        scores = unpack(found.values(), len(vector)) @ vector
        return dict(zip(found, scores.tolist()))

    def coded(self, traces: Sequence[bytes]) -> set[bytes]:
        """Those of these byte strings that are codes of slots that are read."""
        found = set[bytes]()
        for rows in self.connection.blocks("SELECT vector FROM vectors"):
            vectors = unpack((row[0] for row in rows), len(rows[0][0]) // STORED.itemsize)
            codes = rounded(vectors)[1].tobytes()
            found |= {trace for trace in traces if trace in codes}
        return found

    def refresh(self, width: int, live: int) -> None:
        """Learn what has changed since the last time."""
        with self.connection.snapshot():
            stamp = self.connection.value(STAMP)
            version, _ = self.connection.state()
            if not self.parts or stamp != self.stamp:
                self.forget()
                cached = read_codes(self.path, stamp, width) if stamp else None
                self.parts = [] if cached is None else [cached]
            if self.parts:
                self.follow(width)
            known = sum(len(part.slots) for part in self.parts)
            newer = known - len(self.parts[0].slots) if self.parts else live
            stale = max(newer, known - live) * WORN > live
            if stale:
                self.parts = [self.code(width, 0)]
        self.stamp = stamp
        if stale:
            self.save()
        self.state = (version, self.connection.raw.total_changes)

    def follow(self, width: int) -> None:
        """Take in the slots that came since."""
        last = max((int(part.slots[-1]) for part in self.parts if len(part.slots)), default=0)
        fresh = self.code(width, last)
        if len(fresh.slots):
            newer = [*self.parts[1:], fresh]
            joined = Codes(*(numpy.concatenate(arrays) for arrays in zip(*newer)))
            self.parts = [self.parts[0], joined]

    def code(self, width: int, after: int) -> Codes:
        blocks = vector_blocks(self.connection, width, after)
        return codes_of(blocks, vector_count(self.connection, after), width)

    def save(self) -> None:
        """Keep the codes for the next process, if nobody is writing; it is only a cache."""
        if not self.connection.writable or not len(self.parts[0].slots):
            return
        try:
            with sole_writer(self.connection.path, patience=0), self.connection.transaction():
                if self.connection.value(STAMP) == self.stamp:
                    stamp = renew(self.connection)
                    write_codes(self.path, self.parts[0], stamp)
                    self.stamp = stamp
        except (StoreError, OSError):  # another one writes, or the disk is full
            with suppress(OSError):
                beside(self.path).unlink(missing_ok=True)
