"""The storage engine for many writers: a schema of a PostgreSQL database with pgvector.

Text, vectors, full-text index and history change in one transaction. Several processes on several
machines write concurrently. If two of them store the same content or path, one gets ``RaceError``
and its transaction is rolled back; ``locks`` says what makes a writer wait.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from mnemic.store.connection import BATCH_SIZE
from mnemic.store.contract import EmbeddingModel, NearestSlots, StoreError, Vectors
from mnemic.store.postgres import bm25, check, rows, scrub, vectors
from mnemic.store.postgres.address import Address, parse_address
from mnemic.store.postgres.connection import PostgresConnection
from mnemic.store.postgres.locks import SHARED_ROW_LOCK, lock_transaction, try_lock
from mnemic.store.relational import SELECT_MODEL, Store


class PostgresStore(Store[PostgresConnection]):
    """A memory on a PostgreSQL server; ``contract.Engine`` documents its methods."""

    bm25, checks, rows, vectors = bm25, check, rows, vectors
    vector_bytes, vector_dtype, keys_table = vectors.VECTOR_BYTES, vectors.VECTOR_DTYPE, "vectors"
    unreachable_traces = scrub.UNREACHABLE_TRACES
    sentence_rows = "lexicon JOIN passages ON id = passage CROSS JOIN generate_subscripts(sentences, 1)"
    keyed_rows = "vectors WHERE keys IS NOT NULL"
    unembedded = (
        "id IN (SELECT passage FROM lexicon LEFT JOIN vectors USING (passage) "
        f"WHERE keys IS NULL AND passage > ? ORDER BY passage LIMIT {BATCH_SIZE})"
    )

    def __init__(self, address: str | Address, *, create: bool = True) -> None:
        self.address = address if isinstance(address, Address) else parse_address(address)
        super().__init__(partial(PostgresConnection, self.address), self.address, create=create)
        self.model_json: str | None = None  # the model at the first transaction

    @contextmanager
    def lock_writing(self) -> Iterator[None]:
        """Begin to write, beside others; afterwards build a missing index of vectors."""
        self.connection.check_writable()
        yield
        if not vectors.has_index(self.connection) and (width := self.get_width()):
            vectors.build_index(self.connection, width, self.count_slots())

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the block as one transaction: committed durably after it, or rolled back."""
        with super().transaction():
            model_json = self.connection.fetch_value(f"{SELECT_MODEL}{SHARED_ROW_LOCK}")  # nobody can set another now
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
            lock_transaction(self.connection, f"{self.address.schema} begun")
        return super().is_initialized()

    def set_model(self, model: EmbeddingModel | None) -> None:
        """Set the embedding model of the vectors that follow; drop the existing ones."""
        vectors.drop_index(self.connection)
        super().set_model(model)
        self.model_json = self.connection.fetch_value(SELECT_MODEL)

    def erase_documents(self, document_ids: Sequence[int]) -> None:
        """Delete documents with their passages, vectors and history."""
        self.connection.execute("DELETE FROM documents WHERE id = ANY (%s)", (list(document_ids),))
        self.connection.execute(scrub.MARK_UNSCRUBBED)

    def scrub(self) -> bool:
        """Clear indexes and journals of erased documents; return False if readers prevent it."""
        return scrub.scrub_memory(self.connection)

    @contextmanager
    def lock_erasing(self) -> Iterator[None]:
        """Erase and scrub in the block, while no other process does."""
        with try_lock(self.connection, f"{self.address.schema} scrub", scrub.ERASER_TIMEOUT_S) as is_locked:
            if not is_locked:
                raise StoreError(f"{self.location}: another process is forgetting; wait for it to end, and try again")
            yield

    def resume_scrub(self) -> bool | None:
        """Scrub what a killed process left, if nobody has to be waited for."""
        with try_lock(self.connection, f"{self.address.schema} scrub") as is_locked:
            return scrub.scrub_memory(self.connection, 0) if is_locked else None

    def find_traces(self, traces: Sequence[bytes]) -> list[bytes]:
        """Return the traces that occur in the raw files and belong to no stored document."""
        return scrub.find_traces(self.connection, traces)

    def search_vectors(self, vector: Vectors, limit: int, document_ids: Sequence[int] | None = None) -> NearestSlots:
        """Find the slots whose vectors have the largest dot product with ``vector`` (d)."""
        return vectors.search_vectors(self.connection, vector, limit, self.count_slots(), document_ids)

    def count_active_slots(self) -> int:
        """Return the number of active slots."""
        return self.connection.fetch_unchanged(bm25.SELECT_SIZES)[0]

    def count_bytes(self) -> int:
        """Return the size of the memory's tables."""
        total = "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class"
        where = "relnamespace = ?::regnamespace AND relkind = 'r'"
        return self.connection.fetch_value(f"{total} WHERE {where}", (f'"{self.address.schema}"',))
