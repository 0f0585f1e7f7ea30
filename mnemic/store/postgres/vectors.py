"""Search among vectors on a PostgreSQL server: all of them, or by an index where that pays.

Shapes: n slots, d width.
"""

from collections.abc import Iterable, Sequence

import numpy

from mnemic.store.contract import Keys, Marks, Nearest, Scored, StoreError, Vectors
from mnemic.store.postgres.connection import Connection
from mnemic.store.retrieve.sentence_keys import pack_keys, unpack_keys
from mnemic.store.sqlite.vectors import STORED

# Vectors from which on there is an index (HNSW, Malkov & Yashunin 2018). At 100,000 of width 384
# looking at all takes ten times as long as the index (benchmarks/postgres_vectors.py).
INDEXED = 100_000
REACH, WIDEST = 2, 1000  # candidates that the index looks at for each one asked for, and at most
SAMPLED = 2000  # vectors that mean and deviation are estimated from
BUILDING = "512MB"
HEADER = 4  # bytes before a vector's numbers, as the server sends it

EXACT = """
    WITH scored AS MATERIALIZED (
        SELECT passage, -(vector::vector <#> %(own)s::vector) AS score FROM vectors
    )
    SELECT passage, score, (SELECT avg(score) FROM scored), (SELECT stddev_pop(score) FROM scored)
    FROM scored ORDER BY score DESC, passage LIMIT %(most)s
"""
# The index holds halves; the order among what it finds is by the vector that is asked with.
APPROXIMATE = """
    WITH near AS MATERIALIZED (
        SELECT passage, vector FROM vectors
        ORDER BY vector::halfvec({width}) <#> %(own)s::vector::halfvec({width}) LIMIT %(reach)s
    ), sample AS (
        SELECT -(vector::vector <#> %(own)s::vector) AS score
        FROM vectors TABLESAMPLE system (%(share)s) REPEATABLE (0)
    )
    SELECT passage, -(vector::vector <#> %(own)s::vector) AS score,
        (SELECT avg(score) FROM sample), (SELECT stddev_pop(score) FROM sample)
    FROM near ORDER BY score DESC, passage LIMIT %(most)s
"""
GIVE = """
    INSERT INTO vectors (passage, vector, keys) SELECT passage, vector::halfvec, keys
    FROM unnest(%s::bigint[], %s::text[], %s::bytea[]) AS given (passage, vector, keys)
    ON CONFLICT (passage) DO UPDATE SET vector = excluded.vector, keys = excluded.keys
"""
INDEX = (
    "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('vectors_near') "
    "AND indrelid = 'vectors'::regclass"
)


def written(vector: Vectors) -> str:
    """A vector as pgvector reads it."""
    return str(vector.tolist())


def halves(vectors: Iterable[Vectors]) -> list[str]:
    """Vectors as they are stored: halves, and the same ones as in other engines."""
    return [written(numpy.asarray(one, STORED).astype(numpy.float32)) for one in vectors]


def read_vectors(connection: Connection, numbers: Sequence[int], width: int) -> Vectors:
    """The vectors (n d) of these slots; zeros where there is none."""
    sql = "SELECT passage, halfvec_send(vector) FROM vectors WHERE passage = ANY (%s)"
    found = dict(connection.rows(sql, (list(numbers),)))
    every = numpy.zeros((len(numbers), width), numpy.float32)
    for row, number in zip(every, numbers):
        if number in found:
            row[:] = numpy.frombuffer(found[number][HEADER:], ">f2")
    return every


def read_keys(connection: Connection, numbers: Sequence[int], width: int) -> Keys:
    """The keys of these slots; none where they are not made."""
    sql = "SELECT passage, keys FROM vectors WHERE passage = ANY (%s)"
    found = dict(connection.rows(sql, (list(numbers),)))
    return unpack_keys([found.get(number) or b"" for number in numbers], width)


def give(connection: Connection, pairs: Iterable[tuple[int, Marks]]) -> None:
    """Store what slots are found by."""
    if rows := [(slot, *own) for slot, own in pairs]:
        slots, vectors, keys = zip(*rows)
        connection.execute(GIVE, (list(slots), halves(vectors), [pack_keys(own) for own in keys]))


def nearest(connection: Connection, vector: Vectors, most: int, count: int) -> Nearest:
    """The slots with the largest products, and how those of all (``count``) are spread."""
    values = {"own": written(vector), "most": most}
    if indexed(connection):
        reach = min(REACH * most, WIDEST)
        values |= {"reach": reach, "share": min(100 * SAMPLED / max(count, 1), 100)}
        with connection.transaction():
            connection.execute(
                f"SET LOCAL hnsw.ef_search = {reach}; SET LOCAL enable_seqscan = off"
            )
            found = connection.rows(APPROXIMATE.format(width=len(vector)), values)
    else:
        found = connection.rows(EXACT, values)
    if not found:
        return Nearest([], 0.0, 0.0)
    *_, mean, deviation = found[0]
    return Nearest([Scored(*row[:2]) for row in found], mean or 0.0, deviation or 0.0)


def indexed(connection: Connection) -> bool:
    return bool(connection.value(INDEX))


def tend(connection: Connection, width: int, count: int) -> None:
    """Make the index, if it pays; nobody else is kept waiting meanwhile."""
    if count < INDEXED:
        return
    lock = (f"{connection.address.schema} index",)
    if not connection.value("SELECT pg_try_advisory_lock(hashtext(%s))", lock):
        return  # another process is making it
    try:
        drop(connection)  # one that was left half-made
        connection.execute(f"SET maintenance_work_mem = '{BUILDING}'")
        connection.execute(
            "CREATE INDEX CONCURRENTLY vectors_near ON vectors "
            f"USING hnsw ((vector::halfvec({width})) halfvec_ip_ops)"
        )
    except StoreError:
        drop(connection)
        raise
    finally:
        connection.execute("RESET maintenance_work_mem")
        connection.execute("SELECT pg_advisory_unlock(hashtext(%s))", lock)


def drop(connection: Connection) -> None:
    connection.execute("DROP INDEX IF EXISTS vectors_near")
