"""Export a memory as JSON lines, and import it: for backups, other programs, other engines.

The first line names the format. Each document is a line with its metadata, followed by one line
per passage, and one with the questions that were written for it, if any. Vectors are left out: the
import computes them again.
"""

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from mnemic.files import replace_file
from mnemic.store.contract import Document, EmbeddedPassages, FileRecord, StoreError
from mnemic.store.ingest.contents import BATCH_SIZE, embed_passages
from mnemic.store.ingest.export_reader import FORMAT_HEADER, ExportReader
from mnemic.store.ingest.questions import embed_questions
from mnemic.store.question_keys import QuestionRow
from mnemic.store.relational import Store
from mnemic.store.retrieve.embedders import Embedder
from mnemic.text.documents import Passage

DocumentKey: TypeAlias = tuple[str, str | None]


class ExportProgress(NamedTuple):
    """The progress of an export in documents, or of an import in bytes."""

    done: int
    total: int
    is_new: bool = True  # of an import: whether the document was not there before


def write_export(store: Store, path: Path) -> Iterator[ExportProgress]:
    """Write one state of all documents with their history, atomically."""
    with store.snapshot(), replace_file(path) as file:
        documents = list(store.list_documents(retired=True))
        records_by_document: dict[int, list[FileRecord]] = {}
        for record in store.list_file_records():
            records_by_document.setdefault(record.document, []).append(record)
        file.write(to_json_line(FORMAT_HEADER))
        for number, document in enumerate(documents):
            records, events = records_by_document.get(document.id, []), store.list_events([document.id])
            fields = document._asdict() | {"places": records, "events": events}
            file.write(to_json_line({"document": fields}))
            for slot in store.list_slots(document.id):
                file.write(to_json_line({"passage": list_values(slot.passage)}))
                if questions := store.get_questions([slot.id]):
                    file.write(to_json_line({"questions": questions[slot.id]}))
            yield ExportProgress(number + 1, len(documents))


def list_values(passage: Passage) -> list[Any]:
    """List the values of a passage; without boxes, they are those of older versions."""
    return list(passage) if passage.boxes else list(passage)[:-1]


def to_json_line(value: Any) -> bytes:
    """Format a value as one line of ASCII JSON."""
    return json.dumps(value, ensure_ascii=True).encode("ascii") + b"\n"


def import_export(store: Store, embedder: Embedder | None, path: Path) -> Iterator[ExportProgress]:
    """Import the documents of a file and yield the progress; skip those already stored.

    Each document is one transaction, so that an interrupted import can be run again.
    """
    known_documents = list_known_documents(store)
    imported_ids: dict[int, int] = {}  # id in the file → id here
    total_bytes = path.stat().st_size
    with path.open(encoding="utf-8") as file:
        reader = ExportReader(file, path)
        for record, passages in reader.read_documents():
            document = record.document
            if identify_document(document) in known_documents:
                deque(passages, maxlen=0)  # skip its lines
                yield ExportProgress(reader.num_bytes, total_bytes, is_new=False)
                continue
            linked = document._replace(previous=imported_ids.get(document.previous or 0))
            with store.transaction():
                embedded = embed_in_batches(passages, embedder)
                imported_ids[document.id] = store.restore_document(linked, embedded, record.file_records, record.events)
                if reader.questions:
                    restore_questions(store, imported_ids[document.id], reader.questions, embedder)
            yield ExportProgress(reader.num_bytes, total_bytes)


def restore_questions(
    store: Store, document_id: int, questions: Mapping[int, Sequence[str]], embedder: Embedder | None
) -> None:
    """Store the questions of a document's passages, by the numbers of these."""
    slots = (slot for slot in store.list_slots(document_id) if slot.number in questions)
    rows = iter([QuestionRow(slot.id, questions[slot.number]) for slot in slots])
    while batch := list(islice(rows, BATCH_SIZE)):
        store.put_questions(embed_questions(batch, embedder))


def check_export(path: Path, store: Store | None) -> None:
    """Check a whole file, and whether its documents fit into a memory, before any change.

    Raise ``StoreError`` if a file that holds a document of the memory would hold another one.
    """
    if not path.is_file():
        raise StoreError(f"there is no file {path}; give one that `mnemic export-memory` wrote")
    known_documents = list_known_documents(store) if store else set()
    holders = {record.path: record.document for record in store.list_file_records()} if store else {}
    with path.open(encoding="utf-8") as file:
        reader = ExportReader(file, path)
        for (document, _, _), passages in reader.read_documents():
            if identify_document(document) not in known_documents:
                for file_path in document.places:
                    if file_path in holders:
                        raise StoreError(
                            f"{path}, line {reader.line_number}: {file_path} holds document "
                            f"{holders[file_path]} here, and another one there; nothing was imported. Import "
                            "it into a new memory: --memory NEW.db"
                        )
            deque(passages, maxlen=0)


def list_known_documents(store: Store) -> set[DocumentKey]:
    """Return what identifies the documents of a memory in another one."""
    return set(map(identify_document, store.list_documents(retired=True)))


def identify_document(document: Document) -> DocumentKey:
    """Return the content of a document and, if it is retired, when it was remembered."""
    return document.digest, document.retired and document.remembered


def embed_in_batches(passages: Iterable[Passage], embedder: Embedder | None) -> EmbeddedPassages:
    """Yield each passage with its embedding; None without an embedder."""
    iterator = iter(passages)
    while batch := list(islice(iterator, BATCH_SIZE)):
        yield from embed_passages(batch, embedder)
