"""Read an exported memory, and believe nothing in it before it is checked.

The file may be cut short, edited by hand, or made by someone who wants to do harm. Whatever no
memory could hold is an error that names the line; what a checked file says can be stored.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TextIO, TypeVar

from mnemic.store.contract import Document, FileRecord, HistoryEvent, StoreError
from mnemic.text.documents import Box, Passage, Sentence, replace_unstorable
from mnemic.text.documents.boxes import parse_box

FORMAT_HEADER = {"format": "mnemic memory", "version": 1}
MAX_LINE_CHARS = 1 << 28
MAX_INT = 2**63 - 1  # what the engines store
T = TypeVar("T")


class DocumentRecord(NamedTuple):
    """A document of an export, with its files and its history."""

    document: Document
    file_records: list[FileRecord]
    events: list[HistoryEvent]


class ExportReader:
    """Reads the lines of an export file; errors name the line."""

    def __init__(self, file: TextIO, path: Path) -> None:
        self.file, self.path = file, path
        self.line_number = self.num_bytes = 0
        self.questions: dict[int, list[str]] = {}  # of the document that was read last, by passage
        self.seen_ids, self.seen_paths, self.seen_digests = set[int](), set[str](), set[str]()
        self.advance()

    def advance(self) -> None:
        """Read the next line into ``row``, as a JSON value; None at the end."""
        self.line_number += 1
        text = self.parse(self.file.readline, MAX_LINE_CHARS)
        self.num_bytes += len(text)  # the file is ASCII
        if len(text) == MAX_LINE_CHARS:
            self.fail(f"it is longer than {MAX_LINE_CHARS} characters")
        self.row = self.parse(json.loads, text) if text else None

    def read_documents(self) -> Iterator[tuple[DocumentRecord, Iterator[Passage]]]:
        """Yield each document with its passages, which must be read before the next one."""
        if self.row != FORMAT_HEADER:
            raise StoreError(f"{self.path} is no memory that `mnemic export-memory` wrote")
        self.advance()
        while self.row is not None:
            record = self.parse(parse_document, self.row)
            self.check_new(record)
            yield record, self.read_passages(record.document)

    def check_new(self, record: DocumentRecord) -> None:
        """Raise ``StoreError`` if another document of the file has its id, content or file."""
        document = record.document
        digests = set() if document.retired else {document.digest}
        if document.id in self.seen_ids or digests & self.seen_digests:
            self.fail(f"document {document.id} is there twice")
        if repeated_paths := self.seen_paths.intersection(document.places):
            self.fail(f"another document is in the same file, {min(repeated_paths)!r}")
        self.seen_ids.add(document.id)
        self.seen_digests |= digests
        self.seen_paths.update(document.places)

    def read_passages(self, document: Document) -> Iterator[Passage]:
        """Yield the passages of a document, up to the line of the next one."""
        num_passages = num_characters = 0
        self.questions = {}
        self.advance()
        while isinstance(self.row, dict) and "passage" in self.row:
            passage = self.parse(parse_passage, self.row)
            num_passages, num_characters = num_passages + 1, num_characters + len(passage.text)
            yield passage
            self.advance()
            if isinstance(self.row, dict) and "questions" in self.row:
                self.questions[num_passages - 1] = self.parse(parse_questions, self.row)
                self.advance()
        if (num_passages, num_characters) != (document.passages, document.characters) or not num_passages:
            self.fail(
                f"document {document.id} has {num_passages} passages of {num_characters} characters before this "
                f"line; it should have {document.passages} of {document.characters}, and at least one"
            )

    def parse(self, parser: Callable[[Any], T], value: Any) -> T:
        """Return ``parser(value)``; raise its errors as ``StoreError`` with the line number."""
        try:
            return parser(value)
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            self.fail(f"{type(error).__name__}: {error}"[:500])

    def fail(self, reason: str) -> NoReturn:
        """Raise a ``StoreError`` that names the line."""
        raise StoreError(
            f"{self.path}, line {self.line_number} is not as `mnemic export-memory` writes it: {reason}"
        ) from None


def parse_document(row: Mapping[str, Any]) -> DocumentRecord:
    """Parse a document line into the document, its files and its history."""
    (fields,) = check_keys(row, ["document"]).values()
    check_keys(fields, (*Document._fields, "events"))
    document_id = check_int(fields["id"], minimum=1)
    file_records = [parse_file_record(values, document_id) for values in check_list(fields["places"])]
    events = [parse_event(values, document_id) for values in check_list(fields["events"])]
    retired, previous = fields["retired"], fields["previous"]
    document = Document(
        id=document_id,
        digest=check_text(fields["digest"], minimum=1),
        kind=check_text(fields["kind"], minimum=1),
        title=check_text(fields["title"]),
        notes=tuple(map(check_text, check_list(fields["notes"]))),
        previous=None if previous is None else check_int(previous, minimum=1),
        remembered=check_time(fields["remembered"]),
        retired=None if retired is None else check_time(retired),
        passages=check_int(fields["passages"]),
        characters=check_int(fields["characters"]),
        places=tuple(record.path for record in file_records),
    )
    if document.previous == document.id:
        raise ValueError("a document supersedes itself")
    if document.retired and document.places:
        raise ValueError("a retired document is in a file")
    return DocumentRecord(document, file_records, events)


def parse_file_record(values: Any, document_id: int) -> FileRecord:
    """Parse the record of a file that holds a document."""
    path, holder, size, modified_ns = check_list(values)
    check_same(holder, document_id)
    return FileRecord(
        check_text(path, minimum=1), document_id, check_int(size), check_int(modified_ns, minimum=-MAX_INT)
    )


def parse_event(values: Any, document_id: int) -> HistoryEvent:
    """Parse an event in the history of a document."""
    holder, at, action, path = check_list(values)
    check_same(holder, document_id)
    return HistoryEvent(document_id, check_time(at), check_text(action, minimum=1), check_text(path))


def parse_passage(row: Mapping[str, Any]) -> Passage:
    """Parse a passage line and check its sentences, their offsets and boxes."""
    (values,) = check_keys(row, ["passage"]).values()
    text, page, rows, *extra = check_list(values)
    (box_rows,) = extra or [[]]  # older versions have none
    text = check_text(text, minimum=1)
    sentences = tuple(Sentence(*map(check_int, check_list(row))) for row in check_list(rows))
    if not sentences:
        raise ValueError("a passage has no sentences")
    if any(sentence.end <= sentence.start or sentence.end > len(text) for sentence in sentences):
        raise ValueError("a sentence is outside its text")
    starts = [sentence.start for sentence in sentences]
    if starts != sorted(set(starts)):
        raise ValueError("the sentences of a passage are not in order")
    passage = Passage(text, None if page is None else check_int(page), sentences)
    return passage._replace(boxes=parse_boxes(passage, box_rows))


def parse_questions(row: Mapping[str, Any]) -> list[str]:
    """Parse the questions that were written for a passage, each of one line."""
    (values,) = check_keys(row, ["questions"]).values()
    questions = [check_text(question, minimum=1) for question in check_list(values)]
    if not questions or any(question.splitlines() != [question] for question in questions):
        raise ValueError("the questions of a passage are texts of one line, at least one")
    return questions


def parse_boxes(passage: Passage, rows: Any) -> tuple[Box, ...]:
    """Parse the boxes of a passage, one per line or none."""
    boxes = tuple(map(parse_box, check_list(rows)))
    if boxes and len(boxes) != passage.count_lines():
        raise ValueError(f"a passage of {passage.count_lines()} lines has {len(boxes)} boxes")
    return boxes


def check_keys(value: Any, keys: Sequence[str]) -> dict[str, Any]:
    """Return ``value`` if it is a dict with exactly these keys."""
    if not isinstance(value, dict) or value.keys() != set(keys):
        raise ValueError(f"expected {', '.join(keys)}")
    return value


def check_list(value: Any) -> list[Any]:
    """Return ``value`` if it is a list."""
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is not a list")
    return value


def check_int(value: Any, *, minimum: int = 0) -> int:
    """Return ``value`` if it is an integer that can be stored."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} is not an integer")
    if not minimum <= value <= MAX_INT:
        raise ValueError(f"{value} is not between {minimum} and 2^63")
    return value


def check_text(value: Any, *, minimum: int = 0) -> str:
    """Return ``value`` if it is a text that can be stored."""
    if not isinstance(value, str) or len(value) < minimum:
        raise TypeError(f"{value!r} is not a text" + (" with anything in it" if minimum else ""))
    if replace_unstorable(value) != value:
        raise ValueError("a text has characters that cannot be stored")
    return value


def check_time(value: Any) -> str:
    """Return ``value`` if it is a time in ISO 8601."""
    datetime.fromisoformat(check_text(value))
    return str(value)


def check_same(holder: Any, document_id: int) -> None:
    """Raise ``ValueError`` if a line names another document than its own."""
    if check_int(holder) != document_id:
        raise ValueError(f"a line of document {document_id} names document {holder}")
