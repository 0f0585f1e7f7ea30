"""What engines with tables do alike: documents, file records and history.

The statements here are the same in every engine; ``?`` stands for a value. What an engine writes
in its own words (full-text index, vectors, scrubbing) is in its folder.
"""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from types import ModuleType
from weakref import WeakSet

from mnemic.store.connection import BATCH_SIZE
from mnemic.store.contract import (
    CheckReport,
    DamageError,
    Document,
    Draft,
    EmbeddedPassages,
    EmbeddingModel,
    FileRecord,
    HistoryEvent,
    MemorySlot,
    MemoryStats,
    PassageEmbedding,
    RaceError,
)
from mnemic.store.document_rows import (
    COUNTED_ROWS,
    DOCUMENT_COLUMNS,
    SELECT_FILE_RECORD,
    SELECT_VERSIONS,
    parse_document_row,
)
from mnemic.store.question_keys import QuestionKeys
from mnemic.store.slot_search import C

SELECT_MODEL = "SELECT value FROM facts WHERE name = 'model'"


class Store(QuestionKeys[C]):
    """A storage engine with tables; many threads may use it at the same time."""

    checks: ModuleType  # functions that find faults
    vectors: ModuleType  # functions that write and search vectors
    unembedded: str  # the condition for active slots above an id that lack embeddings
    sentence_rows: str  # what stands after FROM, to count the sentences of active slots
    keyed_rows: str  # the same for the slots that have sentence vectors

    def __init__(self, open_connection: Callable[..., C], location: object, *, create: bool) -> None:
        self.open_connection, self.location = open_connection, str(location)
        self.on_notice: Callable[[str], object] = ignore_notice
        self.local = threading.local()
        self.connections = WeakSet[C]()  # of all threads; a thread that ends drops its own
        self.connect_thread(create=create)

    def connect_thread(self, *, create: bool) -> C:
        """Open the connection of this thread."""
        connection = self.local.connection = self.open_connection(create=create)
        self.connections.add(connection)
        return connection

    @property
    def connection(self) -> C:
        """The connection of this thread, opened on its first use."""
        return self.local.__dict__.get("connection") or self.connect_thread(create=False)

    def close(self) -> None:
        """Close the connections of all threads."""
        for connection in list(self.connections):
            connection.close()

    @contextmanager
    def write_session(self) -> Iterator[None]:
        """Open a session for writing; raise ``StoreError`` if the memory is read-only."""
        connection = self.connection
        if connection.is_writing:  # nested: the outer session has the lock
            yield
            return
        with self.lock_writing():
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

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read one state of the memory throughout the block, whatever others write."""
        with self.connection.snapshot():
            yield

    def prepare_search(self) -> None:
        """Bring what a search needs up to date, outside of a snapshot, which cannot write."""

    def put_fact(self, name: str, value: str) -> None:
        """Set a value of the table of facts."""
        upsert = "INSERT INTO facts VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
        self.connection.execute(upsert, (name, value))

    def get_model(self) -> EmbeddingModel | None:
        """Return the embedding model of the vectors; None: the memory is searched by words only."""
        try:
            fields = json.loads(self.connection.fetch_value(SELECT_MODEL) or "null")
            return None if fields is None else EmbeddingModel(**fields)
        except (ValueError, TypeError):
            raise DamageError(f"{self.location}: the name of the embedder") from None

    def get_width(self) -> int:
        """Return the embedding width; 0 without a model."""
        model = self.get_model()
        return model.width if model else 0

    def is_initialized(self) -> bool:
        """Return whether ``set_model`` was called; creating a memory takes these two steps.

        Within a transaction, no other process can call it before the transaction ends.
        """
        return self.connection.fetch_value(SELECT_MODEL) is not None

    def initialize(self, model: EmbeddingModel | None) -> None:
        """Set the embedding model of a new memory, unless another process did so meanwhile."""
        with self.write_session(), self.transaction():
            if not self.is_initialized():
                self.set_model(model)

    def set_model(self, model: EmbeddingModel | None) -> None:
        """Set the embedding model of the vectors that follow; drop the existing ones."""
        self.connection.execute("DELETE FROM vectors")
        self.drop_question_vectors()
        self.put_fact("model", json.dumps(None if model is None else model._asdict()))

    def add_document(self, draft: Draft, passages: EmbeddedPassages = ()) -> int:
        """Store a document and return its id; no active document may have the same digest.

        The document that it supersedes is retired, unless a file still holds it.
        """
        document_id = self.insert_document(draft, get_utc_time())
        self.add_passages(document_id, passages)
        self.record_event(document_id, "remembered", draft.path)
        if draft.previous is not None:
            self.retire_if_unused(draft.previous, "superseded")
        return document_id

    def insert_document(self, draft: Draft | Document, remembered: str) -> int:
        """Insert the row of a document and return its id."""
        values = (draft.digest, draft.kind, draft.title, json.dumps(draft.notes), draft.previous, remembered)
        columns = "digest, kind, title, notes, previous, remembered"
        return self.connection.insert_row(f"INSERT INTO documents ({columns}) VALUES (?, ?, ?, ?, ?, ?)", values)

    def add_passages(self, document_id: int, passages: EmbeddedPassages) -> None:
        """Append passages to a document."""
        first_number = self.connection.fetch_value("SELECT passages FROM documents WHERE id = ?", (document_id,))
        sizes = self.rows.insert_passages(self.connection, document_id, first_number, passages)
        update_sizes = "UPDATE documents SET passages = passages + ?, characters = characters + ? WHERE id = ?"
        self.connection.execute(update_sizes, (*sizes, document_id))

    def update_metadata(self, document_id: int, draft: Draft) -> None:
        """Replace digest, title, notes and previous version of a document by the draft's."""
        values = (draft.digest, draft.title, json.dumps(draft.notes), draft.previous, document_id)
        update = "UPDATE documents SET digest = ?, title = ?, notes = ?, previous = ? WHERE id = ?"
        self.connection.execute(update, values)

    def restore_document(
        self,
        document: Document,
        passages: EmbeddedPassages,
        file_records: Sequence[FileRecord],
        events: Sequence[HistoryEvent],
    ) -> int:
        """Store a document of another memory with its history; return its id here."""
        document_id = self.insert_document(document, document.remembered)
        self.add_passages(document_id, passages)
        for record in file_records:
            self.replace_file_record(record._replace(document=document_id))
        for event in events:
            self.record_event(document_id, event.what, event.path, event.at)
        if document.retired is not None:
            self.retire_document(document_id, document.retired)
        return document_id

    def put_file_record(self, record: FileRecord, action: str) -> None:
        """Record that a file holds a document, instead of what it held before.

        ``action`` goes into the history; empty: nothing does.
        """
        if not self.lock_active_document(record.document):
            raise RaceError(f"{self.location}: document {record.document} is no longer active; try again")
        previous_id = self.replace_file_record(record)
        if action:
            self.record_event(record.document, action, record.path)
        if previous_id is not None and previous_id != record.document:
            self.retire_if_unused(previous_id, "superseded")

    def replace_file_record(self, record: FileRecord) -> int | None:
        """Record the file of a document; return the document that it held before."""
        previous_id = self.delete_file_record(record.path)
        self.connection.execute("INSERT INTO places VALUES (?, ?, ?, ?)", record)
        return previous_id

    def delete_file_record(self, path: str) -> int | None:
        """Delete the record of a file; return the document that it held."""
        select = f"SELECT document FROM places WHERE path = ?{self.connection.row_lock}"
        document_id = self.connection.fetch_value(select, (path,))
        if document_id is not None:
            self.connection.execute("DELETE FROM places WHERE path = ?", (path,))
        return document_id

    def remove_file_record(self, path: str) -> None:
        """Remove the record of a file; retire its document if no other file holds it."""
        document_id = self.delete_file_record(path)
        if document_id is not None:
            self.record_event(document_id, "gone", path)
            self.retire_if_unused(document_id, "")

    def lock_active_document(self, document_id: int) -> bool:
        """Lock a document for the transaction; return whether it exists and is active."""
        select = f"SELECT retired IS NULL FROM documents WHERE id = ?{self.connection.row_lock}"
        return bool(self.connection.fetch_value(select, (document_id,)))

    def retire_if_unused(self, document_id: int, action: str) -> None:
        """Retire a document, if no file holds it; ``action`` goes into its history."""
        select_record = "SELECT 1 FROM places WHERE document = ? LIMIT 1"
        if not self.lock_active_document(document_id) or self.connection.fetch_value(select_record, (document_id,)):
            return
        if action:
            self.record_event(document_id, action, "")
        self.retire_document(document_id, get_utc_time())

    def retire_document(self, document_id: int, retired_at: str) -> None:
        """Take a document out of the indexes; its text stays."""
        self.rows.unindex_document(self.connection, document_id)
        self.connection.execute("UPDATE documents SET retired = ? WHERE id = ?", (retired_at, document_id))

    def record_event(self, document_id: int, action: str, path: str, at: str | None = None) -> None:
        """Append an event to the history, of now or of another time."""
        event = HistoryEvent(document_id, at or get_utc_time(), action, path)
        self.connection.execute("INSERT INTO events (document, at, what, path) VALUES (?, ?, ?, ?)", event)

    @contextmanager
    def lock_erasing(self) -> Iterator[None]:
        """Erase and scrub in the block, while no other process does."""
        yield

    def resume_scrub(self) -> bool | None:
        """Scrub what a killed process left, if nobody has to be waited for.

        Return whether that worked; None if another process is at it.
        """
        return self.scrub()

    def has_pending_scrub(self) -> bool:
        """Return whether something was erased and is not scrubbed yet."""
        return self.connection.fetch_value("SELECT 1 FROM facts WHERE name = 'remains'") is not None

    def select_documents(self, where: str) -> str:
        """Return a query for the documents that a WHERE clause selects, in order."""
        paths = f"(SELECT {self.connection.path_array} FROM places WHERE document = documents.id)"
        return f"SELECT {DOCUMENT_COLUMNS}, {paths} FROM documents WHERE {where} ORDER BY id"

    def get_document(self, document_id: int) -> Document | None:
        """Return a document by its id, active or retired."""
        rows = self.connection.fetch_all(self.select_documents("id = ?"), (document_id,))
        return parse_document_row(rows[0]) if rows else None

    def list_versions(self, document_id: int) -> list[Document]:
        """Return all versions of a document, older and newer ones, the oldest first."""
        select = self.select_documents(f"id IN ({SELECT_VERSIONS})")
        return [parse_document_row(row) for row in self.connection.fetch_all(select, (document_id, document_id))]

    def list_documents(self, *, retired: bool = False) -> Iterator[Document]:
        """Yield the active documents, or also the retired ones, in the order of their ids."""
        select = self.select_documents("id > ?" if retired else "id > ? AND retired IS NULL")
        yield from map(parse_document_row, self.connection.stream_rows(select, 0))

    def find_by_digest(self, digest: str) -> int | None:
        """Return the id of the active document with this digest."""
        return self.connection.fetch_value("SELECT id FROM documents WHERE digest = ? AND retired IS NULL", (digest,))

    def list_file_records(self) -> Iterator[FileRecord]:
        """Yield the records of all files, in the order of their paths."""
        rows = self.connection.stream_rows(f"{SELECT_FILE_RECORD} WHERE path > ? ORDER BY path", "")
        yield from map(FileRecord._make, rows)

    def get_file_record(self, path: str) -> FileRecord | None:
        """Return the record of a file."""
        rows = self.connection.fetch_all(f"{SELECT_FILE_RECORD} WHERE path = ?", (path,))
        return FileRecord(*rows[0]) if rows else None

    def find_by_path(self, path: str) -> list[int]:
        """Return the ids of the documents that a file holds or held."""
        select = "SELECT document FROM places WHERE path = ? UNION SELECT document FROM events WHERE path = ?"
        return [document_id for (document_id,) in self.connection.fetch_all(f"{select} ORDER BY 1", (path, path))]

    def list_events(self, document_ids: Sequence[int]) -> list[HistoryEvent]:
        """Return the history of documents, the oldest event first."""
        select = f"SELECT document, at, what, path FROM events WHERE document {self.connection.in_ids} ORDER BY id"
        rows = self.connection.fetch_all(select, (self.connection.pack_ids(document_ids),))
        return [HistoryEvent(*row) for row in rows]

    def get_slots(self, slot_ids: Sequence[int]) -> list[MemorySlot]:
        """Return slots by their ids, in the same order."""
        slots = self.read_slots(f"WHERE id {self.connection.in_ids}", self.connection.pack_ids(slot_ids))
        slots_by_id = {slot.id: slot for slot in slots}
        if missing_ids := [slot_id for slot_id in slot_ids if slot_id not in slots_by_id]:
            raise DamageError(f"{self.location}: passage {missing_ids[0]}")
        return [slots_by_id[slot_id] for slot_id in slot_ids]

    def list_slots(self, document_id: int) -> Iterator[MemorySlot]:
        """Yield the slots of a document, in the order of its text."""
        where = f"WHERE document = ? AND number > ? ORDER BY number LIMIT {BATCH_SIZE}"
        last = -1
        while slots := self.read_slots(where, document_id, last):
            yield from slots
            last = slots[-1].number

    def list_unembedded_slots(self) -> Iterator[list[MemorySlot]]:
        """Yield batches of active slots that have no vector or no sentence vectors."""
        last = 0
        while slots := self.read_slots(f"WHERE {self.unembedded} ORDER BY id LIMIT {BATCH_SIZE}", last):
            last = slots[-1].id
            yield slots

    def set_embeddings(self, slot_ids: Sequence[int], embeddings: Sequence[PassageEmbedding]) -> None:
        """Store the embeddings of slots, replacing existing ones."""
        self.vectors.write_embeddings(self.connection, zip(slot_ids, embeddings))

    def collect_stats(self) -> MemoryStats:
        """Count documents, passages, vectors and bytes."""
        tables = COUNTED_ROWS | {"sentences": self.sentence_rows, "keyed": self.keyed_rows}
        with self.connection.snapshot():
            counts = {
                name: self.connection.fetch_value(f"SELECT count(*) FROM {rows}") for name, rows in tables.items()
            }
            return MemoryStats(**counts, passages=self.count_slots(), bytes=self.count_bytes())

    def check(self) -> CheckReport:
        """Check one consistent state of the memory, without changing it."""
        return self.checks.check_memory(self.connection, self.get_model)


def ignore_notice(text: str) -> None:
    """Do nothing with a line for the user."""


def get_utc_time() -> str:
    """Return the current time in UTC, in ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")
