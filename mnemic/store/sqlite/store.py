"""The embedded storage engine: one SQLite file with text, vectors, indexes and history.

The journal is a write-ahead log, so readers never wait and see complete transactions only.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Lock
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
from mnemic.store.relational import RelationalStore
from mnemic.store.sqlite import rows, scrub, vectors
from mnemic.store.sqlite.bm25 import search_bm25
from mnemic.store.sqlite.check import check_memory
from mnemic.store.sqlite.connection import SQLiteConnection, lock_writer
from mnemic.store.sqlite.quantized import QuantizedIndex, renew_stamp


class SQLiteStore(RelationalStore[SQLiteConnection]):
    """A memory in a SQLite file; ``contract.Store`` documents its methods."""

    unembedded = f"document IN {rows.ACTIVE_DOCUMENTS} AND id NOT IN (SELECT passage FROM keys) AND id > ?"

    def __init__(self, path: str | Path, *, create: bool = True) -> None:
        self.path = Path(path).expanduser()
        super().__init__(partial(SQLiteConnection, self.path), create=create)
        self.write_lock = Lock()  # one thread writes at a time, and no other process
        self.vector_cache = vectors.VectorCache()
        self.quantized_index = QuantizedIndex(self.path)

    @property
    def location(self) -> str:
        """The location of the memory, as text for the user."""
        return str(self.path)

    @contextmanager
    def write_session(self) -> Iterator[None]:
        """Open a session for writing; raise ``StoreError`` if the memory is read-only."""
        connection = self.connection
        if connection.is_writing:  # nested: the outer session has the lock
            yield
            return
        if not connection.writable:
            raise StoreError(f"{self.path} is read-only; reading it still works")
        with self.write_lock, lock_writer(self.path):
            connection.is_writing = True
            try:
                yield
            finally:
                connection.is_writing = False

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the block as one transaction: committed durably after it, or rolled back."""
        assert self.connection.is_writing, "a transaction needs a write_session()"
        with self.connection.transaction():
            yield

    def set_model(self, model: EmbeddingModel | None) -> None:
        """Set the embedding model of the vectors that follow; drop the existing ones."""
        renew_stamp(self.connection)
        super().set_model(model)

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
        for document_id in document_ids:
            self.unindex_document(document_id)
            self.connection.execute("DELETE FROM documents WHERE id = ?", (document_id,))
        renew_stamp(self.connection)
        self.put_fact("remains", "")

    def scrub(self) -> bool:
        """Clear indexes and journals of erased documents; return False if readers prevent it."""
        self.quantized_index.delete()
        return scrub.scrub_memory(self.connection)

    def find_traces(self, traces: Sequence[bytes]) -> list[bytes]:
        """Return the traces that occur in the raw files and belong to no stored document."""
        return scrub.find_traces(self.connection, self.list_files(), traces)

    def describe_unreachable_traces(self) -> str:
        """Describe where traces may remain that ``scrub`` cannot reach; empty: nowhere."""
        return ""

    def set_embeddings(self, slot_ids: Sequence[int], embeddings: Sequence[PassageEmbedding]) -> None:
        """Store the embeddings of slots, replacing existing ones."""
        renew_stamp(self.connection)
        vectors.write_embeddings(self.connection, zip(slot_ids, embeddings))

    def search_bm25(self, text: str, limit: int, *, require_all: bool = False) -> list[ScoredSlot]:
        """Rank the slots that contain any word of ``text``, or all of them, by BM25."""
        return search_bm25(self.connection, text, limit, self.count_slots(), require_all=require_all)

    def search_vectors(self, vector: Vectors, limit: int) -> NearestSlots:
        """Find the slots whose vectors have the largest dot product with ``vector`` (d)."""
        connection = self.connection
        if self.quantized_index.is_usable(connection, self.count_slots()):
            return self.quantized_index.search(connection, vector, limit)
        in_transaction = connection.raw.in_transaction
        with connection.snapshot():
            state = None if in_transaction else vectors.read_slots_state(connection)
            blocks = self.vector_cache.load_blocks(connection, state, len(vector))
            return vectors.search_blocks(blocks, vector, limit)

    def get_vectors(self, slot_ids: Sequence[int]) -> Vectors:
        """Return the vectors (n d) of slots; zeros for a slot without one."""
        return vectors.read_vectors(self.connection, slot_ids, self.get_width())

    def get_sentence_vectors(self, slot_ids: Sequence[int]) -> SentenceVectors:
        """Return the sentence vectors of slots, as quantized; no rows for a slot without them."""
        return vectors.read_sentence_vectors(self.connection, slot_ids, self.get_width())

    def count_slots(self) -> int:
        """Return the number of active slots."""
        return vectors.read_slots_state(self.connection).num_slots

    def collect_stats(self) -> MemoryStats:
        """Count documents, passages, vectors and bytes."""
        return rows.collect_stats(self.connection, sum(path.stat().st_size for path in self.list_files()))

    def list_files(self) -> list[Path]:
        """List the files of the memory: database, journals and quantized cache."""
        journals = [self.path.with_name(f"{self.path.name}{end}") for end in ("-wal", "-shm")]
        return [path for path in (self.path, *journals, *self.quantized_index.list_files()) if path.exists()]

    def check(self) -> CheckReport:
        """Check one consistent state of the memory, without changing it."""
        return check_memory(self.connection, self.get_model, writing=self.connection.is_writing)
