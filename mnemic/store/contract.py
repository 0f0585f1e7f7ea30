"""What every engine of the lasting memory promises, and the values that go in and come out.

A *document* is one content, remembered once, whatever the number of *places* (paths) where it
lies. It is kept as *passages* of whole sentences, the slots of the memory: a passage's vector and
those of its sentences are its keys, its text its value. A document that was superseded, or whose
places are gone, is *retired*: its text stays, for the history, but nothing reads it. What is
*erased* is gone.

Shapes: n passages, k keys of all of them, s keys of one, d width.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

import numpy
from numpy.typing import NDArray

from mnemic.text.documents import Passage

Vectors = NDArray[numpy.float32]  # n d


class Marks(NamedTuple):
    """What a slot is found by: the vector of its text, and a key of each part of the text."""

    vector: Vectors  # d
    keys: Vectors  # s d, rows of length 1; a single one says what the vector says


Passages = Iterable[tuple[Passage, Marks | None]]


class StoreError(ValueError):
    """The memory cannot do this; the message says why, and what to do."""


class RaceError(StoreError):
    """Another process changed the same at the same moment, and this change was taken back whole.

    Only an engine with several writers raises it; look again, and do what is still to be done.
    """


class Model(NamedTuple):
    """The embedder whose vectors a memory holds."""

    name: str
    hash: str
    width: int


class Draft(NamedTuple):
    """A document that is about to be stored."""

    digest: str  # SHA-256 of the content
    kind: str  # how it was read: text, html, pdf … or note
    title: str
    notes: tuple[str, ...] = ()  # what the reader of an answer should know: a page without text
    previous: int | None = None  # the document it supersedes
    path: str = ""  # where it was read, for the history


class Document(NamedTuple):
    """A document as it is stored."""

    id: int
    digest: str
    kind: str
    title: str
    notes: tuple[str, ...]
    previous: int | None
    remembered: str  # when, in ISO 8601, UTC
    retired: str | None  # since when it is no longer read
    passages: int
    characters: int
    places: tuple[str, ...]

    @property
    def name(self) -> str:
        """What to call it: where it lies, or its title."""
        return self.places[0] if self.places else self.title


class Place(NamedTuple):
    """A file that holds a document, and what it looked like when it was read."""

    path: str
    document: int
    size: int
    modified: int  # nanoseconds


class Event(NamedTuple):
    """Something that happened to a document."""

    document: int
    at: str
    what: str  # remembered, superseded, moved, copied, gone
    path: str


class Slot(NamedTuple):
    """A passage as it is stored."""

    id: int
    document: int
    number: int  # among the document's own, from 0
    passage: Passage


class Scored(NamedTuple):
    """A slot, and how well it fits."""

    slot: int
    score: float


class Nearest(NamedTuple):
    """The slots nearest to a vector, best first, and how all slots' scores are spread.

    Mean and deviation are what makes scores of different kinds comparable. An engine that does
    not look at every slot may estimate them.
    """

    best: list[Scored]
    mean: float
    deviation: float


class Keys(NamedTuple):
    """The keys of some slots, those of one behind those of the other."""

    rows: Vectors  # k d
    counts: NDArray[numpy.int64]  # n: how many each slot has, 0 where its vector is the only one


class Counts(NamedTuple):
    """How much there is."""

    documents: int
    retired: int
    places: int
    passages: int  # that are read
    sentences: int
    vectors: int
    keyed: int  # those whose keys are made, too
    bytes: int


class Checked(NamedTuple):
    """What is wrong with a memory, and what nobody looked at; both empty: all is well."""

    faults: tuple[str, ...] = ()  # a line each
    left_out: tuple[str, ...] = ()  # checks that only one who writes can make
    why: str = ""  # nobody can write now


class Store(Protocol):
    """An engine. Everything that changes it happens within ``writing`` and ``change``."""

    @property
    def location(self) -> str:
        """Where the memory is, in words for a person."""

    def close(self) -> None: ...

    def writing(self) -> AbstractContextManager[None]:
        """Be one who writes; ``StoreError`` if that is not allowed here.

        Of an engine with one writer also if another process is the one.
        """

    def change(self) -> AbstractContextManager[None]:
        """Make a change that is there whole, for good, after the block, or not at all."""

    def model(self) -> Model | None:
        """Whose vectors these are; None: the memory is read by its words alone."""

    def begun(self) -> bool:
        """Whether that has been said by ``set_model``; a memory is made in two steps.

        Asked within a change, no other process says it before the change has ended.
        """

    def set_model(self, model: Model | None) -> None:
        """Say whose vectors follow; those that are there are dropped."""

    def add(self, draft: Draft, passages: Passages = ()) -> int:
        """Store a document; its id. An equal one that is read must not be there.

        What it supersedes is retired, unless it has a place left.
        """

    def extend(self, document: int, passages: Passages) -> None:
        """Give a document more passages."""

    def retell(self, document: int, draft: Draft) -> None:
        """Correct a document's title and notes."""

    def restore(
        self, document: Document, passages: Passages, places: Sequence[Place], told: Sequence[Event]
    ) -> int:
        """Store a document of another memory as it was there; its id here."""

    def put(self, place: Place, what: str) -> None:
        """Say that a document lies at a path, and no longer what lay there; ``what`` happened."""

    def remove(self, path: str) -> None:
        """Say that nothing lies at a path any more; a document without a place left is retired."""

    def erase(self, documents: Sequence[int]) -> None:
        """Drop documents, with everything that is known of them."""

    def scrub(self) -> bool:
        """Clear what erased documents left in indexes and journals; False if readers keep some."""

    def unscrubbed(self) -> bool:
        """Whether a process ended after it erased and before it scrubbed."""

    def remains(self, traces: Sequence[bytes]) -> list[bytes]:
        """Which of these are anywhere in what the engine keeps, beside what it remembers.

        ``StoreError`` if that cannot be looked for here, even if no trace is given.
        """

    def beyond(self) -> str:
        """Where traces of the erased may be that ``scrub`` cannot reach; empty: nowhere."""

    def document(self, number: int) -> Document | None: ...

    def versions(self, number: int) -> list[Document]:
        """A document with all it superseded and all that superseded it, the oldest first."""

    def documents(self, *, retired: bool = False) -> Iterator[Document]:
        """Those that are read, or all, in the order they were remembered."""

    def equal(self, digest: str) -> int | None:
        """The document with this content that is read."""

    def places(self) -> Iterator[Place]: ...

    def place(self, path: str) -> Place | None: ...

    def once_at(self, path: str) -> list[int]:
        """The documents that lay at a path, now or before."""

    def history(self, documents: Sequence[int]) -> list[Event]: ...

    def slots(self, numbers: Sequence[int]) -> list[Slot]:
        """These slots, in this order."""

    def slots_of(self, document: int) -> Iterator[Slot]: ...

    def unmarked(self) -> Iterator[list[Slot]]:
        """The slots that are read and lack a vector, or its keys, a few hundred at a time."""

    def give(self, numbers: Sequence[int], marks: Sequence[Marks]) -> None:
        """Store what these slots are found by, instead of what was there."""

    def match(self, text: str, most: int, *, every: bool = False) -> list[Scored]:
        """The slots that share words with ``text``, or have every one, by BM25, best first."""

    def nearest(self, vector: Vectors, most: int) -> Nearest:
        """The slots whose vectors have the largest product with this one (d)."""

    def vectors(self, numbers: Sequence[int]) -> Vectors:
        """The vectors (n d) of these slots; zeros where there is none."""

    def keys(self, numbers: Sequence[int]) -> Keys:
        """The keys of these slots, rounded; none of a slot whose keys are not made."""

    def size(self) -> int:
        """How many slots are read."""

    def count(self) -> Counts: ...

    def check(self) -> Checked:
        """What is wrong with it, in one state of it; nothing is changed.

        Within ``writing`` all is looked at; else what only a writer can ask is left out, and told.
        """
