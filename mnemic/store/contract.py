"""The ``Store`` protocol that every storage engine implements, and the values it exchanges.

A *document* is one content, stored once, no matter how many files (*places*) hold it. It is stored
as *passages* of complete sentences, the slots of the memory: the vectors of a passage and of its
sentences are its keys, its text is its value. A document is *retired* when another one supersedes
it or when its last file is gone: its text stays for the history, but searches no longer see it.
*Erasing* a document deletes it with its history.

Shapes: n passages, k sentences of all passages, s sentences of one passage, d embedding width.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

import numpy
from numpy.typing import NDArray

from mnemic.text.documents import Passage

Vectors = NDArray[numpy.float32]  # n d


class PassageEmbedding(NamedTuple):
    """The vectors of a passage: one of its text, and one per sentence."""

    vector: Vectors  # d
    sentence_vectors: Vectors  # s d, rows of norm 1; a single row adds nothing to the vector


EmbeddedPassages = Iterable[tuple[Passage, PassageEmbedding | None]]


class StoreError(ValueError):
    """The memory cannot do this; the message says why and what to do."""


class RaceError(StoreError):
    """Another process changed the same rows concurrently; this transaction was rolled back.

    Only an engine with several writers raises it. Read the memory again and retry what is left.
    """


class EmbeddingModel(NamedTuple):
    """The identity of the embedder that made the vectors of a memory."""

    name: str
    hash: str
    width: int


class Draft(NamedTuple):
    """A document that is about to be stored."""

    digest: str  # SHA-256 of the content
    kind: str  # the format: text, html, pdf … or note
    title: str
    notes: tuple[str, ...] = ()  # warnings for the user, such as a page without text
    previous: int | None = None  # the document it supersedes
    path: str = ""  # the file it came from, for the history


class Document(NamedTuple):
    """A document as it is stored."""

    id: int
    digest: str
    kind: str
    title: str
    notes: tuple[str, ...]
    previous: int | None
    remembered: str  # when, in ISO 8601, UTC
    retired: str | None  # when it was retired; None: it is active
    passages: int
    characters: int
    places: tuple[str, ...]  # paths of the files that hold it

    @property
    def name(self) -> str:
        """The name to display: the path of its first file, or its title."""
        return self.places[0] if self.places else self.title


class FileRecord(NamedTuple):
    """A file that holds a document, with its size and time when it was read."""

    path: str
    document: int
    size: int
    modified_ns: int


class HistoryEvent(NamedTuple):
    """An event in the history of a document."""

    document: int
    at: str
    what: str  # remembered, superseded, moved, copied, gone
    path: str


class MemorySlot(NamedTuple):
    """A slot of the memory: a passage as it is stored."""

    id: int
    document: int
    number: int  # position in the document, from 0
    passage: Passage


class ScoredSlot(NamedTuple):
    """The id of a slot and its score."""

    slot_id: int
    score: float


class NearestSlots(NamedTuple):
    """The slots nearest to a vector, best first, with mean and deviation of all scores.

    Mean and deviation make scores of different kinds comparable. An engine that does not compare
    the vector with every slot may estimate them.
    """

    best: list[ScoredSlot]
    mean: float
    std: float


class SentenceVectors(NamedTuple):
    """The sentence vectors of several slots, concatenated slot by slot."""

    vectors: Vectors  # k d
    counts: NDArray[numpy.int64]  # n: rows per slot, 0 where the passage vector is the only one


class MemoryStats(NamedTuple):
    """The size of a memory: counts of its rows, and bytes."""

    documents: int
    retired: int
    places: int
    passages: int  # of active documents
    sentences: int
    vectors: int
    keyed: int  # passages that also have sentence vectors
    bytes: int


class CheckReport(NamedTuple):
    """The result of a check: faults, and the checks that were skipped."""

    faults: tuple[str, ...] = ()  # one line each; empty: no fault was found
    left_out: tuple[str, ...] = ()  # checks that only a writer can run
    why: str = ""  # the reason why nobody can write now


class Store(Protocol):
    """A storage engine. All changes happen within ``write_session`` and ``transaction``."""

    @property
    def location(self) -> str:
        """The location of the memory, as text for the user."""

    def close(self) -> None:
        """Close the file or the connection."""

    def write_session(self) -> AbstractContextManager[None]:
        """Open a session for writing; raise ``StoreError`` if the memory is read-only.

        An engine with a single writer also raises it while another process is writing.
        """

    def transaction(self) -> AbstractContextManager[None]:
        """Run the block as one transaction: committed durably after it, or rolled back."""

    def get_model(self) -> EmbeddingModel | None:
        """Return the embedding model of the vectors; None: the memory is searched by words only."""

    def is_initialized(self) -> bool:
        """Return whether ``set_model`` was called; creating a memory takes these two steps.

        Within a transaction, no other process can call it before the transaction ends.
        """

    def set_model(self, model: EmbeddingModel | None) -> None:
        """Set the embedding model of the vectors that follow; drop the existing ones."""

    def add_document(self, draft: Draft, passages: EmbeddedPassages = ()) -> int:
        """Store a document and return its id; no active document may have the same digest.

        The document that it supersedes is retired, unless a file still holds it.
        """

    def add_passages(self, document_id: int, passages: EmbeddedPassages) -> None:
        """Append passages to a document."""

    def update_metadata(self, document_id: int, draft: Draft) -> None:
        """Replace the title and the notes of a document by those of the draft."""

    def restore_document(
        self,
        document: Document,
        passages: EmbeddedPassages,
        file_records: Sequence[FileRecord],
        events: Sequence[HistoryEvent],
    ) -> int:
        """Store a document of another memory with its history; return its id here."""

    def put_file_record(self, record: FileRecord, action: str) -> None:
        """Record that a file holds a document, instead of what it held before.

        ``action`` goes into the history; empty: nothing does.
        """

    def remove_file_record(self, path: str) -> None:
        """Remove the record of a file; retire its document if no other file holds it."""

    def erase_documents(self, document_ids: Sequence[int]) -> None:
        """Delete documents with their passages, vectors and history."""

    def scrub(self) -> bool:
        """Clear indexes and journals of erased documents; return False if readers prevent it."""

    def has_pending_scrub(self) -> bool:
        """Return whether a process ended after it erased and before it scrubbed."""

    def find_traces(self, traces: Sequence[bytes]) -> list[bytes]:
        """Return the traces that occur in the raw files and belong to no stored document.

        Raise ``StoreError`` if the files cannot be searched, even if ``traces`` is empty.
        """

    def describe_unreachable_traces(self) -> str:
        """Describe where traces may remain that ``scrub`` cannot reach; empty: nowhere."""

    def get_document(self, document_id: int) -> Document | None:
        """Return a document by its id, active or retired."""

    def list_versions(self, document_id: int) -> list[Document]:
        """Return all versions of a document, older and newer ones, the oldest first."""

    def list_documents(self, *, retired: bool = False) -> Iterator[Document]:
        """Yield the active documents, or also the retired ones, in the order of their ids."""

    def find_by_digest(self, digest: str) -> int | None:
        """Return the id of the active document with this digest."""

    def list_file_records(self) -> Iterator[FileRecord]:
        """Yield the records of all files, in the order of their paths."""

    def get_file_record(self, path: str) -> FileRecord | None:
        """Return the record of a file."""

    def find_by_path(self, path: str) -> list[int]:
        """Return the ids of the documents that a file holds or held."""

    def list_events(self, document_ids: Sequence[int]) -> list[HistoryEvent]:
        """Return the history of documents, the oldest event first."""

    def get_slots(self, slot_ids: Sequence[int]) -> list[MemorySlot]:
        """Return slots by their ids, in the same order."""

    def list_slots(self, document_id: int) -> Iterator[MemorySlot]:
        """Yield the slots of a document, in the order of its text."""

    def list_unembedded_slots(self) -> Iterator[list[MemorySlot]]:
        """Yield batches of active slots that have no vector or no sentence vectors."""

    def set_embeddings(self, slot_ids: Sequence[int], embeddings: Sequence[PassageEmbedding]) -> None:
        """Store the embeddings of slots, replacing existing ones."""

    def search_bm25(self, text: str, limit: int, *, require_all: bool = False) -> list[ScoredSlot]:
        """Rank the slots that contain any word of ``text``, or all of them, by BM25."""

    def search_vectors(self, vector: Vectors, limit: int) -> NearestSlots:
        """Find the slots whose vectors have the largest dot product with ``vector`` (d)."""

    def get_vectors(self, slot_ids: Sequence[int]) -> Vectors:
        """Return the vectors (n d) of slots; zeros for a slot without one."""

    def get_sentence_vectors(self, slot_ids: Sequence[int]) -> SentenceVectors:
        """Return the sentence vectors of slots, as quantized; no rows for a slot without them."""

    def count_slots(self) -> int:
        """Return the number of active slots."""

    def collect_stats(self) -> MemoryStats:
        """Count documents, passages, vectors and bytes."""

    def check(self) -> CheckReport:
        """Check one consistent state of the memory, without changing it.

        Outside ``write_session``, checks that only a writer can run are skipped and reported.
        """
