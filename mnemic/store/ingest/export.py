"""Export a memory as JSON lines, and import it: for backups, other programs, other engines.

The first line names the format. Each document is a line with its metadata, followed by one line
per passage. Vectors are left out: the import computes them again.
"""

import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

from mnemic.store.contract import Document, EmbeddedPassages, FileRecord, HistoryEvent, StoreError
from mnemic.store.ingest.remember import BATCH_SIZE, embed_passages
from mnemic.store.relational import Store
from mnemic.store.retrieve.embedders import Embedder
from mnemic.text.documents import Passage, Sentence

FORMAT_HEADER = {"format": "mnemic memory", "version": 1}
DocumentRecord: TypeAlias = tuple[Document, list[FileRecord], list[HistoryEvent]]
T = TypeVar("T")


class ExportProgress(NamedTuple):
    """The progress of an export in documents, or of an import in bytes."""

    done: int
    total: int


def write_export(store: Store, path: Path) -> Iterator[ExportProgress]:
    """Write all documents with their history to a temporary file, then rename it."""
    documents = list(store.list_documents(retired=True))
    records_by_document: dict[int, list[FileRecord]] = {}
    for record in store.list_file_records():
        records_by_document.setdefault(record.document, []).append(record)
    temporary = path.with_name(f".{path.name}.new")
    try:
        with open(temporary, "w", encoding="utf-8", opener=partial(os.open, mode=0o600)) as file:
            file.write(to_json_line(FORMAT_HEADER))
            for number, document in enumerate(documents):
                records, events = records_by_document.get(document.id, []), store.list_events([document.id])
                fields = document._asdict() | {"places": records, "events": events}
                file.write(to_json_line({"document": fields}))
                for slot in store.list_slots(document.id):
                    file.write(to_json_line({"passage": list(slot.passage)}))
                yield ExportProgress(number + 1, len(documents))
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def to_json_line(value: Any) -> str:
    """Format a value as one line of ASCII JSON."""
    return json.dumps(value, ensure_ascii=True) + "\n"


def import_export(store: Store, embedder: Embedder | None, path: Path) -> Iterator[ExportProgress]:
    """Import the documents of a file and yield the progress; skip those already stored.

    Each document is one transaction, so that an interrupted import can be run again.
    """
    known_documents = {
        (stored.digest, stored.retired and stored.remembered) for stored in store.list_documents(retired=True)
    }
    imported_ids: dict[int, int] = {}  # id in the file → id here
    total_bytes = path.stat().st_size
    for bytes_read, passages, (document, file_records, events) in read_documents(path):
        if (document.digest, document.retired and document.remembered) in known_documents:
            deque(passages, maxlen=0)  # skip its lines
            yield ExportProgress(bytes_read, total_bytes)
            continue
        previous = imported_ids.get(document.previous) if document.previous else None
        linked = document._replace(previous=previous)
        with store.transaction():
            document_id = store.restore_document(linked, embed_in_batches(passages, embedder), file_records, events)
        imported_ids[document.id] = document_id
        yield ExportProgress(bytes_read, total_bytes)


def check_export(path: Path) -> None:
    """Parse an export file to its end, to raise its errors before anything is written."""
    for _, passages, _ in read_documents(path):
        deque(passages, maxlen=0)


def embed_in_batches(passages: Iterable[Passage], embedder: Embedder | None) -> EmbeddedPassages:
    """Yield each passage with its embedding; None without an embedder."""
    iterator = iter(passages)
    while batch := list(islice(iterator, BATCH_SIZE)):
        yield from embed_passages(batch, embedder)


def read_documents(path: Path) -> Iterator[tuple[int, Iterator[Passage], DocumentRecord]]:
    """Yield the bytes read so far, the passages and the record of each document.

    Read the passages of a document, which are a stream, before the next document.
    """
    with path.open(encoding="utf-8") as file:
        reader = ExportReader(file, path)
        if reader.row != FORMAT_HEADER:
            raise StoreError(f"{path} is no memory that `mnemic export-memory` wrote")
        reader.advance()
        while reader.row is not None:
            record = reader.parse(parse_document, reader.row)
            yield reader.num_bytes, reader.read_passages(), record


class ExportReader:
    """Reads the lines of an export file; errors name the line."""

    def __init__(self, file: Iterable[str], path: Path) -> None:
        self.lines, self.path = iter(file), path
        self.line_number = self.num_bytes = 0
        self.advance()

    def advance(self) -> None:
        """Read the next line into ``row``, as a JSON value; None at the end."""
        self.line_number += 1
        text = self.parse(lambda lines: next(lines, None), self.lines)
        self.num_bytes += len(text or "")  # the file is ASCII
        self.row = None if text is None else self.parse(json.loads, text)

    def read_passages(self) -> Iterator[Passage]:
        """Yield the passages of a document, up to the line of the next one."""
        self.advance()
        while isinstance(self.row, dict) and "passage" in self.row:
            yield self.parse(parse_passage, self.row)
            self.advance()

    def parse(self, parser: Callable[[Any], T], value: Any) -> T:
        """Return ``parser(value)``; raise its errors as ``StoreError`` with the line number."""
        try:
            return parser(value)
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise StoreError(
                f"{self.path}, line {self.line_number} is not as `mnemic export-memory` writes it: "
                f"{type(error).__name__}: {error}"
            ) from None


def parse_document(row: dict[str, Any]) -> DocumentRecord:
    """Parse a document line into the document, its files and its history."""
    fields = dict(row["document"])
    file_records = [FileRecord(str(a), check_int(b), check_int(c), check_int(d)) for a, b, c, d in fields.pop("places")]
    events = [HistoryEvent(check_int(a), str(b), str(c), str(d)) for a, b, c, d in fields.pop("events")]
    fields |= {"notes": tuple(map(str, fields["notes"])), "places": tuple(record.path for record in file_records)}
    for name in ("digest", "kind", "title", "remembered"):
        fields[name] = str(fields[name])
    return Document(**fields), file_records, events


def parse_passage(row: dict[str, Any]) -> Passage:
    """Parse a passage line and check its sentence offsets."""
    text, page, sentences = row["passage"]
    parsed_sentences = tuple(Sentence(*map(check_int, sentence)) for sentence in sentences)
    if not isinstance(text, str) or not text:
        raise ValueError("a passage has no text")
    if not all(0 <= sentence.start < sentence.end <= len(text) for sentence in parsed_sentences):
        raise ValueError("a sentence is outside its text")
    return Passage(text, None if page is None else check_int(page), parsed_sentences)


def check_int(value: Any) -> int:
    """Return ``value`` if it is an int, else raise ``TypeError``."""
    if not isinstance(value, int):
        raise TypeError(f"{value!r} is not an integer")
    return value
