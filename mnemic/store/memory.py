"""The lasting memory of a person's documents: remember, ask, search, update, forget.

    from mnemic import Memory

    memory = Memory("notes.db")
    memory.remember("report.pdf")
    print(memory.ask("Who wrote the report?").text)

Remember is write, ask is read and respond; what it holds lies in a ``Store`` and survives a kill.
"""

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from mnemic.store.answer.ask import HOPS, READ, Asking, ask, check_question
from mnemic.store.answer.confidence import LEAST, Reader
from mnemic.store.answer.reader import reader_of
from mnemic.store.answers import Answer
from mnemic.store.contract import Checked, Counts, Document, Event, Model, Store, StoreError
from mnemic.store.ingest import export as exchange
from mnemic.store.ingest.check import check
from mnemic.store.ingest.file_stat import size_of
from mnemic.store.ingest.forget import Forgotten, finish, forget
from mnemic.store.ingest.reindex import reindex
from mnemic.store.ingest.remember import NOTE, Remembering, Step, remember_note
from mnemic.store.ingest.retry import retried
from mnemic.store.locate import locate
from mnemic.store.postgres.address import Address
from mnemic.store.postgres.store import PostgresStore
from mnemic.store.retrieve import embedders as embed
from mnemic.store.retrieve.embedders import Embedder
from mnemic.store.retrieve.hybrid import read
from mnemic.store.retrieve.models import SHIPPED
from mnemic.store.sqlite.store import SQLiteStore
from mnemic.text.documents import USUAL, DocumentError, Limits, Parser, Sentence, find_files

ABOUT = 10_000  # passages that are looked through for documents to forget

ENGINES: dict[str, Callable[..., Store]] = {"sqlite": SQLiteStore, "postgresql": PostgresStore}


class Hit(NamedTuple):
    """A passage that a search found."""

    document: int
    name: str
    page: int | None
    text: str
    sentences: tuple[Sentence, ...]
    weight: float  # its share of the read
    score: float


