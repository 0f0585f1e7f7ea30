"""What the SQLite engine keeps for slots to be found by: their vectors, and the keys beside them.

Shapes: n slots, d width.
"""

import json
from collections.abc import Iterable, Sequence

import numpy

from mnemic.store.contract import Keys, Marks, Vectors
from mnemic.store.retrieve.sentence_keys import pack_keys, unpack_keys
from mnemic.store.sqlite.connection import Connection
from mnemic.store.sqlite.vectors import pack, unpack

GIVE_VECTOR = "INSERT OR REPLACE INTO vectors VALUES (?, ?)"
GIVE_KEYS = "INSERT OR REPLACE INTO keys VALUES (?, ?)"
READ = "SELECT * FROM {} WHERE passage IN (SELECT value FROM json_each(?))"


def give(connection: Connection, pairs: Iterable[tuple[int, Marks]]) -> None:
    """Store what slots are found by."""
    every = list(pairs)
    connection.many(GIVE_VECTOR, ((slot, pack(own.vector)) for slot, own in every))
    connection.many(GIVE_KEYS, ((slot, pack_keys(own.keys)) for slot, own in every))


def read_vectors(connection: Connection, numbers: Sequence[int], width: int) -> Vectors:
    """The vectors (n d) of these slots; zeros where there is none."""
    found = rows_of(connection, "vectors", numbers)
    nothing = pack(numpy.zeros(width, numpy.float32))
    return unpack((found.get(number, nothing) for number in numbers), width)


def read_keys(connection: Connection, numbers: Sequence[int], width: int) -> Keys:
    """The keys of these slots; none where they are not made."""
    found = rows_of(connection, "keys", numbers)
    return unpack_keys([found.get(number, b"") for number in numbers], width)


def rows_of(connection: Connection, table: str, numbers: Sequence[int]) -> dict[int, bytes]:
    """What a table says of those of these slots that are in it."""
    return dict(connection.rows(READ.format(table), (json.dumps(list(numbers)),)))
