"""The embedded storage engine: one SQLite file with text, vectors, indexes and history.

The journal is a write-ahead log, so readers never wait and see complete transactions only.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Lock

from mnemic.store.contract import EmbeddingModel, NearestSlots, PassageEmbedding, StoreError, Vectors
from mnemic.store.relational import Store
from mnemic.store.retrieve.sentence_keys import STORED_DTYPE
from mnemic.store.sqlite import bm25, check, rows, scrub, vectors
from mnemic.store.sqlite.connection import SQLiteConnection
from mnemic.store.sqlite.locks import lock_writer
from mnemic.store.sqlite.quantized import QuantizedIndex, renew_stamp


class SQLiteStore(Store[SQLiteConnection]):
    """A memory in a SQLite file; ``contract.Engine`` documents its methods."""

    bm25, checks, rows, vectors = bm25, check, rows, vectors
    vector_bytes, vector_dtype, keys_table = "vector", STORED_DTYPE, "keys"
    sentence_rows, keyed_rows = "sentences WHERE passage IN (SELECT id FROM lexicon_docsize)", "keys"
    unembedded = "id IN (SELECT id FROM lexicon_docsize) AND id NOT IN (SELECT passage FROM keys) AND id > ?"

    def __init__(self, path: str | Path, *, create: bool = True) -> None:
        self.path = Path(path).expanduser()
        super().__init__(partial(SQLiteConnection, self.path), self.path, create=create)
        self.write_lock = Lock()  # one thread writes at a time, and no other process
        self.vector_cache = vectors.VectorCache()
        self.quantized_index = QuantizedIndex(self.path)

    @contextmanager
    def lock_writing(self) -> Iterator[None]:
        """Begin to write, alone; raise ``StoreError`` if the memory is read-only."""
        if not self.connection.writable:
            raise StoreError(f"{self.path} is read-only; reading it still works")
        with self.write_lock, lock_writer(self.path):
            yield

    def set_model(self, model: EmbeddingModel | None) -> None:
        """Set the embedding model of the vectors that follow; drop the existing ones."""
        renew_stamp(self.connection)
        super().set_model(model)

    def erase_documents(self, document_ids: Sequence[int]) -> None:
        """Delete documents with their passages, vectors and history."""
        for document_id in document_ids:
            rows.unindex_document(self.connection, document_id)
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

    def set_embeddings(self, slot_ids: Sequence[int], embeddings: Sequence[PassageEmbedding]) -> None:
        """Store the embeddings of slots, replacing existing ones."""
        renew_stamp(self.connection)
        super().set_embeddings(slot_ids, embeddings)

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

    def count_slots(self) -> int:
        """Return the number of active slots."""
        return vectors.read_slots_state(self.connection).num_slots

    def count_bytes(self) -> int:
        """Return the size of the memory's files."""
        return sum(path.stat().st_size for path in self.list_files())

    def list_files(self) -> list[Path]:
        """List the files of the memory: database, journals and quantized cache."""
        journals = [self.path.with_name(f"{self.path.name}{end}") for end in ("-wal", "-shm")]
        return [path for path in (self.path, *journals, *self.quantized_index.list_files()) if path.exists()]
