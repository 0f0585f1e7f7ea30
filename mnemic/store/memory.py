"""``Memory``, a persistent memory of documents: remember, ask, search, update, forget.

``remember`` writes, ``ask`` reads and responds; a ``Store`` has the documents and survives a kill.
"""

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple

from mnemic.store.answer.ask import DEFAULT_HOPS, DEFAULT_PASSAGES, AskOptions, answer_question, check_question
from mnemic.store.answer.confidence import MIN_CONFIDENCE, Reader
from mnemic.store.answer.reader import resolve_reader
from mnemic.store.answers import Answer
from mnemic.store.contract import CheckReport, Document, EmbeddingModel, HistoryEvent, MemoryStats, StoreError
from mnemic.store.ingest.check import check_store
from mnemic.store.ingest.export import ExportProgress, check_export, import_export, write_export
from mnemic.store.ingest.forget import ForgetResult, finish_scrub, forget_documents
from mnemic.store.ingest.remember import NOTE_KIND, RememberRun, RememberStep, get_file_size, remember_note
from mnemic.store.ingest.retry import retry_call
from mnemic.store.locate import locate_memory
from mnemic.store.postgres.address import Address
from mnemic.store.postgres.store import PostgresStore
from mnemic.store.relational import Store
from mnemic.store.retrieve.embedders import NO_EMBEDDER, Embedder, resolve_embedder
from mnemic.store.retrieve.hybrid import read_hop
from mnemic.store.retrieve.models import SHIPPED_MODEL
from mnemic.store.sqlite.store import SQLiteStore
from mnemic.text.documents import DEFAULT_LIMITS, DocumentError, DocumentParser, Limits, Sentence, find_files

ABOUT_LIMIT = 10_000  # passages that `forget --about` may match

ENGINES: dict[str, Callable[..., Store]] = {"sqlite": SQLiteStore, "postgresql": PostgresStore}


class Hit(NamedTuple):
    """A passage that a search returned."""

    document: int
    name: str
    page: int | None
    text: str
    sentences: tuple[Sentence, ...]
    weight: float  # of the softmax over all candidates
    score: float


