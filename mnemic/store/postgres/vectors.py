"""Vector search on a PostgreSQL server: exact, or by an index in a large memory.

Shapes: n slots, d embedding width.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy

from mnemic.store.contract import NearestSlots, PassageEmbedding, ScoredSlot, StoreError, Vectors
from mnemic.store.postgres.bm25 import IN_DOCUMENTS
from mnemic.store.postgres.connection import PostgresConnection
from mnemic.store.postgres.locks import try_lock
from mnemic.store.retrieve.sentence_keys import STORED_DTYPE, pack_sentence_vectors

# With this many vectors there is an index (HNSW, Malkov & Yashunin 2018). For 100,000 of width 384
# exact search takes ten times as long (benchmarks/postgres_vector_search.py).
MIN_INDEXED_VECTORS = 100_000
OVERSAMPLING, MAX_CANDIDATES = 2, 1000  # candidates of the index per result, and in all
NUM_SAMPLED = 2000  # vectors from which mean and deviation are estimated
INDEX_BUILD_MEMORY = "512MB"
VECTOR_BYTES, VECTOR_DTYPE = "substring(pgvector.halfvec_send(vector) FROM 5)", numpy.dtype(">f2")  # without a header

SEARCH_EXACT = """
    WITH scored AS MATERIALIZED (
        SELECT passage, -(vector::pgvector.vector OPERATOR(pgvector.<#>) %(own)s::pgvector.vector) AS score
        FROM vectors {where}
    )
    SELECT passage, score, (SELECT avg(score) FROM scored), (SELECT stddev_pop(score) FROM scored)
    FROM scored ORDER BY score DESC, passage LIMIT %(most)s
"""
# The index has half precision; its candidates are ranked by the query in full precision.
SEARCH_INDEX = """
    WITH near AS MATERIALIZED (
        SELECT passage, vector FROM vectors
        ORDER BY vector::pgvector.halfvec({width}) OPERATOR(pgvector.<#>)
            %(own)s::pgvector.vector::pgvector.halfvec({width}) LIMIT %(reach)s
    ), sample AS (
        SELECT -(vector::pgvector.vector OPERATOR(pgvector.<#>) %(own)s::pgvector.vector) AS score
        FROM vectors TABLESAMPLE system (%(share)s) REPEATABLE (0)
    )
    SELECT passage, -(vector::pgvector.vector OPERATOR(pgvector.<#>) %(own)s::pgvector.vector) AS score,
        (SELECT avg(score) FROM sample), (SELECT stddev_pop(score) FROM sample)
    FROM near ORDER BY score DESC, passage LIMIT %(most)s
"""
INSERT_EMBEDDINGS = """
    INSERT INTO vectors (passage, vector, keys) SELECT passage, vector::pgvector.halfvec, keys
    FROM unnest(%s::bigint[], %s::text[], %s::bytea[]) AS given (passage, vector, keys)
    ON CONFLICT (passage) DO UPDATE SET vector = excluded.vector, keys = excluded.keys
"""
SELECT_INDEX = (
    "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('vectors_near') AND indrelid = 'vectors'::regclass"
)


def format_vector(vector: Vectors) -> str:
    """Format a vector as a literal of pgvector."""
    return str(vector.tolist())


def write_embeddings(connection: PostgresConnection, pairs: Iterable[tuple[int, PassageEmbedding]]) -> None:
    """Insert or replace the embeddings of slots."""
    if rows := [(slot_id, *embedding) for slot_id, embedding in pairs]:
        slot_ids, vectors, sentence_vectors = zip(*rows)
        # Rounded to half precision here, as in the other engine.
        halves = [format_vector(numpy.asarray(vector, STORED_DTYPE).astype(numpy.float32)) for vector in vectors]
        packed = [pack_sentence_vectors(passage_sentences) for passage_sentences in sentence_vectors]
        connection.execute(INSERT_EMBEDDINGS, (list(slot_ids), halves, packed))


def search_vectors(
    connection: PostgresConnection,
    vector: Vectors,
    limit: int,
    num_vectors: int,
    document_ids: Sequence[int] | None = None,
) -> NearestSlots:
    """Find the slots with the largest products; compute or estimate mean and deviation.

    The slots of some documents are compared without the index, which knows no documents.
    """
    values: dict[str, Any] = {"own": format_vector(vector), "most": limit}
    if document_ids is not None:
        rows = connection.fetch_all(
            SEARCH_EXACT.format(where=f"WHERE {IN_DOCUMENTS}"), values | {"documents": list(document_ids)}
        )
    elif has_index(connection):
        num_candidates = min(OVERSAMPLING * limit, MAX_CANDIDATES)
        values |= {"reach": num_candidates, "share": min(100 * NUM_SAMPLED / max(num_vectors, 1), 100)}
        with connection.transaction():
            connection.execute(f"SET LOCAL hnsw.ef_search = {num_candidates}; SET LOCAL enable_seqscan = off")
            rows = connection.fetch_all(SEARCH_INDEX.format(width=len(vector)), values)
            connection.execute("SET LOCAL enable_seqscan TO DEFAULT")  # the transaction may go on
    else:
        rows = connection.fetch_all(SEARCH_EXACT.format(where=""), values)
    if not rows:
        return NearestSlots([], 0.0, 0.0)
    *_, mean, std = rows[0]
    return NearestSlots([ScoredSlot(*row[:2]) for row in rows], mean or 0.0, std or 0.0)


def has_index(connection: PostgresConnection) -> bool:
    """Return whether there is a valid vector index."""
    return bool(connection.fetch_value(SELECT_INDEX))


def build_index(connection: PostgresConnection, width: int, num_vectors: int) -> None:
    """Build the vector index of a large memory, without blocking others."""
    if num_vectors < MIN_INDEXED_VECTORS:
        return
    with try_lock(connection, f"{connection.address.schema} index") as is_locked:
        if not is_locked:
            return  # another process is building it
        try:
            drop_index(connection)  # one that was left unfinished
            connection.execute(f"SET maintenance_work_mem = '{INDEX_BUILD_MEMORY}'")
            connection.execute(
                "CREATE INDEX CONCURRENTLY vectors_near ON vectors "
                f"USING hnsw ((vector::pgvector.halfvec({width})) pgvector.halfvec_ip_ops)"
            )
        except StoreError:
            drop_index(connection)
            raise
        finally:
            connection.execute("RESET maintenance_work_mem")


def drop_index(connection: PostgresConnection) -> None:
    """Drop the vector index, if it exists."""
    connection.execute("DROP INDEX IF EXISTS vectors_near")
