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
        if self.path.is_symlink():  # journals and locks lie beside the file itself
            self.path = self.path.resolve()
        super().__init__(partial(SQLiteConnection, self.path), self.path, create=create)
        self.write_lock = Lock()  # one thread writes at a time, and no other process
        self.vector_cache = vectors.VectorCache()
        self.quantized_index = QuantizedIndex(self.path)

    @contextmanager
    def lock_writing(self) -> Iterator[None]:
        """Begin to write, alone; raise ``StoreError`` if the memory is read-only."""
        if not self.connection.writable:
            raise StoreError(f"{self.path} {self.connection.read_only_reason}; reading it still works")
        with self.write_lock, lock_writer(self.path, any_owner=self.connection.is_foreign):
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

    def resume_scrub(self) -> bool:
        """Scrub what a killed process left, if no reader has to be waited for."""
        self.quantized_index.delete()
        return scrub.resume_scrub(self.connection)

    def find_traces(self, traces: Sequence[bytes]) -> list[bytes]:
        """Return the traces that occur in the raw files and belong to no stored document."""
        return scrub.find_traces(self.connection, self.list_files(), traces)

    def set_embeddings(self, slot_ids: Sequence[int], embeddings: Sequence[PassageEmbedding]) -> None:
        """Store the embeddings of slots, replacing existing ones."""
        renew_stamp(self.connection)
        super().set_embeddings(slot_ids, embeddings)

    def search_vectors(self, vector: Vectors, limit: int, document_ids: Sequence[int] | None = None) -> NearestSlots:
        """Find the slots whose vectors have the largest dot product with ``vector`` (d)."""
        connection = self.connection
        if document_ids is not None and self.count_slots(document_ids) < vectors.MAX_FETCHED_SLOTS:
            return vectors.search_documents(connection, vector, limit, document_ids)
        slot_ids = None if document_ids is None else vectors.list_slot_ids(connection, document_ids)
        if self.quantized_index.is_usable(connection, self.count_slots()):
            return self.quantized_index.search(connection, vector, limit, slot_ids)
        with connection.snapshot():
            state = None if connection.in_transaction else vectors.read_slots_state(connection)
            blocks = self.vector_cache.load_blocks(connection, state, len(vector))
            return vectors.search_blocks(vectors.select_slots(blocks, slot_ids), vector, limit)

    def prepare_search(self) -> None:
        """Bring the quantized vectors up to date, and write their cache."""
        if self.quantized_index.is_usable(self.connection, self.count_slots()) and (width := self.get_width()):
            self.quantized_index.update_segments(self.connection, width)

    def count_active_slots(self) -> int:
        """Return the number of active slots."""
        return vectors.read_slots_state(self.connection).num_slots

    def count_bytes(self) -> int:
        """Return the size of the memory's files."""
        return sum(path.stat().st_size for path in self.list_files())

    def list_files(self) -> list[Path]:
        """List the files of the memory: database, journals and quantized cache."""
        journals = [self.path.with_name(f"{self.path.name}{end}") for end in ("-wal", "-shm")]
        return [path for path in (self.path, *journals, *self.quantized_index.list_files()) if path.exists()]