class Memory:
    """A memory of documents in a file or on a server, created on first use.

    ``memory`` is a path, a name, an address such as postgresql://host/database#name, or None for
    the memory of the project or of the user. ``embedder`` (an object or a name) is for a new
    memory; an existing memory refuses any but its own, and ``reindex`` changes it. ``reader`` (an
    object, a name or a folder) answers from passages; with None an answer is a sentence.

    >>> memory = mnemic.Memory("notes.db")
    >>> memory.note("The lease ends on 30 June. The rent is 700 euros a month.")
    1
    >>> answer = memory.ask("When does the lease end?")
    >>> answer.text
    '30 June'
    >>> answer.evidence[0].sentence
    'The lease ends on 30 June.'
    >>> [step.outcome for step in memory.remember("report.md", "letters")]  # files and folders
    ['new', 'new', 'new']
    >>> memory.search("terms of the loan")[0].name.endswith("bank.txt")
    True
    >>> len(memory.forget(1, verify=True).traces)
    0
    >>> memory
    Memory('notes.db')
    >>> memory.close()

    Many threads can use one memory at the same time: each has its own connection, which is closed
    with the thread or with the memory, and those that write take turns.

    The first question imports torch, with threads that sleep while they wait for each other. A
    program that imports torch before decides that itself: if answers take several times as long on
    a busy machine, set the environment variable ``OMP_WAIT_POLICY`` to ``passive`` before.
    """

    def __init__(
        self,
        memory: str | Path | None = None,
        *,
        embedder: str | Embedder | None = None,
        reader: str | Reader | None = SHIPPED_MODEL,
    ) -> None:
        self.path = locate_memory(memory)
        self.requested_embedder = embedder
        self.reader = resolve_reader(reader)
        self.lock = RLock()  # guards the dict that follows
        self.loaded: dict[str, Any] = {}  # the store and the embedder, after their first use

    def __repr__(self) -> str:
        return f"Memory({str(self.path)!r}{'' if self.reader else ', reader=None'})"

    def __enter__(self) -> "Memory":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file or the connections; the next use opens them again."""
        with self.lock:
            if "store" in self.loaded:
                self.loaded["store"].close()
            self.loaded.clear()

    def load_once(self, name: str, load: Callable[[], Any]) -> Any:
        """Return the loaded object of a name; load it if no thread has done so."""
        if name not in self.loaded:
            with self.lock:
                if name not in self.loaded:
                    self.loaded[name] = load()
        return self.loaded[name]

    @property
    def store(self) -> Store:
        """The storage engine, opened on first use."""
        return self.load_once("store", lambda: open_store(self.path, create=False))

    @property
    def embedder(self) -> Embedder | None:
        """The embedder that made the vectors of the memory; any other one is an error."""
        return self.load_once("embedder", self.load_embedder)

    def load_embedder(self) -> Embedder | None:
        """Load the embedder of the memory; raise ``StoreError`` if another one was requested."""
        stored_model, embedder = self.store.get_model(), self.resolve_embedder(self.requested_embedder)
        model = embedder.model if embedder else None
        if model != stored_model:
            raise StoreError(
                f"{self.store.location} was written with {describe_model(stored_model)}, and this "
                f"is {describe_model(model)}: their vectors cannot be compared. Nothing was "
                "changed; `mnemic reindex --embedder NAME` computes them again"
            )
        return embedder

    def resolve_embedder(self, embedder: str | Embedder | None) -> Embedder | None:
        """Load an embedder, by default that of the stored vectors."""
        stored_model = self.store.get_model()
        stored_name = stored_model.name if stored_model else NO_EMBEDDER
        return resolve_embedder(stored_name if embedder is None else embedder)

    def create_if_missing(self) -> None:
        """Create the memory, unless it exists."""
        with self.lock:
            exists = get_file_size(self.path) if isinstance(self.path, Path) else "store" in self.loaded
            if not exists:
                # Raises here, before the memory is created, if there is no such embedder.
                self.requested_embedder = self.requested_embedder and (
                    resolve_embedder(self.requested_embedder) or NO_EMBEDDER
                )
                self.loaded["store"] = open_store(self.path, create=True)
            if self.store.is_initialized():
                return
            embedder = resolve_embedder(SHIPPED_MODEL if self.requested_embedder is None else self.requested_embedder)
            with self.store.write_session(), self.store.transaction():
                if self.store.is_initialized():  # by another process, meanwhile
                    return
                self.store.set_model(embedder.model if embedder else None)
            self.loaded["embedder"] = embedder

    def remember(
        self, *paths: str | Path, include: Sequence[str] = (), exclude: Sequence[str] = ()
    ) -> list[RememberStep]:
        """Remember files and folders; return one step per file."""
        steps = self.remembering(paths, include=include, exclude=exclude)
        return [step for step in steps if step.outcome != "reading"]

    def remembering(
        self,
        paths: Sequence[str | Path],
        *,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        limits: Limits = DEFAULT_LIMITS,
    ) -> Generator[RememberStep, None, None]:
        """Remember files and folders, and yield each step.

        After an interrupt, the same call resumes.
        """
        listing = find_files(paths, include=include, exclude=exclude)
        folders = [os.path.abspath(path) for path in paths if os.path.isdir(path)]
        self.create_if_missing()
        with self.store.write_session(), DocumentParser(limits) as parser:
            finish_scrub(self.store)
            run = RememberRun(self.store, lambda: self.embedder, parser)
            yield from run.remember_files(listing)
            yield from run.remove_missing_files(folders)

    def note(self, text: str, title: str = "") -> int:
        """Remember a text that is in no file; return the document's id."""
        return self.write_note(text, title, None)

    def write_note(self, text: str, title: str, previous: Document | None) -> int:
        """Store a note that may supersede a document; return its id."""
        self.create_if_missing()
        with self.store.write_session():
            arguments = (self.store, self.embedder, text, title, previous)
            return retry_call(lambda: remember_note(*arguments))

    def update(self, target: int | str | Path, text: str | None = None) -> int:
        """Replace a document by ``text``, or by its file read again; return the new id.

        The old version stays in the history until it is forgotten.
        """
        old = self.document(target)
        if text is not None:
            return self.write_note(text, old.title if old.kind == NOTE_KIND else "", old)
        if not old.places:
            raise StoreError(f"document {old.id} has no file to read again; give a new text")
        *_, last = self.remember(*old.places)
        if last.outcome == "broken":
            raise DocumentError(f"{last.path}: {'; '.join(last.notes)}")
        return last.document if last.document is not None else old.id

    def ask(
        self,
        question: str,
        *,
        hops: int = DEFAULT_HOPS,
        passages: int = DEFAULT_PASSAGES,
        lexical: float | None = None,
        confidence: float = MIN_CONFIDENCE,
    ) -> Answer:
        """Answer a question with a quotation, and return it with its evidence.

        Each hop reads ``passages`` sentence by sentence; later hops add the best sentence to the
        query. ``lexical`` is the weight of BM25 beside vectors, by default the embedder's. A
        reader's answer must have at least this ``confidence``.
        """
        options = AskOptions(hops, passages, lexical, confidence)
        return answer_question(self.store, self.embedder, self.reader, question, options)

    def search(self, query: str, limit: int = 10, lexical: float | None = None) -> list[Hit]:
        """Return the passages that match a query best."""
        check_question(query)
        hop = read_hop(self.store, self.embedder, query, bm25_weight=lexical)
        hits = []
        for slot_id, document_id, _, (text, page, sentences) in self.store.get_slots(hop.top_slots(limit)):
            name, weight = self.document(document_id).name, hop.weights[slot_id]
            hits.append(Hit(document_id, name, page, text, sentences, weight, hop.scores[slot_id]))
        return hits

    def forget(self, *targets: int | str | Path, verify: bool = False) -> ForgetResult:
        """Erase documents, by id or path, with all their older versions.

        ``verify`` searches the raw bytes of the memory's files for traces of them.
        """
        document_ids = [document_id for target in targets for document_id in self.resolve_ids(target)]
        return forget_documents(self.store, document_ids, verify=verify)

    def resolve_ids(self, target: int | str | Path) -> list[int]:
        """Return the ids of a document, or of all documents in a folder."""
        if isinstance(target, int) or not os.path.isdir(target):
            return [self.document(target).id]
        root = os.path.join(os.path.abspath(target), "")
        document_ids = {record.document for record in self.store.list_file_records() if record.path.startswith(root)}
        return sorted(document_ids) or [self.document(target).id]  # which raises: nothing of it is remembered

    def about(self, query: str) -> list[Document]:
        """Return the documents that have a passage with every word of ``query``."""
        matches = self.store.search_bm25(query, ABOUT_LIMIT, require_all=True)
        slots = self.store.get_slots([match.slot_id for match in matches])
        return [self.document(document_id) for document_id in sorted({slot.document for slot in slots})]

    def document(self, target: int | str | Path) -> Document:
        """Return a document by its id (12 or "12") or its path."""
        if isinstance(target, int) or str(target).isdecimal():
            document = self.store.get_document(int(str(target)))
            if document is None:
                raise StoreError(f"there is no document {target}; `mnemic list` lists them")
            return document
        document_ids = self.store.find_by_path(os.path.abspath(target))
        if not document_ids:
            raise StoreError(f"nothing of {target} is remembered; `mnemic list` lists what is")
        return self.document(document_ids[-1])

    def memories(self, *, retired: bool = False) -> list[Document]:
        """List the active documents, or with ``retired`` all documents."""
        return list(self.store.list_documents(retired=retired))

    def history(self, target: int | str | Path) -> tuple[list[Document], list[HistoryEvent]]:
        """Return all versions of a document, the oldest first, and their events."""
        versions = self.store.list_versions(self.document(target).id)
        return versions, self.store.list_events([version.id for version in versions])

    def text(self, target: int | str | Path) -> str:
        """Return the text of a document, active or retired, one line per passage."""
        slots = self.store.list_slots(self.document(target).id)
        return "\n".join(slot.passage.text for slot in slots)

    def stats(self) -> MemoryStats:
        """Count documents, passages, vectors and bytes."""
        return self.store.collect_stats()

    def check(self) -> CheckReport:
        """Check the memory; report faults and the checks that were skipped."""
        return check_store(self.store)

    def reindex(self, embedder: str | Embedder | None = None) -> Iterator[tuple[int, int]]:
        """Compute missing vectors, or all with another embedder; yield done and total.

        After an interrupt, a call with the same embedder resumes.
        """
        store, new_embedder = self.store, self.resolve_embedder(embedder)
        model = new_embedder.model if new_embedder else None
        with store.write_session():
            self.requested_embedder, self.loaded["embedder"] = new_embedder or NO_EMBEDDER, new_embedder
            if model != store.get_model():
                with store.transaction():
                    store.set_model(model)
            total, done = store.count_slots(), store.collect_stats().keyed
            if new_embedder is None:
                return
            for slots in store.list_unembedded_slots():
                embeddings = new_embedder.embed_passages([slot.passage.text for slot in slots])
                with store.transaction():
                    store.set_embeddings([slot.id for slot in slots], embeddings)
                done += len(slots)
                yield done, total

    def export(self, path: str | Path) -> Iterator[ExportProgress]:
        """Export everything but vectors as JSON lines; yield the progress."""
        yield from write_export(self.store, Path(path))

    def take(self, path: str | Path) -> Iterator[ExportProgress]:
        """Import documents that ``export`` wrote; a damaged file is refused before any change."""
        check_export(Path(path))
        self.create_if_missing()
        with self.store.write_session():
            yield from import_export(self.store, self.embedder, Path(path))


def open_store(location: Path | Address, *, create: bool) -> Store:
    """Open the storage engine of a path or an address."""
    if isinstance(location, Address):
        return PostgresStore(location, create=create)
    return SQLiteStore(location, create=create)


def describe_model(model: EmbeddingModel | None) -> str:
    """Describe an embedding model for an error message."""
    return f"the embedder {model.name} ({model.hash[:12]})" if model else "no embedder"
