"""The embedded storage engine: one SQLite file with text, vectors, indexes and history.

The journal is a write-ahead log, so readers never wait and see complete transactions only.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

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
    ScoredSlot,
    SentenceVectors,
    StoreError,
    Vectors,
)
from mnemic.store.retrieve.query_words import build_fts5_query, extract_words
from mnemic.store.sqlite import write_rows
from mnemic.store.sqlite.bm25 import SELECT_RANKED, search_bm25
from mnemic.store.sqlite.check import check_memory
from mnemic.store.sqlite.connection import SQLiteConnection
from mnemic.store.sqlite.embeddings import read_sentence_vectors, read_vectors, write_embeddings
from mnemic.store.sqlite.lock import lock_writer
from mnemic.store.sqlite.quantized import QuantizedIndex, count_vectors, read_vector_blocks, renew_stamp
from mnemic.store.sqlite.residue import scan_files
from mnemic.store.sqlite.rows import (
    ACTIVE_DOCUMENTS,
    SELECT_DOCUMENT,
    collect_stats,
    get_utc_time,
    list_version_ids,
    parse_document_row,
    read_slots,
)
from mnemic.store.sqlite.scrub import is_remembered, scrub_memory
from mnemic.store.sqlite.vectors import VectorCache, search_blocks

SELECT_MODEL = "SELECT value FROM facts WHERE name = 'model'"
INSERT_FILE_RECORD = "INSERT OR REPLACE INTO places VALUES (?, ?, ?, ?)"


class SQLiteStore:
    """A memory in a SQLite file; ``contract.Store`` documents its methods."""

    def __init__(self, path: str | Path, *, create: bool = True) -> None:
        self.path = Path(path).expanduser()
        self.connection = SQLiteConnection(self.path, create=create)
        self.vector_cache = VectorCache()
        self.quantized_index = QuantizedIndex(self.connection)
        self.size_cache: tuple[object, int] = (None, 0)  # state of the file, number of slots
        self.is_writing = False

    @property
    def location(self) -> str:
        """The location of the memory, as text for the user."""
        return str(self.path)

    def close(self) -> None:
        """Close the file or the connection."""
        self.connection.close()

    @contextmanager
    def write_session(self) -> Iterator[None]:
        """Open a session for writing; raise ``StoreError`` if the memory is read-only."""
        if self.is_writing:  # nested: the outer session has the lock
            yield
            return
        if not self.connection.writable:
            raise StoreError(f"{self.path} is read-only; reading it still works")
        with lock_writer(self.path):
            self.is_writing = True
            try:
                yield
            finally:
                self.is_writing = False

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the block as one transaction: committed durably after it, or rolled back."""
        assert self.is_writing, "a transaction needs a write_session()"
        with self.connection.transaction():
            yield

    def get_model(self) -> EmbeddingModel | None:
        """Return the embedding model of the vectors; None: the memory is searched by words only."""
        model_fields = json.loads(self.connection.fetch_value(SELECT_MODEL) or "null")
        return None if model_fields is None else EmbeddingModel(**model_fields)

    def is_initialized(self) -> bool:
        """Return whether ``set_model`` was called; creating a memory takes these two steps."""
        return self.connection.fetch_value(SELECT_MODEL) is not None

    def set_model(self, model: EmbeddingModel | None) -> None:
        """Set the embedding model of the vectors that follow; drop the existing ones."""
        self.connection.execute("DELETE FROM vectors")
        renew_stamp(self.connection)
        model_json = json.dumps(None if model is None else model._asdict())
        self.connection.execute("INSERT OR REPLACE INTO facts VALUES ('model', ?)", (model_json,))

    def add_document(self, draft: Draft, passages: EmbeddedPassages = ()) -> int:
        """Store a document and return its id; no active document may have the same digest."""
        values = (draft.digest, draft.kind, draft.title, json.dumps(draft.notes), draft.previous)
        document_id = write_rows.insert_document(self.connection, (*values, get_utc_time(), None))
        self.add_passages(document_id, passages)
        self.record_event(HistoryEvent(document_id, get_utc_time(), "remembered", draft.path))
        if draft.previous is not None:
            self.retire_if_unused(draft.previous, "superseded")
        return document_id

    def add_passages(self, document_id: int, passages: EmbeddedPassages) -> None:
        """Append passages to a document."""
        write_rows.insert_passages(self.connection, document_id, passages)

    def update_metadata(self, document_id: int, draft: Draft) -> None:
        """Replace the title and the notes of a document by those of the draft."""
        self.connection.execute(
            "UPDATE documents SET title = ?, notes = ? WHERE id = ?",
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
        times = (document.previous, document.remembered, None)
        document_id = write_rows.insert_document(self.connection, (*values, *times))
        self.add_passages(document_id, passages)
        for record in file_records:
            self.connection.execute(INSERT_FILE_RECORD, record._replace(document=document_id))
        for event in events:
            self.record_event(event._replace(document=document_id))
        if document.retired is not None:
            self.retire_document(document_id, document.retired)
        return document_id

    def put_file_record(self, record: FileRecord, action: str) -> None:
        """Record that a file holds a document, instead of what it held before."""
        previous_record = self.get_file_record(record.path)
        self.connection.execute(INSERT_FILE_RECORD, record)
        if action:
            self.record_event(HistoryEvent(record.document, get_utc_time(), action, record.path))
        if previous_record is not None and previous_record.document != record.document:
            self.retire_if_unused(previous_record.document, "superseded")

    def remove_file_record(self, path: str) -> None:
        """Remove the record of a file; retire its document if no other file holds it."""
        record = self.get_file_record(path)
        if record is not None:
            self.connection.execute("DELETE FROM places WHERE path = ?", (path,))
            self.record_event(HistoryEvent(record.document, get_utc_time(), "gone", path))
            self.retire_if_unused(record.document, "")

    def retire_if_unused(self, document_id: int, action: str) -> None:
        """Retire a document, if no file holds it; ``action`` goes into its history."""
        select_record = "SELECT 1 FROM places WHERE document = ? LIMIT 1"
        select_retired = "SELECT 1 FROM documents WHERE id = ? AND retired IS NOT NULL"
        if any(self.connection.fetch_value(sql, (document_id,)) for sql in (select_record, select_retired)):
            return
        if action:
            self.record_event(HistoryEvent(document_id, get_utc_time(), action, ""))
        self.retire_document(document_id, get_utc_time())

    def retire_document(self, document_id: int, retired_at: str) -> None:
        """Take a document out of the indexes; its text stays."""
        write_rows.unindex_document(self.connection, document_id)
        self.connection.execute("UPDATE documents SET retired = ? WHERE id = ?", (retired_at, document_id))

    def erase_documents(self, document_ids: Sequence[int]) -> None:
        """Delete documents with their passages, vectors and history."""
        for document in document_ids:
            write_rows.unindex_document(self.connection, document)
            self.connection.execute("DELETE FROM documents WHERE id = ?", (document,))
        renew_stamp(self.connection)
        self.connection.execute("INSERT OR REPLACE INTO facts VALUES ('remains', '')")

    def scrub(self) -> bool:
        """Clear indexes and journals of erased documents; return False if readers prevent it."""
        self.quantized_index.delete()
        return scrub_memory(self.connection)

    def has_pending_scrub(self) -> bool:
        """Return whether a process ended after it erased and before it scrubbed."""
        return self.connection.fetch_value("SELECT 1 FROM facts WHERE name = 'remains'") is not None

    def find_traces(self, traces: Sequence[bytes]) -> list[bytes]:
        """Return the traces that occur in the raw files and belong to no stored document."""
        matches = scan_files(self.list_files(), traces) if traces else []
        unexplained = [trace for trace in matches if not is_remembered(self.connection, trace)]
        quantized_traces = self.quantized_index.find_quantized(unexplained) if unexplained else set()
        return [trace for trace in unexplained if trace not in quantized_traces]

    def describe_unreachable_traces(self) -> str:
        """Describe where traces may remain that ``scrub`` cannot reach; empty: nowhere."""
        return ""

    def record_event(self, event: HistoryEvent) -> None:
        """Append an event to the history."""
        self.connection.execute("INSERT INTO events (document, at, what, path) VALUES (?, ?, ?, ?)", event)

    def get_document(self, document_id: int) -> Document | None:
        """Return a document by its id, active or retired."""
        rows = self.connection.fetch_all(f"{SELECT_DOCUMENT} WHERE id = ?", (document_id,))
        return parse_document_row(rows[0]) if rows else None

    def list_versions(self, document_id: int) -> list[Document]:
        """Return all versions of a document, older and newer ones, the oldest first."""
        versions = map(self.get_document, list_version_ids(self.connection, document_id))
        return [version for version in versions if version is not None]

    def list_documents(self, *, retired: bool = False) -> Iterator[Document]:
        """Yield the active documents, or also the retired ones, in the order of their ids."""
        condition = "" if retired else "WHERE retired IS NULL"
        for block in self.connection.fetch_blocks(f"{SELECT_DOCUMENT} {condition} ORDER BY id"):
            yield from map(parse_document_row, block)

    def find_by_digest(self, digest: str) -> int | None:
        """Return the id of the active document with this digest."""
        return self.connection.fetch_value("SELECT id FROM documents WHERE digest = ? AND retired IS NULL", (digest,))

    def list_file_records(self) -> Iterator[FileRecord]:
        """Yield the records of all files, in the order of their paths."""
        for block in self.connection.fetch_blocks("SELECT * FROM places ORDER BY path"):
            yield from (FileRecord(*row) for row in block)

    def get_file_record(self, path: str) -> FileRecord | None:
        """Return the record of a file."""
        record_rows = self.connection.fetch_all("SELECT * FROM places WHERE path = ?", (path,))
        return FileRecord(*record_rows[0]) if record_rows else None

    def find_by_path(self, path: str) -> list[int]:
        """Return the ids of the documents that a file holds or held."""
        sql = "SELECT document FROM places WHERE path = ?1 UNION SELECT document FROM events WHERE path = ?1 ORDER BY 1"
        return [row[0] for row in self.connection.fetch_all(sql, (path,))]

    def list_events(self, document_ids: Sequence[int]) -> list[HistoryEvent]:
        """Return the history of documents, the oldest event first."""
        return [
            HistoryEvent(*row)
            for row in self.connection.fetch_all(
                "SELECT document, at, what, path FROM events "
                "WHERE document IN (SELECT value FROM json_each(?)) ORDER BY at, id",
                (json.dumps(list(document_ids)),),
            )
        ]

    def get_slots(self, slot_ids: Sequence[int]) -> list[MemorySlot]:
        """Return slots by their ids, in the same order."""
        condition = "WHERE id IN (SELECT value FROM json_each(?))"
        slots_by_id = {slot.id: slot for slot in read_slots(self.connection, condition, json.dumps(list(slot_ids)))}
        return [slots_by_id[slot_id] for slot_id in slot_ids]

    def list_slots(self, document_id: int) -> Iterator[MemorySlot]:
        """Yield the slots of a document, in the order of its text."""
        yield from read_slots(self.connection, "WHERE document = ? ORDER BY number", document_id)

    def list_unembedded_slots(self) -> Iterator[list[MemorySlot]]:
        """Yield batches of active slots that have no vector or no sentence vectors."""
        embedded = "(SELECT passage FROM keys)"
        condition = f"WHERE document IN {ACTIVE_DOCUMENTS} AND id NOT IN {embedded} AND id > ? ORDER BY id LIMIT 256"
        last = 0
        while block := list(read_slots(self.connection, condition, last)):
            last = block[-1].id
            yield block

    def set_embeddings(self, slot_ids: Sequence[int], embeddings: Sequence[PassageEmbedding]) -> None:
        """Store the embeddings of slots, replacing existing ones."""
        renew_stamp(self.connection)
        write_embeddings(self.connection, zip(slot_ids, embeddings))

    def search_bm25(self, text: str, limit: int, *, require_all: bool = False) -> list[ScoredSlot]:
        """Rank the slots that contain any word of ``text``, or all of them, by BM25."""
        if not (words := extract_words(text)):
            return []
        if require_all:
            rows = self.connection.fetch_all(SELECT_RANKED, (build_fts5_query(words, require_all=True), limit))
            return [ScoredSlot(*row) for row in rows]
        return search_bm25(self.connection, words, limit, self.count_slots())

    def search_vectors(self, vector: Vectors, limit: int) -> NearestSlots:
        """Find the slots whose vectors have the largest dot product with ``vector`` (d)."""
        if self.quantized_index.is_usable(self.count_slots()):
            return self.quantized_index.search(vector, limit, self.count_slots())
        connection, width = self.connection, len(vector)
        in_transaction = connection.raw.in_transaction
        with connection.snapshot():
            state = None if in_transaction else connection.read_change_state()
            blocks_on_disk = read_vector_blocks(connection, width)
            blocks = self.vector_cache.load_blocks(state, width, partial(count_vectors, connection), blocks_on_disk)
            return search_blocks(blocks, vector, limit)

    def get_vectors(self, slot_ids: Sequence[int]) -> Vectors:
        """Return the vectors (n d) of slots; zeros for a slot without one."""
        return read_vectors(self.connection, slot_ids, self.get_width())

    def get_sentence_vectors(self, slot_ids: Sequence[int]) -> SentenceVectors:
        """Return the sentence vectors of slots, as quantized; no rows for a slot without them."""
        return read_sentence_vectors(self.connection, slot_ids, self.get_width())

    def get_width(self) -> int:
        """Return the embedding width; 0 without a model."""
        model = self.get_model()
        return model.width if model else 0

    def count_slots(self) -> int:
        """Return the number of active slots."""
        state = self.connection.read_change_state()
        if self.size_cache[0] != state:
            self.size_cache = (state, self.connection.fetch_value("SELECT count(*) FROM lexicon_docsize"))
        return self.size_cache[1]

    def collect_stats(self) -> MemoryStats:
        """Count documents, passages, vectors and bytes."""
        return collect_stats(self.connection, sum(path.stat().st_size for path in self.list_files()))

    def list_files(self) -> list[Path]:
        """List the files of the memory: database, journals and quantized cache."""
        journals = [self.path.with_name(f"{self.path.name}{end}") for end in ("-wal", "-shm")]
        return [path for path in (self.path, *journals, *self.quantized_index.list_files()) if path.exists()]

    def check(self) -> CheckReport:
        """Check one consistent state of the memory, without changing it."""
        return check_memory(self.connection, self.get_model, writing=self.is_writing)
