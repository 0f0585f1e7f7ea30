"""Remember files: read those that changed, embed their passages and store them."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

from mnemic.checkpoint.atomic_files import hash_file
from mnemic.store.contract import Document, Draft, EmbeddedPassages, FileRecord, RaceError, StoreError
from mnemic.store.ingest.retry import retry_call, retry_iterator
from mnemic.store.relational import Store
from mnemic.store.retrieve.embedders import Embedder, HashedNgrams
from mnemic.store.retrieve.query_words import check_chinese
from mnemic.text.documents import (
    Anchor,
    DocumentError,
    DocumentParser,
    DocumentPart,
    DocumentPiece,
    FileListing,
    Note,
    Passage,
    Title,
    kind_of,
    may_be_file,
    replace_unstorable,
    split_passages,
)

BATCH_SIZE = 64  # passages per call of the embedder
NOTE_KIND = "note"  # the kind of a document that came without a file
MAX_TITLE_LENGTH = 60  # characters of a note's first line that become its title
SETTLED_NS = 2_000_000_000  # after this time, another change gives a file another timestamp

Outcome = Literal["new", "changed", "moved", "copied", "unchanged", "gone", "broken", "reading"]


class RememberStep(NamedTuple):
    """The outcome of one file; what it reports as remembered is committed."""

    path: str
    outcome: Outcome  # "reading": a large file is still being read
    document: int | None
    passages: int
    notes: tuple[str, ...]  # why it is broken, or which parts could not be read
    done: int  # bytes of all files, so far
    total: int


class PendingFile(NamedTuple):
    """A file that was read and is still to be written."""

    path: Path
    draft: Draft
    stat: os.stat_result
    passages: list[Passage]


class RememberRun:
    """One run of ``remember`` over a list of files."""

    def __init__(self, store: Store, load_embedder: Callable[[], Embedder | None], parser: DocumentParser) -> None:
        self.store = store
        self.load_embedder = load_embedder  # on its first call, when the first passage is embedded
        self.parser = parser
        self.pending: list[PendingFile] = []
        self.done = self.total = 0

    def remember_files(self, listing: FileListing) -> Iterator[RememberStep]:
        """Remember files and yield their steps; small ones are committed in batches.

        Folders that could not be listed are reported as broken.
        """
        for folder in listing.unreadable:
            yield self.make_step(folder.path, "broken", notes=(folder.reason,))
        self.total = sum(map(get_file_size, listing.files))
        for path in listing.files:
            done_before = self.done
            try:
                size = path.stat().st_size
                yield from retry_iterator(partial(self.remember_file, path))
                self.done = done_before + size
            except (DocumentError, OSError) as error:
                reason = error.strerror if isinstance(error, OSError) else None
                yield self.make_step(path, "broken", notes=(reason or str(error),))
        yield from self.flush_pending()

    def remember_file(self, path: Path) -> Iterator[RememberStep]:
        """Remember a file, unless it is unchanged."""
        stat = path.stat()
        if not str(path).isascii() and replace_unstorable(str(path)) != str(path):
            raise DocumentError("its name is no unicode text; give it another one")
        known_record = self.store.get_file_record(str(path))
        if known_record and (known_record.size, known_record.modified_ns) == (stat.st_size, stat.st_mtime_ns):
            yield self.make_step(path, "unchanged", known_record.document)
            return
        digest = hash_file(path)
        if any(file.draft.digest == digest for file in self.pending):
            yield from self.flush_pending()
        twin = self.store.find_by_digest(digest)
        if twin is not None:
            yield self.record_known_content(path, stat, known_record, twin)
        else:
            yield from self.read_file(path, stat, digest, known_record.document if known_record else None)

    def record_known_content(
        self, path: Path, stat: os.stat_result, known_record: FileRecord | None, document_id: int
    ) -> RememberStep:
        """Record a file whose content is stored already: unchanged, moved or copied."""
        holder = self.store.get_document(document_id)
        assert holder is not None
        missing_paths = [old_path for old_path in holder.places if old_path != str(path) and not may_be_file(old_path)]
        is_same = known_record is not None and known_record.document == document_id
        outcome: Outcome = "unchanged" if is_same else "moved" if missing_paths else "copied"
        with self.store.transaction():
            self.store.put_file_record(make_file_record(path, document_id, stat), "" if is_same else outcome)
            for missing_path in missing_paths:
                self.store.remove_file_record(missing_path)
        return self.make_step(path, outcome, document_id)

    def read_file(self, path: Path, stat: os.stat_result, digest: str, previous: int | None) -> Iterator[RememberStep]:
        """Read a file; queue a small one, write a large one while it is read."""
        metadata: list[Note | Title] = []
        pieces = split_off_metadata(self.parser.read(path, kind_of(path)), metadata)
        file_passages = split_passages(pieces, (self.load_embedder() or HashedNgrams()).count_tokens)
        batch = list(islice(file_passages, BATCH_SIZE))
        if not batch:
            reasons = [entry.text for entry in metadata if isinstance(entry, Note)]
            raise DocumentError("; ".join(reasons[:5]) or "there is no text in it")
        for passage in batch:
            check_chinese(passage.text)
        file = PendingFile(path, make_draft(path, digest, previous, metadata), stat, batch)
        if len(batch) == BATCH_SIZE:
            yield from self.flush_pending()
            yield from self.write_large_file(file, file_passages, metadata)
            return
        check_unchanged(path, stat)
        self.pending.append(file)
        if sum(len(file.passages) for file in self.pending) >= BATCH_SIZE:
            yield from self.flush_pending()

    def write_large_file(
        self, file: PendingFile, rest: Iterator[Passage], metadata: list[Note | Title]
    ) -> Iterator[RememberStep]:
        """Write a file batch by batch while it is read, in one transaction."""
        num_passages, done_before = 0, self.done
        with self.store.transaction():
            document_id, batch = self.store.add_document(file.draft), file.passages
            while batch:
                self.store.add_passages(document_id, embed_passages(batch, self.load_embedder()))
                num_passages += len(batch)
                self.done += sum(len(passage.text) for passage in batch)
                self.done = min(self.done, done_before + file.stat.st_size)
                yield self.make_step(file.path, "reading", passages=num_passages)
                batch = list(islice(rest, BATCH_SIZE))
            check_unchanged(file.path, file.stat)
            draft = make_draft(file.path, file.draft.digest, file.draft.previous, metadata)
            self.store.update_metadata(document_id, draft)
            step = self.finish_file(file._replace(draft=draft), document_id, num_passages)
        yield step

    def flush_pending(self) -> Iterator[RememberStep]:
        """Embed and write all pending files in one transaction."""
        pending, self.pending = self.pending, []
        if not pending:
            return
        pending_passages = [passage for file in pending for passage in file.passages]
        pairs = iter(embed_passages(pending_passages, self.load_embedder()))
        files = [(file, [next(pairs) for _ in file.passages]) for file in pending]
        try:
            yield from self.write_files(files)
        except RaceError:  # another process stored the same: retry file by file
            for file, file_passages in files:
                yield retry_call(partial(self.write_file, file, file_passages))

    def write_files(self, files: Sequence[tuple[PendingFile, EmbeddedPassages]]) -> list[RememberStep]:
        """Write files with their embedded passages in one transaction."""
        with self.store.transaction():
            return [
                self.finish_file(file, self.store.add_document(file.draft, file_passages), len(file.passages))
                for file, file_passages in files
            ]

    def finish_file(self, file: PendingFile, document_id: int, num_passages: int) -> RememberStep:
        """Record a file whose document is written, and make its step."""
        self.store.put_file_record(make_file_record(file.path, document_id, file.stat), "")
        outcome: Outcome = "new" if file.draft.previous is None else "changed"
        return self.make_step(file.path, outcome, document_id, num_passages, file.draft.notes)

    def write_file(self, file: PendingFile, file_passages: EmbeddedPassages) -> RememberStep:
        """Write one file, unless another process has stored its content meanwhile."""
        known_record, twin = self.store.get_file_record(str(file.path)), self.store.find_by_digest(file.draft.digest)
        if twin is not None:
            return self.record_known_content(file.path, file.stat, known_record, twin)
        draft = file.draft._replace(previous=known_record.document if known_record else None)
        return self.write_files([(file._replace(draft=draft), file_passages)])[0]

    def remove_missing_files(self, folders: Sequence[str]) -> Iterator[RememberStep]:
        """Remove the records of files of these folders that no longer exist."""
        roots = [os.path.join(folder, "") for folder in folders]
        missing = [
            record
            for record in self.store.list_file_records()
            if any(record.path.startswith(root) for root in roots) and not may_be_file(record.path)
        ]
        for record in missing:
            retry_call(partial(self.remove_path, record.path))
            yield self.make_step(Path(record.path), "gone", record.document)

    def remove_path(self, path: str) -> None:
        """Remove the record of a file in a transaction of its own."""
        with self.store.transaction():
            self.store.remove_file_record(path)

    def make_step(
        self, path: Path, outcome: Outcome, document_id: int | None = None, passages: int = 0, notes: Sequence[str] = ()
    ) -> RememberStep:
        """Make a step with the current progress."""
        name, counts = replace_unstorable(str(path)), (self.done, self.total)
        return RememberStep(name, outcome, document_id, passages, tuple(notes), *counts)


def remember_note(store: Store, embedder: Embedder | None, text: str, title: str, previous: Document | None) -> int:
    """Store a text that is in no file; return the id of its document."""
    text = replace_unstorable(text)
    digest = sha256(f"{NOTE_KIND}\n{text}".encode()).hexdigest()
    if (known_id := store.find_by_digest(digest)) is not None:
        if previous is not None and previous.id != known_id:
            raise StoreError(f"document {known_id} says that already; forget {previous.id} instead")
        return known_id
    check_chinese(text)
    piece = DocumentPiece(text, (Anchor(0, 0, 1),))
    note_passages = list(split_passages([piece], (embedder or HashedNgrams()).count_tokens))
    if not note_passages:
        raise DocumentError("the text is empty; there is nothing to remember")
    name = replace_unstorable(title) or note_passages[0].text[:MAX_TITLE_LENGTH].split("\n")[0]
    with store.transaction():
        for path in previous.places if previous else ():
            store.remove_file_record(path)
        draft = Draft(digest, NOTE_KIND, name, (), previous.id if previous else None)
        return store.add_document(draft, embed_passages(note_passages, embedder))


def check_unchanged(path: Path, before: os.stat_result) -> None:
    """Raise ``DocumentError`` if a file changed since ``before``."""
    now = path.stat()
    if (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
        raise DocumentError("it was changed while it was read; remember it again")


def make_file_record(path: Path, document_id: int, stat: os.stat_result) -> FileRecord:
    """Make the record of a file that holds a document.

    The time of a file that changed just now is stored as 0, so that it is read again: within the
    clock's resolution it may change once more.
    """
    is_recent = time.time_ns() - stat.st_mtime_ns < SETTLED_NS
    return FileRecord(str(path), document_id, stat.st_size, 0 if is_recent else stat.st_mtime_ns)


def get_file_size(path: Path) -> int:
    """Return the size of a file in bytes; 0 if it cannot be read."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def embed_passages(batch: Sequence[Passage], embedder: Embedder | None) -> EmbeddedPassages:
    """Pair each passage with its embedding; None without an embedder."""
    if embedder is None:
        return [(passage, None) for passage in batch]
    return list(zip(batch, embedder.embed_passages([passage.text for passage in batch])))


def split_off_metadata(elements: Iterable[DocumentPart], metadata: list[Note | Title]) -> Iterator[DocumentPiece]:
    """Yield the pieces; append notes and titles to ``metadata``."""
    for element in elements:
        if isinstance(element, DocumentPiece):
            yield element
        else:
            metadata.append(element)


def make_draft(path: Path, digest: str, previous: int | None, metadata: Sequence[Note | Title]) -> Draft:
    """Make the draft of a file, with its first title and all notes."""
    titles = [entry.text for entry in metadata if isinstance(entry, Title)]
    notes = tuple(entry.text for entry in metadata if isinstance(entry, Note))
    title = titles[0] if titles else path.stem
    return Draft(digest, kind_of(path), title, notes, previous, str(path))
