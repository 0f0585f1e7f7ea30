"""Values that storage engines exchange, and what each engine does in its own way.

A *document* is one content, stored once, no matter how many files (*places*) hold it. It is stored
as *passages* of complete sentences, the slots of the memory: the vectors of a passage and of its
sentences are its keys, its text is its value. A document is *retired* when another one supersedes
it or when its last file is gone: its text stays for the history, but searches no longer see it.
*Erasing* a document deletes it with its history.

Shapes: n passages, k sentences of all passages, s sentences of one passage, d embedding width.
"""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

import numpy
from numpy.typing import NDArray

from mnemic.text.documents import Passage

Vectors = NDArray[numpy.float32]  # n d
BEGIN_ADVICE = "begin one: mnemic remember FILE_OR_FOLDER, or Memory.remember in Python"
DIGEST_LENGTH = 64  # characters of a SHA-256; a digest of a document that is read in part is longer
MEMBER_SEPARATOR = "!/"  # in a place, between a file and the name of a document inside it


class PassageEmbedding(NamedTuple):
    """The vectors of a passage: one of its text, and one per sentence."""

    vector: Vectors  # d
    sentence_vectors: Vectors  # s d, rows of norm 1; a single row adds nothing to the vector


EmbeddedPassage = tuple[Passage, PassageEmbedding | None]
EmbeddedPassages = Iterable[EmbeddedPassage]


class StoreError(ValueError):
    """The memory cannot do this; the message says why and what to do."""


class DamageError(StoreError):
    """A row holds what no version of mnemic writes; perhaps the disk is failing."""

    def __init__(self, item: str) -> None:
        super().__init__(
            f"{item} is damaged; `mnemic check` reports more. Restore a backup, or save what can still be read "
            "with `mnemic export-memory` and import it into a new memory"
        )


class MissingMemoryError(StoreError):
    """There is no memory yet; the first writer creates it."""


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

    digest: str  # SHA-256 of the content; followed by "/" and a position: it is read in part, so far
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


class Engine(Protocol):
    """What an engine does in its own way; ``relational.Store`` adds what all do alike.

    All changes happen within its ``write_session`` and ``transaction``.
    """

    unreachable_traces: str = ""  # where traces may remain that ``scrub`` cannot reach; empty: nowhere

    def lock_writing(self) -> AbstractContextManager[None]:
        """Begin to write; raise ``StoreError`` if the memory is read-only.

        An engine with a single writer also raises it while another process is writing.
        """

    def erase_documents(self, document_ids: Sequence[int]) -> None:
        """Delete documents with their passages, vectors and history."""

    def scrub(self) -> bool:
        """Clear indexes and journals of erased documents; return False if readers prevent it."""

    def find_traces(self, traces: Sequence[bytes]) -> list[bytes]:
        """Return the traces that occur in the raw files and belong to no stored document.

        Raise ``StoreError`` if the files cannot be searched, even if ``traces`` is empty.
        """

    def search_vectors(self, vector: Vectors, limit: int, document_ids: Sequence[int] | None = None) -> NearestSlots:
        """Find the slots whose vectors have the largest dot product with ``vector`` (d).

        With ``document_ids``, slots of other documents do not exist.
        """

    def count_active_slots(self) -> int:
        """Return the number of active slots."""

    def count_bytes(self) -> int:
        """Return the size of the memory's files or tables."""
