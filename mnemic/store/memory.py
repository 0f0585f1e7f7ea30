"""``Memory``, a persistent memory of documents: remember, ask, search, update, forget.

``remember`` writes, ``ask`` reads and responds; a ``Store`` has the documents and survives a kill.
"""

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from threading import RLock
from typing import Any

from mnemic.checkpoint.shipped import EMBEDDERS, READERS
from mnemic.store.answer.ask import DEFAULT_HOPS, DEFAULT_PASSAGES, AskOptions, answer_question, check_question
from mnemic.store.answer.confidence import MIN_CONFIDENCE, Reader
from mnemic.store.answer.reader import resolve_reader
from mnemic.store.answers import Answer, Hit, OnFound, ignore_found, join_boxes
from mnemic.store.contract import CheckReport, Document, HistoryEvent, MemoryStats, MissingMemoryError, StoreError
from mnemic.store.engines import open_store
from mnemic.store.ingest.check import check_store
from mnemic.store.ingest.contents import find_container
from mnemic.store.ingest.export import ExportProgress, check_export, import_export, write_export
from mnemic.store.ingest.forget import ForgetResult, finish_scrub, forget_documents
from mnemic.store.ingest.notes import NOTE_KIND, remember_note
from mnemic.store.ingest.questions import QuestionWriter, resolve_writer, write_missing_questions
from mnemic.store.ingest.reindex import reindex_passages
from mnemic.store.ingest.remember import RememberRun
from mnemic.store.ingest.retry import retry_call
from mnemic.store.ingest.steps import RememberStep
from mnemic.store.locate import hide_from_git, locate_memory
from mnemic.store.relational import Store, ignore_notice
from mnemic.store.retrieve.embedders import NO_EMBEDDER, Embedder, resolve_embedder
from mnemic.store.retrieve.filters import Day, make_filters
from mnemic.store.retrieve.hybrid import read_hop
from mnemic.store.retrieve.languages import select_model
from mnemic.store.retrieve.models import THREAD_LIMIT
from mnemic.store.retrieve.spelling import correct_spelling
from mnemic.store.retrieve.stored_embedder import StoredEmbedder, choose_successor
from mnemic.store.targets import find_document, resolve_ids
from mnemic.text.documents import DEFAULT_LIMITS, DocumentError, DocumentParser, Limits, find_files

ABOUT_LIMIT = 10_000  # passages that `forget --about` may match