class Memory:
    """A memory in a file or on a server, made when something is first remembered.

    ``memory`` is a path, a name, an address such as postgresql://host/database#name, or None for
    the project's or the person's own. ``embedder`` (one, or the name of one) is for a new memory;
    one that is there has its own and refuses others: ``reindex`` changes it. ``reader`` (one, or
    the name or the folder of one) answers from passages; with None an answer is a sentence.
    """

    def __init__(
        self,
        memory: str | Path | None = None,
        *,
        embedder: str | Embedder | None = None,
        reader: str | Reader | None = SHIPPED,
    ) -> None:
        self.path = locate(memory)
        self.wanted = embedder
        self.reader = reader_of(reader)

    def __enter__(self) -> "Memory":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file or the server; the next use opens it again."""
        if "store" in self.__dict__:
            self.store.close()
            del self.store
        self.__dict__.pop("embedder", None)

    @cached_property
    def store(self) -> Store:
        return opened(self.path, create=False)

    @cached_property
    def embedder(self) -> Embedder | None:
        """The embedder whose vectors the memory holds; an error if it is another one by now."""
        known = self.store.model()
        name = known.name if known else embed.NONE
        found = chosen(name if self.wanted is None else self.wanted)
        own = found.model if found else None
        if own != known:
            raise StoreError(
                f"{self.store.location} was written with {told(known)}, and this is {told(own)}: "
                "their vectors cannot be compared. Nothing was changed; `mnemic reindex --embedder "
                "NAME` makes them anew"
            )
        return found

    def begin(self) -> None:
        """Make the memory, unless it is there."""
        there = size_of(self.path) if isinstance(self.path, Path) else "store" in self.__dict__
        if not there:
            self.wanted = self.wanted and (chosen(self.wanted) or embed.NONE)  # a mistake ends here
            self.store = opened(self.path, create=True)
        if self.store.begun():
            return
        found = chosen(SHIPPED if self.wanted is None else self.wanted)
        with self.store.writing(), self.store.change():
            if self.store.begun():  # another process was quicker
                return
            self.store.set_model(found.model if found else None)
        self.embedder = found

    def remember(
        self, *paths: str | Path, include: Sequence[str] = (), exclude: Sequence[str] = ()
    ) -> list[Step]:
        """Remember files, and all files of folders; what happened to each of them."""
        steps = self.remembering(paths, include=include, exclude=exclude)
        return [step for step in steps if step.outcome != "reading"]

    def remembering(
        self,
        paths: Sequence[str | Path],
        *,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        limits: Limits = USUAL,
    ) -> Generator[Step, None, None]:
        """As ``remember``, step by step. Stopped and begun again, it goes on where it was."""
        found = find_files(paths, include=include, exclude=exclude)
        folders = [os.path.abspath(path) for path in paths if os.path.isdir(path)]
        self.begin()
        with self.store.writing(), Parser(limits) as parser:
            finish(self.store)
            work = Remembering(self.store, lambda: self.embedder, parser)
            yield from work.files(found.files, found.closed)
            yield from work.gone(folders)

    def note(self, text: str, title: str = "") -> int:
        """Remember a text that lies in no file; the document's id."""
        return self.write_note(text, title, None)

    def write_note(self, text: str, title: str, previous: Document | None) -> int:
        self.begin()
        with self.store.writing():
            told = (self.store, self.embedder, text, title, previous)
            return retried(lambda: remember_note(*told))

    def update(self, target: int | str | Path, text: str | None = None) -> int:
        """Supersede a document by ``text``, or by what its file says now; the new one's id.

        The old version stays in the history until it is forgotten.
        """
        old = self.document(target)
        if text is not None:
            return self.write_note(text, old.title if old.kind == NOTE else "", old)
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
        hops: int = HOPS,
        passages: int = READ,
        lexical: float | None = None,
        confidence: float = LEAST,
    ) -> Answer:
        """The best answer the memory has, with its evidence.

        Each hop reads ``passages`` sentence by sentence; the second and later ones ask with what
        was found. ``lexical`` is the share of words, beside vectors, in what is read: what suits
        the embedder, unless told. A reader's answer is given from a ``confidence`` on.
        """
        how = Asking(hops, passages, lexical, confidence)
        return ask(self.store, self.embedder, self.reader, question, how)

    def search(self, query: str, most: int = 10, lexical: float | None = None) -> list[Hit]:
        """The passages that fit best."""
        check_question(query)
        hop = read(self.store, self.embedder, query, lexical=lexical)
        found = []
        for slot in self.store.slots(hop.best(most)):
            name, scores = self.document(slot.document).name, hop.weights[slot.id]
            page, text = slot.passage.page, slot.passage.text
            own = (page, text, slot.passage.sentences, scores, hop.scores[slot.id])
            found.append(Hit(slot.document, name, *own))
        return found

    def forget(self, *targets: int | str | Path, verify: bool = False) -> Forgotten:
        """Forget documents, by id or path, with all older versions: nothing of them is left.

        ``verify`` looks for traces of them in the raw bytes of the memory's files.
        """
        chosen = [number for target in targets for number in self.meant(target)]
        return forget(self.store, chosen, verify=verify)

    def meant(self, target: int | str | Path) -> list[int]:
        """A folder stands for everything in it, all else for a document."""
        if isinstance(target, int) or not os.path.isdir(target):
            return [self.document(target).id]
        root = os.path.join(os.path.abspath(target), "")
        inside = {place.document for place in self.store.places() if place.path.startswith(root)}
        if not inside:
            raise StoreError(f"nothing of {target} is remembered; `mnemic memories` lists what is")
        return sorted(inside)

    def about(self, query: str) -> list[Document]:
        """The documents that have a passage with every word of ``query``."""
        slots = self.store.slots([one.slot for one in self.store.match(query, ABOUT, every=True)])
        return [self.document(number) for number in sorted({slot.document for slot in slots})]

    def document(self, target: int | str | Path) -> Document:
        """A document by its id (12 or "12"), or by the path where it lies or lay last."""
        if isinstance(target, int) or str(target).isdecimal():
            found = self.store.document(int(str(target)))
            if found is None:
                raise StoreError(f"there is no document {target}; `mnemic memories` lists them")
            return found
        numbers = self.store.once_at(os.path.abspath(target))
        if not numbers:
            raise StoreError(f"nothing of {target} is remembered; `mnemic memories` lists what is")
        return self.document(numbers[-1])

    def memories(self, *, retired: bool = False) -> list[Document]:
        """What is remembered; also what is no longer read, if asked for."""
        return list(self.store.documents(retired=retired))

    def history(self, target: int | str | Path) -> tuple[list[Document], list[Event]]:
        """All versions of a document, the oldest first, and what happened to them."""
        versions = self.store.versions(self.document(target).id)
        return versions, self.store.history([one.id for one in versions])

    def text(self, target: int | str | Path) -> str:
        """What a document says, or said until it was superseded: its passages, line by line."""
        slots = self.store.slots_of(self.document(target).id)
        return "\n".join(slot.passage.text for slot in slots)

    def stats(self) -> Counts:
        return self.store.count()

    def check(self) -> Checked:
        """What is wrong with the memory, and what was left out because nobody can write now."""
        return check(self.store)

    def reindex(self, embedder: str | Embedder | None = None) -> Iterator[tuple[int, int]]:
        """Make missing vectors and keys, or all by another embedder; yields done and total.

        Stopped and begun again with the same one, it goes on where it was.
        """
        known = self.store.model()
        own = known.name if known else embed.NONE
        found = chosen(own if embedder is None else embedder)
        with self.store.writing():
            self.wanted, self.embedder = found or embed.NONE, found
            yield from reindex(self.store, found)

    def export(self, path: str | Path) -> Iterator[exchange.Progress]:
        """Write everything but vectors and keys as JSON lines."""
        yield from exchange.write(self.store, Path(path))

    def take(self, path: str | Path) -> Iterator[exchange.Progress]:
        """Add what another memory exported; nothing is begun for a file that is not whole."""
        exchange.check(Path(path))
        self.begin()
        with self.store.writing():
            yield from exchange.read(self.store, self.embedder, Path(path))


def opened(place: Path | Address, *, create: bool) -> Store:
    """The engine of a place."""
    if isinstance(place, Address):
        return PostgresStore(place, create=create)
    return SQLiteStore(place, create=create)


def chosen(wanted: str | Embedder) -> Embedder | None:
    return embed.embedder(wanted) if isinstance(wanted, str) else wanted


def told(model: Model | None) -> str:
    return f"the embedder {model.name} ({model.hash[:12]})" if model else "no embedder"
