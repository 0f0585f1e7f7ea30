"""The storage engine for many writers: a schema of a PostgreSQL database with pgvector.

Text, vectors, full-text index and history change in one transaction. Several processes on several
machines write concurrently. If two of them store the same content or path, one gets ``RaceError``
and its transaction is rolled back; rows on which a decision depends are locked.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from mnemic.store.contract import (
    CheckReport,
    EmbeddedPassages,
    EmbeddingModel,
    MemorySlot,
    MemoryStats,
    NearestSlots,
    PassageEmbedding,
    ScoredSlot,
    SentenceVectors,
    StoreError,
    Vectors,
)
from mnemic.store.postgres import rows, scrub, vectors
from mnemic.store.postgres.address import Address, parse_address
from mnemic.store.postgres.bm25 import search_bm25
from mnemic.store.postgres.check import check_memory
from mnemic.store.postgres.connection import PostgresConnection
from mnemic.store.postgres.migrations import ADVISORY_LOCK
from mnemic.store.relational import BATCH_SIZE, SELECT_MODEL, RelationalStore


class PostgresStore(RelationalStore[PostgresConnection]):
    """A memory on a PostgreSQL server; ``contract.Store`` documents its methods."""

    unembedded = (
        "id IN (SELECT passage FROM lexicon LEFT JOIN vectors USING (passage) "
        f"WHERE keys IS NULL AND passage > ? ORDER BY passage LIMIT {BATCH_SIZE})"
    )

    def __init__(self, address: str | Address, *, create: bool = True) -> None:
        self.address = address if isinstance(address, Address) else parse_address(address)
        super().__init__(partial(PostgresConnection, self.address), create=create)
        self.model_json: str | None = None  # the model at the first transaction
        # The snapshot of the database, and its numbers of slots and words.
        self.size_cache: tuple[object, tuple[int, int]] = (None, (0, 0))

    @property
    def location(self) -> str:
        """The location of the memory, as text for the user."""
        return str(self.address)

    @contextmanager
    def write_session(self) -> Iterator[None]:
        """Open a session for writing; raise ``StoreError`` if the memory is read-only."""
        connection = self.connection
        if not connection.write_depth:
            connection.check_writable()
        connection.write_depth += 1
        try:
            yield
        finally:
            connection.write_depth -= 1
        if not connection.write_depth and not vectors.has_index(connection) and (width := self.get_width()):
            vectors.build_index(connection, width, self.count_slots())

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the block as one transaction: committed durably after it, or rolled back."""
        assert self.connection.write_depth, "a transaction needs a write_session()"
        with self.connection.transaction():
            # FOR SHARE: nobody can set another one meanwhile.
            model_json = self.connection.fetch_value(f"{SELECT_MODEL} FOR SHARE")
            if self.model_json not in (None, model_json):
                raise StoreError(
                    f"another process gave {self.location} another embedder meanwhile; nothing was "
                    "changed: open the memory again"
                )
            self.model_json = model_json
            yield

    def is_initialized(self) -> bool:
        """Return whether ``set_model`` was called; creating a memory takes these two steps."""
        if self.connection.in_transaction:
            self.connection.execute(ADVISORY_LOCK, (f"{self.address.schema} begun",))
        return super().is_initialized()

    def set_model(self, model: EmbeddingModel | None) -> None:
        """Set the embedding model of the vectors that follow; drop the existing ones."""
        vectors.drop_index(self.connection)
        super().set_model(model)
        self.model_json = self.connection.fetch_value(SELECT_MODEL)

    def insert_passages(self, document_id: int, first_number: int, passages: EmbeddedPassages) -> tuple[int, int]:
        """Insert passages with both indexes; return their number and their characters."""
        return rows.insert_passages(self.connection, document_id, first_number, passages)

    def unindex_document(self, document_id: int) -> None:
        """Remove the passages of a document from the full-text index, and their vectors."""
        rows.unindex_document(self.connection, document_id)

    def read_slots(self, where: str, values: Sequence[Any]) -> list[MemorySlot]:
        """Return the slots that a WHERE clause selects, with their sentences."""
        return rows.read_slots(self.connection, where, values)

    def erase_documents(self, document_ids: Sequence[int]) -> None:
        """Delete documents with their passages, vectors and history."""
        self.connection.execute("DELETE FROM documents WHERE id = ANY (%s)", (list(document_ids),))
        self.connection.execute(scrub.MARK_UNSCRUBBED)

    def scrub(self) -> bool:
        """Clear indexes and journals of erased documents; return False if readers prevent it."""
        return scrub.scrub_memory(self.connection)

    def find_traces(self, traces: Sequence[bytes]) -> list[bytes]:
        """Return the traces that occur in the raw files and belong to no stored document."""
        return scrub.find_traces(self.connection, traces)

    def describe_unreachable_traces(self) -> str:
        """Describe where traces may remain that ``scrub`` cannot reach; empty: nowhere."""
        return scrub.UNREACHABLE_TRACES

    def set_embeddings(self, slot_ids: Sequence[int], embeddings: Sequence[PassageEmbedding]) -> None:
        """Store the embeddings of slots, replacing existing ones."""
        vectors.write_embeddings(self.connection, zip(slot_ids, embeddings))

    def search_bm25(self, text: str, limit: int, *, require_all: bool = False) -> list[ScoredSlot]:
        """Rank the slots that contain any word of ``text``, or all of them, by BM25."""
        return search_bm25(self.connection, text, limit, self.count_slots_and_words(), require_all=require_all)

    def search_vectors(self, vector: Vectors, limit: int) -> NearestSlots:
        """Find the slots whose vectors have the largest dot product with ``vector`` (d)."""
        return vectors.search_vectors(self.connection, vector, limit, self.count_slots())

    def get_vectors(self, slot_ids: Sequence[int]) -> Vectors:
        """Return the vectors (n d) of slots; zeros for a slot without one."""
        return vectors.read_vectors(self.connection, slot_ids, self.get_width())

    def get_sentence_vectors(self, slot_ids: Sequence[int]) -> SentenceVectors:
        """Return the sentence vectors of slots, as quantized; no rows for a slot without them."""
        return vectors.read_sentence_vectors(self.connection, slot_ids, self.get_width())

    def count_slots(self) -> int:
        """Return the number of active slots."""
        return self.count_slots_and_words()[0]

    def count_slots_and_words(self) -> tuple[int, int]:
        """Return the number of active slots and of their words, cached until a change."""
        state = self.connection.fetch_value("SELECT pg_current_snapshot()::text")
        if self.connection.in_transaction or self.size_cache[0] != state:
            sql = "SELECT count(*), coalesce(sum(length), 0)::bigint FROM lexicon"
            (row,) = self.connection.fetch_all(sql)
            self.size_cache = (None if self.connection.in_transaction else state, (row[0], row[1]))
        return self.size_cache[1]

    def collect_stats(self) -> MemoryStats:
        """Count documents, passages, vectors and bytes."""
        return rows.collect_stats(self.connection)

    def check(self) -> CheckReport:
        """Check one consistent state of the memory, without changing it."""
        return check_memory(self.connection, self.get_model)