class Memory:
    """A memory of documents in a file or on a server, created on first use.

    ``memory`` is a path, a name, an address such as postgresql://host/database#name, or None for
    the memory of the project or of the user. ``embedder`` (an object or a name) is for a new
    memory; an existing memory refuses any but its own, and ``reindex`` changes it. ``reader`` (an
    object, a name or a folder) answers from passages; with None an answer is a sentence.
    ``on_notice`` is called with a line of text when a user should know of something that was put
    right, such as a forgetting that another process did not finish.

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

    The first question imports torch, with threads that sleep while they wait for each other. In a
    program that has imported torch before, they spin, which takes seconds on a busy machine; there
    a question is answered by one thread (``torch.set_num_threads``, for the time of the question).
    With the environment variable ``OMP_WAIT_POLICY``, ``passive`` or ``active``, it uses all.
    """

    def __init__(
        self,
        memory: str | Path | None = None,
        *,
        embedder: str | Embedder | None = None,
        reader: str | Reader | None = READERS[0],
        on_notice: Callable[[str], object] = ignore_notice,
    ) -> None:
        self.path, self.on_notice = locate_memory(memory), on_notice
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
        return self.load_once("store", lambda: open_store(self.path, create=False, on_notice=self.on_notice))

    @property
    def embedder(self) -> Embedder | None:
        """The embedder that made the vectors of the memory; None: words alone are searched."""
        return self.stored_embedder.embedder

    @property
    def stored_embedder(self) -> StoredEmbedder:
        """The embedder that fits the stored vectors; ``StoreError`` if another one was requested.

        Where they are outdated, another process may compute them again meanwhile.
        """
        stored = self.load_once("embedder", self.load_embedder)
        if stored.is_outdated and stored.model != self.store.get_model():
            with self.lock:
                stored = self.loaded["embedder"] = self.load_embedder()
        return stored

    def load_embedder(self) -> StoredEmbedder:
        """Load the embedder of the stored vectors, which no request may contradict."""
        return StoredEmbedder(self.store.location, self.store.get_model(), self.requested_embedder)

    def exists(self) -> bool:
        """Return whether the memory was created, by opening it."""
        try:
            return self.store is not None
        except MissingMemoryError:
            return False

    def create_if_missing(self) -> None:
        """Create the memory, unless it exists."""
        with self.lock:
            if not self.exists():
                # Raises here, before the memory is created, if there is no such embedder.
                if self.requested_embedder:
                    self.requested_embedder = resolve_embedder(self.requested_embedder) or NO_EMBEDDER
                self.loaded["store"] = open_store(self.path, create=True, on_notice=self.on_notice)
            if isinstance(self.path, Path):
                hide_from_git(self.path)
            if self.store.is_initialized():
                return
            embedder = resolve_embedder(EMBEDDERS[0] if self.requested_embedder is None else self.requested_embedder)
            self.store.initialize(embedder.model if embedder else None)

    @contextmanager
    def write_session(self) -> Iterator[None]:
        """Begin to write; first finish what a killed process left of a forgetting."""
        with self.store.write_session():
            finish_scrub(self.store)
            yield

    def remember(
        self,
        *paths: str | Path,
        include: Sequence[str] = (),
        only: Sequence[str] = (),
        exclude: Sequence[str] = (),
        password: str | None = None,
    ) -> list[RememberStep]:
        """Remember files and folders; return one step per file, also for those not read.

        In folders ``include`` adds files to those of known kinds, ``only`` replaces them, and
        ``exclude`` leaves some out. ``password`` opens files that are locked with it.
        """
        steps = self.remembering(paths, include=include, only=only, exclude=exclude, password=password)
        return [step for step in steps if step.outcome != "reading"]

    def remembering(
        self,
        paths: Sequence[str | Path],
        *,
        include: Sequence[str] = (),
        only: Sequence[str] = (),
        exclude: Sequence[str] = (),
        password: str | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> Generator[RememberStep, None, None]:
        """Remember files and folders, and yield each step.

        After an interrupt, the same call resumes.
        """
        listing = find_files(paths, include=include, only=only, exclude=exclude)
        folders = [os.path.abspath(path) for path in paths if os.path.isdir(path)]
        self.create_if_missing()
        if self.requested_embedder is not None:
            self.load_once("embedder", self.load_embedder)  # raises if the memory has another, even if no file is new
        with self.write_session(), DocumentParser(limits) as parser:
            run = RememberRun(self.store, lambda: self.stored_embedder, parser, password)
            yield from run.remember_files(listing)
            yield from run.remove_missing_files(folders)
            if run.has_new_files:
                self.report(self.stored_embedder.write_note)

    def note(self, text: str, title: str = "") -> int:
        """Remember a text that is in no file; return the document's id."""
        return self.write_note(text, title, None)

    def write_note(self, text: str, title: str, previous: Document | None) -> int:
        """Store a note that may supersede a document; return its id."""
        self.create_if_missing()
        with self.write_session():
            document_id = retry_call(lambda: remember_note(self.store, self.stored_embedder, text, title, previous))
        self.report(self.stored_embedder.write_note)
        return document_id

    def report(self, note: str) -> None:
        """Call ``on_notice`` with a note, unless it is empty."""
        if note:
            self.on_notice(note)

    def update(self, target: int | str | Path, text: str | None = None) -> int:
        """Replace a document by ``text``, or by its file read again; return the new id.

        The old version stays in the history until it is forgotten.
        """
        old = self.document(target)
        if text is not None:
            has_title = old.kind == NOTE_KIND and not self.text(old.id).startswith(old.title)
            return self.write_note(text, old.title if has_title else "", old)
        if not old.places:
            raise StoreError(f"document {old.id} has no file to read again; give a new text")
        *_, last = self.remember(*map(find_container, old.places))
        if last.outcome == "broken":
            raise DocumentError(f"{last.path}: {'; '.join(last.notes)}")
        record = self.store.get_file_record(old.places[-1])
        return record.document if record is not None else old.id

    def ask(
        self,
        question: str,
        *,
        hops: int = DEFAULT_HOPS,
        passages: int = DEFAULT_PASSAGES,
        lexical: float | None = None,
        confidence: float = MIN_CONFIDENCE,
        rerank: int | None = None,
        rerank_timeout_s: float | None = None,
        inside: str | Path | None = None,
        kind: str | None = None,
        since: Day | None = None,
        until: Day | None = None,
        on_found: OnFound = ignore_found,
    ) -> Answer:
        """Answer a question with a quotation, and return it with its evidence.

        Each hop reads ``passages`` sentence by sentence; later hops add the best sentence to the
        query. ``lexical`` is the weight of BM25 beside vectors, by default the embedder's. A
        reader's answer must have at least this ``confidence``. ``rerank`` passages are read and
        ranked anew by the reader, by default as few as answer. Of more than ``passages`` the best
        are used; after ``rerank_timeout_s`` seconds no further ones are read. 0: retrieval's order.

        Filters leave other documents out: ``inside`` is a folder or file, ``kind`` one such as pdf
        or note, ``since`` and ``until`` are the first and the last day (a date, or 2024-03-31,
        2024-03, 2024) of the file's modification, or of when a note was remembered.

        ``on_found`` is called with the evidence as it was retrieved, before it is read.
        """
        filters = make_filters(inside, kind, since, until)
        options = AskOptions(hops, passages, lexical, confidence, filters, rerank, rerank_timeout_s)
        stored = self.stored_embedder
        with self.search_snapshot():
            answer = answer_question(self.store, stored.embedder, self.reader, question, options, on_found)
        return replace(answer, notes=(stored.search_note, *answer.notes)) if stored.is_outdated else answer

    def search(
        self,
        query: str,
        limit: int = 10,
        lexical: float | None = None,
        *,
        inside: str | Path | None = None,
        kind: str | None = None,
        since: Day | None = None,
        until: Day | None = None,
    ) -> list[Hit]:
        """Return the passages that match a query best; the filters are those of ``ask``."""
        check_question(query, "query", "terms of notice")
        hits, stored, filters = [], self.stored_embedder, make_filters(inside, kind, since, until)
        with self.search_snapshot():
            query, document_ids = correct_spelling(self.store, query), self.store.find_documents(filters)
            embedder = select_model(stored.embedder, query)
            hop = read_hop(self.store, embedder, query, bm25_weight=lexical, document_ids=document_ids)
            for slot_id, document_id, _, (text, page, sentences, boxes) in self.store.get_slots(hop.top_slots(limit)):
                name, weight = filters.choose_name(self.document(document_id)), hop.weights[slot_id]
                score, box = hop.scores[slot_id], join_boxes(boxes)
                hits.append(Hit(document_id, name, page, text, sentences, weight, score, box, slot_id))
        self.report(stored.search_note)
        return hits

    def correct(self, query: str) -> str:
        """Return a query with misspelled words corrected by the memory's words, as it is read."""
        check_question(query, "query", "terms of notice")
        with self.store.snapshot():
            return correct_spelling(self.store, query)

    @contextmanager
    def search_snapshot(self) -> Iterator[None]:
        """Read one state of the memory throughout a question, whatever others write."""
        self.store.prepare_search()
        with self.store.snapshot(), THREAD_LIMIT.apply():
            yield

    def forget(self, *targets: int | str | Path, verify: bool = False) -> ForgetResult:
        """Erase documents, by id or path, with all their older versions.

        ``verify`` searches the raw bytes of the memory's files for traces of them.
        """
        document_ids = [document_id for target in targets for document_id in resolve_ids(self.store, target)]
        return forget_documents(self.store, document_ids, verify=verify)

    def about(self, query: str) -> list[Document]:
        """Return the documents that have a passage with every word of ``query``."""
        with self.store.snapshot():
            matches = self.store.search_bm25(query, ABOUT_LIMIT, require_all=True)
            slots = self.store.get_slots([match.slot_id for match in matches])
            return [self.document(document_id) for document_id in sorted({slot.document for slot in slots})]

    def document(self, target: int | str | Path) -> Document:
        """Return a document by its id (12 or "12") or its path."""
        return find_document(self.store, target)

    def memories(self, *, retired: bool = False) -> list[Document]:
        """List the active documents, or with ``retired`` all documents."""
        with self.store.snapshot():
            return list(self.store.list_documents(retired=retired))

    def history(self, target: int | str | Path) -> tuple[list[Document], list[HistoryEvent]]:
        """Return all versions of a document, the oldest first, and their events."""
        with self.store.snapshot():
            versions = self.store.list_versions(self.document(target).id)
            return versions, self.store.list_events([version.id for version in versions])

    def text(self, target: int | str | Path) -> str:
        """Return the text of a document, active or retired, one line per passage."""
        with self.store.snapshot():
            return "\n".join(slot.passage.text for slot in self.store.list_slots(self.document(target).id))

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
        new_embedder = resolve_embedder(choose_successor(self.store.get_model()) if embedder is None else embedder)
        with self.write_session():
            self.requested_embedder = new_embedder or NO_EMBEDDER
            self.loaded.pop("embedder", None)
            yield from reindex_passages(self.store, new_embedder)

    def write_questions(self, writer: str | Path | QuestionWriter) -> Iterator[tuple[int, int]]:
        """Write questions ahead for passages that have none, by a network's folder or a writer.

        They are further keys of a passage, never shown as its words. Yield done and total.
        """
        with self.write_session():
            yield from write_missing_questions(self.store, self.embedder, resolve_writer(writer))

    def export(self, path: str | Path) -> Iterator[ExportProgress]:
        """Export one state of the memory, all but vectors, as JSON lines; yield the progress."""
        # Its own connection: the snapshot stays open until the end, and this thread may write.
        with closing(open_store(self.path, create=False)) as store:
            yield from write_export(store, Path(path))

    def take(self, path: str | Path) -> Iterator[ExportProgress]:
        """Import documents that ``export`` wrote; a damaged file is refused before any change."""
        check_export(Path(path), self.store if self.exists() else None)
        self.create_if_missing()
        with self.write_session():
            yield from import_export(self.store, self.embedder, Path(path))
