"""Remember files: read those that changed, embed their passages and store them."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from mnemic.store.contract import (
    Document,
    Draft,
    EmbeddedPassage,
    EmbeddedPassages,
    FileRecord,
    PassageEmbedding,
    RaceError,
)
from mnemic.store.ingest.contents import (
    BATCH_SIZE,
    FileMetadata,
    PieceContent,
    embed_passages,
    find_container,
    make_file_record,
    read_contents,
)
from mnemic.store.ingest.forget import finish_scrub
from mnemic.store.ingest.parts import (
    PART_PASSAGES,
    MemberPassages,
    PartWriter,
    list_member_records,
    list_partial_documents,
    remove_member_records,
)
from mnemic.store.ingest.retry import retry_call, retry_iterator
from mnemic.store.ingest.steps import Outcome, RememberStep, find_install_command
from mnemic.store.relational import Store
from mnemic.store.retrieve.query_words import check_chinese
from mnemic.store.retrieve.stored_embedder import StoredEmbedder
from mnemic.text.documents import (
    DocumentError,
    DocumentParser,
    FileListing,
    OpenFile,
    Passage,
    kind_of,
    may_be_file,
    replace_unstorable,
)

NO_TEXT = "there is no text in it"
EMPTY_FILE = "the file is empty"  # in a folder it is passed over
MAX_REASONS = 5  # that the message about a file without text has


class PendingDocument(NamedTuple):
    """A document that was read and is still to be written."""

    draft: Draft
    passages: list[Passage]


class PendingFile(NamedTuple):
    """A file, with the documents inside it, that is still to be written."""

    path: Path
    digest: str
    stat: os.stat_result
    documents: list[PendingDocument]
    notes: tuple[str, ...]

    @property
    def passages(self) -> list[Passage]:
        """The passages of all its documents."""
        return [passage for document in self.documents for passage in document.passages]


class RememberRun:
    """One run of ``remember`` over a list of files."""

    def __init__(
        self,
        store: Store,
        load_embedder: Callable[[], StoredEmbedder],
        parser: DocumentParser,
        password: str | None = None,
    ) -> None:
        self.store = store
        self.load_embedder = load_embedder  # on its first call, when the first passage is embedded
        self.parser = parser
        self.password = password
        self.pending: list[PendingFile] = []
        self.has_new_files = False  # whether any file was new
        self.done = self.total = 0
        self.partial_documents: list[Document] | None = None  # None: to be listed

    def get_partial_documents(self) -> list[Document]:
        """Return the documents that are read in part, listed after each large file."""
        if self.partial_documents is None:
            self.partial_documents = list_partial_documents(self.store)
        return self.partial_documents

    def remember_files(self, listing: FileListing) -> Iterator[RememberStep]:
        """Remember files and yield their steps; small ones are committed in batches.

        Folders that could not be listed are reported as broken, and what is not read as skipped.
        """
        for folder in listing.unreadable:
            yield self.make_step(folder.path, "broken", notes=(folder.reason,))
        self.total = sum(map(get_file_size, listing.files))
        for path in listing.files:
            done_before = self.done
            try:
                size = path.stat().st_size
                yield from retry_iterator(partial(self.remember_file, path, listing.roots[path]))
                self.done = done_before + size
            except (DocumentError, OSError, MemoryError) as error:
                reason = describe_error(error)
                is_optional = reason == EMPTY_FILE or find_install_command(reason)
                is_skipped = is_optional and not listing.is_given(path)
                yield self.make_step(path, "skipped" if is_skipped else "broken", notes=(reason,))
        yield from self.flush_pending()
        for file in listing.skipped:
            yield self.make_step(file.path, "skipped", notes=(file.reason,))
        finish_scrub(self.store)

    def remember_file(self, path: Path, root: Path) -> Iterator[RememberStep]:
        """Remember a file, unless it is unchanged; ``root`` is the folder it must be in."""
        if not str(path).isascii() and replace_unstorable(str(path)) != str(path):
            raise DocumentError("its name is no unicode text; give it another one")
        known_record = self.store.get_file_record(str(path))
        with OpenFile(path, root) as file:
            size_and_time = (file.stat.st_size, file.stat.st_mtime_ns)
            if known_record and (known_record.size, known_record.modified_ns) == size_and_time:
                yield self.make_step(path, "unchanged", known_record.document)
                return
            if not file.stat.st_size:
                raise DocumentError(NO_TEXT if known_record else EMPTY_FILE)
            digest = file.hash_content()
            if any(pending.digest == digest for pending in self.pending):
                yield from self.flush_pending()
            twin = self.store.find_by_digest(digest)
            if twin is not None:
                yield self.record_known_content(path, file.stat, known_record, twin)
            else:
                yield from self.read_file(file, digest)

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
            action = "" if is_same else outcome
            self.store.put_file_record(make_file_record(str(path), document_id, stat), action)
            for old_path in holder.places[:1]:  # every place of a content has the same members
                records = list_member_records(self.store, old_path)
                member_paths = [f"{path}{record.path.removeprefix(old_path)}" for record in records]
                for member_path, record in zip(member_paths, records):
                    self.store.put_file_record(make_file_record(member_path, record.document, stat), action)
                remove_member_records(self.store, str(path), member_paths)
            for missing_path in missing_paths:
                self.store.remove_file_record(missing_path)
                remove_member_records(self.store, missing_path, ())
        return self.make_step(path, outcome, document_id)

    def read_file(self, file: OpenFile, digest: str) -> Iterator[RememberStep]:
        """Read a file; queue a small one, write a large one in parts."""
        metadata, self.has_new_files = FileMetadata(file.path, digest), True
        writer = PartWriter(self.store, metadata, self.get_partial_documents())
        parts = self.parser.read(file, kind_of(file.path), self.password)
        contents = read_contents(parts, self.load_embedder().count_tokens, metadata, writer.position)
        first_contents, num_passages = list[PieceContent](), 0
        for content in contents:
            first_contents.append(content)
            num_passages += len(content.passages)
            if num_passages >= BATCH_SIZE:
                break
        for content in first_contents:
            for passage in content.passages:
                check_chinese(passage.text)
        if num_passages >= BATCH_SIZE or writer.ids:
            yield from self.flush_pending()
            yield from self.write_in_parts(file, writer, chain(first_contents, contents))
            return
        file.check_unchanged()
        self.pending.append(make_pending_file(file, metadata, first_contents))
        if sum(len(file.passages) for file in self.pending) >= BATCH_SIZE:
            yield from self.flush_pending()

    def write_in_parts(
        self, file: OpenFile, writer: PartWriter, contents: Iterable[PieceContent]
    ) -> Iterator[RememberStep]:
        """Write a file while it is read; a part that is written stays."""
        group, done_before = list[PieceContent](), self.done
        try:
            for content in contents:
                self.done = min(self.done + content.num_characters, done_before + file.stat.st_size)
                group.append(content)
                if sum(len(content.passages) for content in group) >= PART_PASSAGES:
                    yield from self.write_part(file.path, writer, group)
                    group = []
            yield from self.write_part(file.path, writer, group)
            file.check_unchanged()
            if "" not in writer.ids:
                raise DocumentError(NO_TEXT)
            previous = self.store.get_file_record(str(file.path))
            document_id = writer.finish(file.stat)
        except (DocumentError, OSError, MemoryError):
            writer.discard()
            raise
        finally:
            self.partial_documents = None
        notes = writer.metadata.list_notes()
        yield self.make_step(file.path, "changed" if previous else "new", document_id, writer.num_passages, notes)

    def write_part(self, path: Path, writer: PartWriter, group: Sequence[PieceContent]) -> Iterator[RememberStep]:
        """Embed and write the passages of some pieces; yield a step per batch."""
        passages = iter([(content.member, passage) for content in group for passage in content.passages])
        documents: dict[str, list[tuple[Passage, PassageEmbedding | None]]] = {}
        while batch := list(islice(passages, BATCH_SIZE)):
            yield self.make_step(path, "reading", passages=writer.num_passages)
            embedded = embed_passages([passage for _, passage in batch], self.load_embedder().embedder)
            for (member, _), pair in zip(batch, embedded):
                documents.setdefault(member, []).append(pair)
        if documents:
            writer.write([MemberPassages(*item) for item in documents.items()], group[-1].position)

    def flush_pending(self) -> Iterator[RememberStep]:
        """Embed and write all pending files in one transaction."""
        pending, self.pending = self.pending, []
        if not pending:
            return
        pending_passages = [passage for file in pending for passage in file.passages]
        pairs = iter(embed_passages(pending_passages, self.load_embedder().embedder))
        files = [(file, [next(pairs) for _ in file.passages]) for file in pending]
        try:
            yield from self.write_files(files)
        except RaceError:  # another process stored the same: retry file by file
            for file, file_passages in files:
                yield retry_call(partial(self.write_file, file, file_passages))

    def write_files(self, files: Sequence[tuple[PendingFile, EmbeddedPassages]]) -> list[RememberStep]:
        """Write files with their embedded passages in one transaction."""
        with self.store.transaction():
            steps = [self.write_documents(file, iter(file_passages)) for file, file_passages in files]
        return [step._replace(num_following=len(steps) - 1 - number) for number, step in enumerate(steps)]

    def write_documents(self, file: PendingFile, pairs: Iterator[EmbeddedPassage]) -> RememberStep:
        """Write the documents of one file, and make its step."""
        document_ids, has_record = list[int](), self.store.get_file_record(str(file.path)) is not None
        for draft, passages in file.documents:
            known_record = self.store.get_file_record(draft.path) if has_record else None
            draft = draft._replace(previous=known_record.document if known_record else None)
            document_ids.append(self.store.add_document(draft, islice(pairs, len(passages))))
            self.store.put_file_record(make_file_record(draft.path, document_ids[-1], file.stat), "")
        if has_record:
            member_paths = {document.draft.path for document in file.documents}
            remove_member_records(self.store, str(file.path), member_paths)
        outcome: Outcome = "changed" if has_record else "new"
        return self.make_step(file.path, outcome, document_ids[0], len(file.passages), file.notes)

    def write_file(self, file: PendingFile, file_passages: EmbeddedPassages) -> RememberStep:
        """Write one file, unless another process has stored its content meanwhile."""
        known_record, twin = self.store.get_file_record(str(file.path)), self.store.find_by_digest(file.digest)
        if twin is not None:
            return self.record_known_content(file.path, file.stat, known_record, twin)
        return self.write_files([(file, file_passages)])[0]

    def remove_missing_files(self, folders: Sequence[str]) -> Iterator[RememberStep]:
        """Remove the records of files of these folders that no longer exist."""
        roots = [os.path.join(folder, "") for folder in folders]
        missing = [
            record
            for record in self.store.list_file_records()
            if any(record.path.startswith(root) for root in roots) and not may_be_file(find_container(record.path))
        ]
        removed_paths = set[str]()
        for record in missing:
            if record.path in removed_paths:  # with the file that it was inside of
                continue
            removed_paths |= retry_call(partial(self.remove_path, record.path))
            yield self.make_step(Path(record.path), "gone", record.document)

    def remove_path(self, path: str) -> set[str]:
        """Remove the record of a file and of its members; return their paths."""
        with self.store.transaction():
            member_paths = {record.path for record in list_member_records(self.store, path)}
            remove_member_records(self.store, path, ())
            self.store.remove_file_record(path)
        return member_paths

    def make_step(
        self, path: Path, outcome: Outcome, document_id: int | None = None, passages: int = 0, notes: Sequence[str] = ()
    ) -> RememberStep:
        """Make a step with the current progress."""
        name, counts = replace_unstorable(str(path)), (self.done, self.total)
        return RememberStep(name, outcome, document_id, passages, tuple(notes), *counts)


def make_pending_file(file: OpenFile, metadata: FileMetadata, contents: Sequence[PieceContent]) -> PendingFile:
    """Collect the documents of a small file; ``DocumentError`` if it has no text itself."""
    passages: dict[str, list[Passage]] = {"": []}
    for content in contents:
        passages.setdefault(content.member, []).extend(content.passages)
    if not passages[""]:
        raise DocumentError("; ".join(metadata.list_notes()[:MAX_REASONS]) or NO_TEXT)
    documents = [
        PendingDocument(metadata.make_draft(member, None), passages[member]) for member in passages if passages[member]
    ]
    return PendingFile(file.path, metadata.digest, file.stat, documents, metadata.list_notes())


def describe_error(error: DocumentError | OSError | MemoryError) -> str:
    """Say why a file could not be remembered."""
    if isinstance(error, MemoryError):
        return "remembering it needs more memory than there is"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def get_file_size(path: Path) -> int:
    """Return the size of a file in bytes; 0 if it cannot be read."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
