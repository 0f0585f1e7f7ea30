"""The embedded engine: one SQLite file is the only truth, over text, vectors, index and history.

The journal is a write-ahead log, so readers are never kept waiting and see whole changes only.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from mnemic.store.contract import (
    Checked,
    Counts,
    Document,
    Draft,
    Event,
    Keys,
    Marks,
    Model,
    Nearest,
    Passages,
    Place,
    Scored,
    Slot,
    StoreError,
    Vectors,
)
from mnemic.store.retrieve import query_words as lexical
from mnemic.store.sqlite import write_rows as slots
from mnemic.store.sqlite.bm25 import RANKED, match
from mnemic.store.sqlite.check import look
from mnemic.store.sqlite.connection import Connection
from mnemic.store.sqlite.embeddings import give, read_keys, read_vectors
from mnemic.store.sqlite.lock import sole_writer
from mnemic.store.sqlite.quantized import Large, renew, vector_blocks, vector_count
from mnemic.store.sqlite.residue import scan
from mnemic.store.sqlite.rows import DOCUMENT, READ, as_document, chain, count, now, read_slots
from mnemic.store.sqlite.scrub import held, scrub
from mnemic.store.sqlite.vectors import Kept, search

MODEL = "SELECT value FROM facts WHERE name = 'model'"
PUT = "INSERT OR REPLACE INTO places VALUES (?, ?, ?, ?)"


class SQLiteStore:
    """A memory in a file. See ``contract.Store`` for what its methods promise."""

    def __init__(self, path: str | Path, *, create: bool = True) -> None:
        self.path = Path(path).expanduser()
        self.connection = Connection(self.path, create=create)
        self.kept = Kept()
        self.large = Large(self.connection)
        self.sized: tuple[object, int] = (None, 0)  # how many slots there were, and when
        self.locked = False

    @property
    def location(self) -> str:
        return str(self.path)

    def close(self) -> None:
        self.connection.close()

    @contextmanager
    def writing(self) -> Iterator[None]:
        if self.locked:  # a verb that is made of others
            yield
            return
        if not self.connection.writable:
            raise StoreError(f"{self.path} is read-only; reading it still works")
        with sole_writer(self.path):
            self.locked = True
            try:
                yield
            finally:
                self.locked = False

    @contextmanager
    def change(self) -> Iterator[None]:
        assert self.locked, "a change happens within writing()"
        with self.connection.transaction():
            yield

    def model(self) -> Model | None:
        told = json.loads(self.connection.value(MODEL) or "null")
        return None if told is None else Model(**told)

    def begun(self) -> bool:
        return self.connection.value(MODEL) is not None

    def set_model(self, model: Model | None) -> None:
        self.connection.execute("DELETE FROM vectors")
        renew(self.connection)
        told = json.dumps(None if model is None else model._asdict())
        self.connection.execute("INSERT OR REPLACE INTO facts VALUES ('model', ?)", (told,))

    def add(self, draft: Draft, passages: Passages = ()) -> int:
        values = (draft.digest, draft.kind, draft.title, json.dumps(draft.notes), draft.previous)
        document = slots.insert_document(self.connection, (*values, now(), None))
        self.extend(document, passages)
        self.tell(Event(document, now(), "remembered", draft.path))
        if draft.previous is not None:
            self.retire_if_gone(draft.previous, "superseded")
        return document

    def extend(self, document: int, passages: Passages) -> None:
        slots.insert_passages(self.connection, document, passages)

    def retell(self, document: int, draft: Draft) -> None:
        self.connection.execute(
            "UPDATE documents SET title = ?, notes = ? WHERE id = ?",
            (draft.title, json.dumps(draft.notes), document),
        )

    def restore(
        self, document: Document, passages: Passages, places: Sequence[Place], told: Sequence[Event]
    ) -> int:
        values = (document.digest, document.kind, document.title, json.dumps(document.notes))
        times = (document.previous, document.remembered, None)
        number = slots.insert_document(self.connection, (*values, *times))
        self.extend(number, passages)
        for place in places:
            self.connection.execute(PUT, place._replace(document=number))
        for event in told:
            self.tell(event._replace(document=number))
        if document.retired is not None:
            self.retire(number, document.retired)
        return number

    def put(self, place: Place, what: str) -> None:
        before = self.place(place.path)
        self.connection.execute(PUT, place)
        if what:
            self.tell(Event(place.document, now(), what, place.path))
        if before is not None and before.document != place.document:
            self.retire_if_gone(before.document, "superseded")

    def remove(self, path: str) -> None:
        place = self.place(path)
        if place is not None:
            self.connection.execute("DELETE FROM places WHERE path = ?", (path,))
            self.tell(Event(place.document, now(), "gone", path))
            self.retire_if_gone(place.document, "")

    def retire_if_gone(self, document: int, what: str) -> None:
        """Take a document out of all reading, if no place holds it."""
        placed = "SELECT 1 FROM places WHERE document = ? LIMIT 1"
        retired = "SELECT 1 FROM documents WHERE id = ? AND retired IS NOT NULL"
        if any(self.connection.value(sql, (document,)) for sql in (placed, retired)):
            return
        if what:
            self.tell(Event(document, now(), what, ""))
        self.retire(document, now())

    def retire(self, document: int, at: str) -> None:
        """Take a document out of the indexes; its text stays."""
        slots.unindex(self.connection, document)
        self.connection.execute("UPDATE documents SET retired = ? WHERE id = ?", (at, document))

    def erase(self, documents: Sequence[int]) -> None:
        for document in documents:
            slots.unindex(self.connection, document)
            self.connection.execute("DELETE FROM documents WHERE id = ?", (document,))
        renew(self.connection)
        self.connection.execute("INSERT OR REPLACE INTO facts VALUES ('remains', '')")

    def scrub(self) -> bool:
        self.large.drop()
        return scrub(self.connection)

    def unscrubbed(self) -> bool:
        """Whether a process ended after it erased and before it scrubbed."""
        return self.connection.value("SELECT 1 FROM facts WHERE name = 'remains'") is not None

    def remains(self, traces: Sequence[bytes]) -> list[bytes]:
        found = scan(self.files(), traces) if traces else []
        left = [trace for trace in found if not held(self.connection, trace)]
        coded = self.large.coded(left) if left else set()
        return [trace for trace in left if trace not in coded]

    def beyond(self) -> str:
        return ""

    def tell(self, event: Event) -> None:
        self.connection.execute(
            "INSERT INTO events (document, at, what, path) VALUES (?, ?, ?, ?)", event
        )

    def document(self, number: int) -> Document | None:
        found = self.connection.rows(f"{DOCUMENT} WHERE id = ?", (number,))
        return as_document(found[0]) if found else None

    def versions(self, number: int) -> list[Document]:
        found = map(self.document, chain(self.connection, number))
        return [one for one in found if one is not None]

    def documents(self, *, retired: bool = False) -> Iterator[Document]:
        which = "" if retired else "WHERE retired IS NULL"
        for block in self.connection.blocks(f"{DOCUMENT} {which} ORDER BY id"):
            yield from map(as_document, block)

    def equal(self, digest: str) -> int | None:
        return self.connection.value(
            "SELECT id FROM documents WHERE digest = ? AND retired IS NULL", (digest,)
        )

    def places(self) -> Iterator[Place]:
        for block in self.connection.blocks("SELECT * FROM places ORDER BY path"):
            yield from (Place(*row) for row in block)

    def place(self, path: str) -> Place | None:
        found = self.connection.rows("SELECT * FROM places WHERE path = ?", (path,))
        return Place(*found[0]) if found else None

    def once_at(self, path: str) -> list[int]:
        sql = (
            "SELECT document FROM places WHERE path = ?1 UNION "
            "SELECT document FROM events WHERE path = ?1 ORDER BY 1"
        )
        return [row[0] for row in self.connection.rows(sql, (path,))]

    def history(self, documents: Sequence[int]) -> list[Event]:
        return [
            Event(*row)
            for row in self.connection.rows(
                "SELECT document, at, what, path FROM events "
                "WHERE document IN (SELECT value FROM json_each(?)) ORDER BY at, id",
                (json.dumps(list(documents)),),
            )
        ]

    def slots(self, numbers: Sequence[int]) -> list[Slot]:
        wanted = "WHERE id IN (SELECT value FROM json_each(?))"
        found = {
            slot.id: slot for slot in read_slots(self.connection, wanted, json.dumps(list(numbers)))
        }
        return [found[number] for number in numbers]

    def slots_of(self, document: int) -> Iterator[Slot]:
        yield from read_slots(self.connection, "WHERE document = ? ORDER BY number", document)

    def unmarked(self) -> Iterator[list[Slot]]:
        marked = "(SELECT passage FROM keys)"
        lacking = (
            f"WHERE document IN {READ} AND id NOT IN {marked} AND id > ? ORDER BY id LIMIT 256"
        )
        last = 0
        while block := list(read_slots(self.connection, lacking, last)):
            last = block[-1].id
            yield block

    def give(self, numbers: Sequence[int], marks: Sequence[Marks]) -> None:
        renew(self.connection)
        give(self.connection, zip(numbers, marks))

    def match(self, text: str, most: int, *, every: bool = False) -> list[Scored]:
        if not (words := lexical.words_of(text)):
            return []
        if every:
            rows = self.connection.rows(RANKED, (lexical.query(words, every=True), most))
            return [Scored(*row) for row in rows]
        return match(self.connection, words, most, self.size())

    def nearest(self, vector: Vectors, most: int) -> Nearest:
        if self.large.suits(self.size()):
            return self.large.nearest(vector, most, self.size())
        connection, width = self.connection, len(vector)
        changing = connection.raw.in_transaction
        with connection.snapshot():
            state = None if changing else connection.state()
            fresh = vector_blocks(connection, width)
            blocks = self.kept.read(state, width, partial(vector_count, connection), fresh)
            return search(blocks, vector, most)

    def vectors(self, numbers: Sequence[int]) -> Vectors:
        return read_vectors(self.connection, numbers, self.width())

    def keys(self, numbers: Sequence[int]) -> Keys:
        return read_keys(self.connection, numbers, self.width())

    def width(self) -> int:
        model = self.model()
        return model.width if model else 0

    def size(self) -> int:
        state = self.connection.state()
        if self.sized[0] != state:
            self.sized = (state, self.connection.value("SELECT count(*) FROM lexicon_docsize"))
        return self.sized[1]

    def count(self) -> Counts:
        return count(self.connection, sum(path.stat().st_size for path in self.files()))

    def files(self) -> list[Path]:
        """The file and what lies beside it: the journal with its index, and the cache."""
        beside = [self.path.with_name(f"{self.path.name}{end}") for end in ("-wal", "-shm")]
        return [path for path in (self.path, *beside, *self.large.files()) if path.exists()]

    def check(self) -> Checked:
        return look(self.connection, self.model, writing=self.locked)
