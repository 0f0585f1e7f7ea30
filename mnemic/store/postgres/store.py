"""The storage engine for many writers: a schema of a PostgreSQL database with pgvector.

Text, vectors, full-text index and history change in one transaction. Several processes on several
machines write concurrently. If two of them store the same content or path, one gets ``RaceError``
and its transaction is rolled back; rows on which a decision depends are locked.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from mnemic.store.contract import (
    CheckReport,
    Document,
    Draft,
    EmbeddedPassages,
    EmbeddingModel,
    FileRecord,
    HistoryEvent,
    MemorySlot,
    MemoryStats,
    NearestSlots,
    PassageEmbedding,
    RaceError,
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
from mnemic.store.sqlite.rows import get_utc_time, parse_document_row

SELECT_MODEL = "SELECT value FROM facts WHERE name = 'model'"
SELECT_FILE_RECORD = "SELECT path, document, size, modified FROM places"
SELECT_EVENTS = "SELECT document, at, what, path FROM events WHERE document = ANY (%s) ORDER BY at, id"


class PostgresStore:
    """A memory on a PostgreSQL server; ``contract.Store`` documents its methods."""

    def __init__(self, address: str | Address, *, create: bool = True) -> None:
        self.address = address if isinstance(address, Address) else parse_address(address)
        self.connection = PostgresConnection(self.address, create=create)
        self.model_json: str | None = None  # the model at the first transaction
        # The snapshot of the database, and its numbers of slots and words.
        self.size_cache: tuple[object, tuple[int, int]] = (None, (0, 0))
        self.write_depth = 0  # of nested write sessions

    @property
    def location(self) -> str:
        """The location of the memory, as text for the user."""
        return str(self.address)

    def close(self) -> None:
        """Close the file or the connection."""
        self.connection.close()

    @contextmanager
    def write_session(self) -> Iterator[None]:
        """Open a session for writing; raise ``StoreError`` if the memory is read-only."""
        if not self.write_depth:
            self.connection.check_writable()
        self.write_depth += 1
        try:
            yield
        finally:
            self.write_depth -= 1
        if not self.write_depth and not vectors.has_index(self.connection) and (model := self.get_model()):
            vectors.build_index(self.connection, model.width, self.count_slots())

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the block as one transaction: committed durably after it, or rolled back."""
        assert self.write_depth, "a transaction needs a write_session()"
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

    def get_model(self) -> EmbeddingModel | None:
        """Return the embedding model of the vectors; None: the memory is searched by words only."""
        model_fields = json.loads(self.connection.fetch_value(SELECT_MODEL) or "null")
        return None if model_fields is None else EmbeddingModel(**model_fields)

    def is_initialized(self) -> bool:
        """Return whether ``set_model`` was called; creating a memory takes these two steps."""
        if self.connection.in_transaction:
            self.connection.execute(ADVISORY_LOCK, (f"{self.address.schema} begun",))
        return self.connection.fetch_value(SELECT_MODEL) is not None

    def set_model(self, model: EmbeddingModel | None) -> None:
        """Set the embedding model of the vectors that follow; drop the existing ones."""
        vectors.drop_index(self.connection)
        self.connection.execute("DELETE FROM vectors")
        self.model_json = json.dumps(None if model is None else model._asdict())
        self.connection.execute(
            "INSERT INTO facts VALUES ('model', %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (self.model_json,),
        )

    def add_document(self, draft: Draft, passages: EmbeddedPassages = ()) -> int:
        """Store a document and return its id; no active document may have the same digest."""
        values = (draft.digest, draft.kind, draft.title, json.dumps(draft.notes), draft.previous)
        document_id = rows.insert_document(self.connection, (*values, get_utc_time()))
        self.add_passages(document_id, passages)
        self.record_event(HistoryEvent(document_id, get_utc_time(), "remembered", draft.path))
        if draft.previous is not None:
            self.retire_if_unused(draft.previous, "superseded")
        return document_id

    def add_passages(self, document_id: int, passages: EmbeddedPassages) -> None:
        """Append passages to a document."""
        rows.insert_passages(self.connection, document_id, passages)

    def update_metadata(self, document_id: int, draft: Draft) -> None:
        """Replace the title and the notes of a document by those of the draft."""
        self.connection.execute(
            "UPDATE documents SET title = %s, notes = %s WHERE id = %s",
            (draft.title, json.dumps(draft.notes), document_id),
        )

    def restore_document(
        self,
        document: Document,
        passages: EmbeddedPassages,
        file_records: Sequence[FileRecord],
        events: Sequence[HistoryEvent],
    ) -> int:
        """Store a document of another memory with its history; return its id here."""
        values = (document.digest, document.kind, document.title, json.dumps(document.notes))
        times = (document.previous, document.remembered)
        document_id = rows.insert_document(self.connection, (*values, *times))
        self.add_passages(document_id, passages)
        for record in file_records:
            self.replace_file_record(record._replace(document=document_id))
        for event in events:
            self.record_event(event._replace(document=document_id))
        if document.retired is not None:
            self.retire_document(document_id, document.retired)
        return document_id

    def put_file_record(self, record: FileRecord, action: str) -> None:
        """Record that a file holds a document, instead of what it held before."""
        if self.lock_document(record.document) is not True:
            raise RaceError(f"{self.location}: document {record.document} is no longer active; try again")
        previous_record = self.replace_file_record(record)
        if action:
            self.record_event(HistoryEvent(record.document, get_utc_time(), action, record.path))
        if previous_record is not None and previous_record.document != record.document:
            self.retire_if_unused(previous_record.document, "superseded")

    def replace_file_record(self, record: FileRecord) -> FileRecord | None:
        """Record the file of a document; return the record that it replaces."""
        replaced_rows = self.connection.fetch_all(f"{SELECT_FILE_RECORD} WHERE path = %s FOR UPDATE", (record.path,))
        if replaced_rows:
            self.connection.execute("DELETE FROM places WHERE path = %s", (record.path,))
        self.connection.execute("INSERT INTO places VALUES (%s, %s, %s, %s)", record)
        return FileRecord(*replaced_rows[0]) if replaced_rows else None

    def remove_file_record(self, path: str) -> None:
        """Remove the record of a file; retire its document if no other file holds it."""
        delete_record = "DELETE FROM places WHERE path = %s RETURNING document"
        document_id = self.connection.fetch_value(delete_record, (path,))
        if document_id is not None:
            self.record_event(HistoryEvent(document_id, get_utc_time(), "gone", path))
            self.retire_if_unused(document_id, "")

    def lock_document(self, document_id: int) -> bool | None:
        """Lock a document for the transaction; return whether it is active.

        The result is None if there is no such document.
        """
        sql = "SELECT retired IS NULL FROM documents WHERE id = %s FOR UPDATE"
        is_active = self.connection.fetch_value(sql, (document_id,))
        return None if is_active is None else bool(is_active)

    def retire_if_unused(self, document_id: int, action: str) -> None:
        """Retire a document, if no file holds it; ``action`` goes into its history."""
        select_record = "SELECT 1 FROM places WHERE document = %s LIMIT 1"
        if not self.lock_document(document_id) or self.connection.fetch_value(select_record, (document_id,)):
            return
        if action:
            self.record_event(HistoryEvent(document_id, get_utc_time(), action, ""))
        self.retire_document(document_id, get_utc_time())

    def retire_document(self, document_id: int, retired_at: str) -> None:
        """Take a document out of the indexes; its text stays."""
        rows.unindex_document(self.connection, document_id)
        self.connection.execute("UPDATE documents SET retired = %s WHERE id = %s", (retired_at, document_id))

    def erase_documents(self, document_ids: Sequence[int]) -> None:
        """Delete documents with their passages, vectors and history."""
        self.connection.execute("DELETE FROM documents WHERE id = ANY (%s)", (list(document_ids),))
        self.connection.execute(scrub.MARK_UNSCRUBBED)

    def scrub(self) -> bool:
        """Clear indexes and journals of erased documents; return False if readers prevent it."""
        return scrub.scrub_memory(self.connection)

    def has_pending_scrub(self) -> bool:
        """Return whether a process ended after it erased and before it scrubbed."""
        return bool(self.connection.fetch_all("SELECT 1 FROM facts WHERE name = 'remains'"))

    def find_traces(self, traces: Sequence[bytes]) -> list[bytes]:
        """Return the traces that occur in the raw files and belong to no stored document."""
        return scrub.find_traces(self.connection, traces)

    def describe_unreachable_traces(self) -> str:
        """Describe where traces may remain that ``scrub`` cannot reach; empty: nowhere."""
        return scrub.UNREACHABLE_TRACES

    def record_event(self, event: HistoryEvent) -> None:
        """Append an event to the history."""
        self.connection.execute("INSERT INTO events (document, at, what, path) VALUES (%s, %s, %s, %s)", event)

    def get_document(self, document_id: int) -> Document | None:
        """Return a document by its id, active or retired."""
        documents = rows.read_documents(self.connection, "WHERE id = %s", (document_id,))
        return documents[0] if documents else None

    def list_versions(self, document_id: int) -> list[Document]:
        """Return all versions of a document, older and newer ones, the oldest first."""
        where = f"WHERE id IN ({rows.SELECT_VERSIONS}) ORDER BY id"
        return rows.read_documents(self.connection, where, {"own": document_id})

    def list_documents(self, *, retired: bool = False) -> Iterator[Document]:
        """Yield the active documents, or also the retired ones, in the order of their ids."""
        condition = "" if retired else "AND retired IS NULL"
        sql = f"{rows.SELECT_DOCUMENT} WHERE id > %s {condition} ORDER BY id"
        yield from map(parse_document_row, rows.read_pages(self.connection, sql, 0))

    def find_by_digest(self, digest: str) -> int | None:
        """Return the id of the active document with this digest."""
        sql = "SELECT id FROM documents WHERE digest = %s AND retired IS NULL"
        document_id = self.connection.fetch_value(sql, (digest,))
        return None if document_id is None else int(document_id)

    def list_file_records(self) -> Iterator[FileRecord]:
        """Yield the records of all files, in the order of their paths."""
        sql = f"{SELECT_FILE_RECORD} WHERE path > %s ORDER BY path"
        yield from (FileRecord(*row) for row in rows.read_pages(self.connection, sql, ""))

    def get_file_record(self, path: str) -> FileRecord | None:
        """Return the record of a file."""
        record_rows = self.connection.fetch_all(f"{SELECT_FILE_RECORD} WHERE path = %s", (path,))
        return FileRecord(*record_rows[0]) if record_rows else None

    def find_by_path(self, path: str) -> list[int]:
        """Return the ids of the documents that a file holds or held."""
        sql = (
            "SELECT document FROM places WHERE path = %(path)s UNION "
            "SELECT document FROM events WHERE path = %(path)s ORDER BY 1"
        )
        return [document_id for (document_id,) in self.connection.fetch_all(sql, {"path": path})]

    def list_events(self, document_ids: Sequence[int]) -> list[HistoryEvent]:
        """Return the history of documents, the oldest event first."""
        return [HistoryEvent(*row) for row in self.connection.fetch_all(SELECT_EVENTS, (list(document_ids),))]

    def get_slots(self, slot_ids: Sequence[int]) -> list[MemorySlot]:
        """Return slots by their ids, in the same order."""
        slots = rows.read_slots(self.connection, "WHERE id = ANY (%s)", (list(slot_ids),))
        slots_by_id = {slot.id: slot for slot in slots}
        return [slots_by_id[slot_id] for slot_id in slot_ids]

    def list_slots(self, document_id: int) -> Iterator[MemorySlot]:
        """Yield the slots of a document, in the order of its text."""
        where = f"WHERE document = %s AND number > %s ORDER BY number LIMIT {rows.BATCH_SIZE}"
        last = -1
        while block := rows.read_slots(self.connection, where, (document_id, last)):
            yield from block
            last = block[-1].number

    def list_unembedded_slots(self) -> Iterator[list[MemorySlot]]:
        """Yield batches of active slots that have no vector or no sentence vectors."""
        unembedded = "(SELECT passage FROM lexicon LEFT JOIN vectors USING (passage)"
        where = (
            f"WHERE id IN {unembedded} WHERE keys IS NULL AND passage > %s "
            f"ORDER BY passage LIMIT {rows.BATCH_SIZE}) ORDER BY id"
        )
        last = 0
        while block := rows.read_slots(self.connection, where, (last,)):
            last = block[-1].id
            yield block

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

    def get_width(self) -> int:
        """Return the embedding width; 0 without a model."""
        model = self.get_model()
        return model.width if model else 0

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
