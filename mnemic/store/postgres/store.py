"""The engine for many writers: a memory in a schema of a PostgreSQL database, with pgvector.

Text, vectors, full text and history are changed in one transaction. Several processes, on several
machines, write at once. Where two meet at the same content or the same path, one of them gets
``RaceError``, and nothing of its change is left; rows are locked where a decision depends on them.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

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
    RaceError,
    Scored,
    Slot,
    StoreError,
    Vectors,
)
from mnemic.store.postgres import rows
from mnemic.store.postgres import scrub as scrubbing
from mnemic.store.postgres import vectors as dense
from mnemic.store.postgres.address import Address, address_of
from mnemic.store.postgres.bm25 import match
from mnemic.store.postgres.check import look
from mnemic.store.postgres.connection import Connection
from mnemic.store.postgres.migrations import LOCK
from mnemic.store.sqlite.rows import as_document, now

MODEL = "SELECT value FROM facts WHERE name = 'model'"
PLACE = "SELECT path, document, size, modified FROM places"
EVENTS = "SELECT document, at, what, path FROM events WHERE document = ANY (%s) ORDER BY at, id"


class PostgresStore:
    """A memory on a server. See ``contract.Store`` for what its methods promise."""

    def __init__(self, address: str | Address, *, create: bool = True) -> None:
        self.address = address if isinstance(address, Address) else address_of(address)
        self.connection = Connection(self.address, create=create)
        self.told: str | None = None  # the model, as it was when a change first asked
        self.sized: tuple[object, tuple[int, int]] = (None, (0, 0))
        self.depth = 0  # of writing

    @property
    def location(self) -> str:
        return str(self.address)

    def close(self) -> None:
        self.connection.close()

    @contextmanager
    def writing(self) -> Iterator[None]:
        if not self.depth:
            self.connection.expect_writable()
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1
        if not self.depth and not dense.indexed(self.connection) and (model := self.model()):
            dense.tend(self.connection, model.width, self.size())

    @contextmanager
    def change(self) -> Iterator[None]:
        assert self.depth, "a change happens within writing()"
        with self.connection.transaction():
            told = self.connection.value(f"{MODEL} FOR SHARE")  # nobody sets another one meanwhile
            if self.told not in (None, told):
                raise StoreError(
                    f"another process gave {self.location} another embedder meanwhile; nothing was "
                    "changed: open the memory again"
                )
            self.told = told
            yield

    def model(self) -> Model | None:
        told = json.loads(self.connection.value(MODEL) or "null")
        return None if told is None else Model(**told)

    def begun(self) -> bool:
        if self.connection.inside:
            self.connection.execute(LOCK, (f"{self.address.schema} begun",))
        return self.connection.value(MODEL) is not None

    def set_model(self, model: Model | None) -> None:
        dense.drop(self.connection)
        self.connection.execute("DELETE FROM vectors")
        self.told = json.dumps(None if model is None else model._asdict())
        self.connection.execute(
            "INSERT INTO facts VALUES ('model', %s) "
            "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (self.told,),
        )

    def add(self, draft: Draft, passages: Passages = ()) -> int:
        values = (draft.digest, draft.kind, draft.title, json.dumps(draft.notes), draft.previous)
        document = rows.insert_document(self.connection, (*values, now()))
        self.extend(document, passages)
        self.tell(Event(document, now(), "remembered", draft.path))
        if draft.previous is not None:
            self.retire_if_gone(draft.previous, "superseded")
        return document

    def extend(self, document: int, passages: Passages) -> None:
        rows.insert_passages(self.connection, document, passages)

    def retell(self, document: int, draft: Draft) -> None:
        self.connection.execute(
            "UPDATE documents SET title = %s, notes = %s WHERE id = %s",
            (draft.title, json.dumps(draft.notes), document),
        )

    def restore(
        self, document: Document, passages: Passages, places: Sequence[Place], told: Sequence[Event]
    ) -> int:
        values = (document.digest, document.kind, document.title, json.dumps(document.notes))
        times = (document.previous, document.remembered)
        number = rows.insert_document(self.connection, (*values, *times))
        self.extend(number, passages)
        for place in places:
            self.lay(place._replace(document=number))
        for event in told:
            self.tell(event._replace(document=number))
        if document.retired is not None:
            self.retire(number, document.retired)
        return number

    def put(self, place: Place, what: str) -> None:
        if self.hold(place.document) is not True:
            raise RaceError(
                f"{self.location}: document {place.document} is no longer read; look again"
            )
        before = self.lay(place)
        if what:
            self.tell(Event(place.document, now(), what, place.path))
        if before is not None and before.document != place.document:
            self.retire_if_gone(before.document, "superseded")

    def lay(self, place: Place) -> Place | None:
        """Say that a document lies at a path; what lay there before."""
        found = self.connection.rows(f"{PLACE} WHERE path = %s FOR UPDATE", (place.path,))
        if found:
            self.connection.execute("DELETE FROM places WHERE path = %s", (place.path,))
        self.connection.execute("INSERT INTO places VALUES (%s, %s, %s, %s)", place)
        return Place(*found[0]) if found else None

    def remove(self, path: str) -> None:
        gone = "DELETE FROM places WHERE path = %s RETURNING document"
        document = self.connection.value(gone, (path,))
        if document is not None:
            self.tell(Event(document, now(), "gone", path))
            self.retire_if_gone(document, "")

    def hold(self, document: int) -> bool | None:
        """Lock a document until the change ends; whether it is read, None if it is not there."""
        sql = "SELECT retired IS NULL FROM documents WHERE id = %s FOR UPDATE"
        found = self.connection.value(sql, (document,))
        return None if found is None else bool(found)

    def retire_if_gone(self, document: int, what: str) -> None:
        """Take a document out of all reading, if no place holds it."""
        placed = "SELECT 1 FROM places WHERE document = %s LIMIT 1"
        if not self.hold(document) or self.connection.value(placed, (document,)):
            return
        if what:
            self.tell(Event(document, now(), what, ""))
        self.retire(document, now())

    def retire(self, document: int, at: str) -> None:
        """Take a document out of the indexes; its text stays."""
        rows.unindex(self.connection, document)
        self.connection.execute("UPDATE documents SET retired = %s WHERE id = %s", (at, document))

    def erase(self, documents: Sequence[int]) -> None:
        self.connection.execute("DELETE FROM documents WHERE id = ANY (%s)", (list(documents),))
        self.connection.execute(scrubbing.MARK)

    def scrub(self) -> bool:
        return scrubbing.scrub(self.connection)

    def unscrubbed(self) -> bool:
        return bool(self.connection.rows("SELECT 1 FROM facts WHERE name = 'remains'"))

    def remains(self, traces: Sequence[bytes]) -> list[bytes]:
        return scrubbing.remains(self.connection, traces)

    def beyond(self) -> str:
        return scrubbing.BEYOND

    def tell(self, event: Event) -> None:
        self.connection.execute(
            "INSERT INTO events (document, at, what, path) VALUES (%s, %s, %s, %s)", event
        )

    def document(self, number: int) -> Document | None:
        found = rows.read_documents(self.connection, "WHERE id = %s", (number,))
        return found[0] if found else None

    def versions(self, number: int) -> list[Document]:
        where = f"WHERE id IN ({rows.CHAIN}) ORDER BY id"
        return rows.read_documents(self.connection, where, {"own": number})

    def documents(self, *, retired: bool = False) -> Iterator[Document]:
        which = "" if retired else "AND retired IS NULL"
        sql = f"{rows.DOCUMENT} WHERE id > %s {which} ORDER BY id"
        yield from map(as_document, rows.paged(self.connection, sql, 0))

    def equal(self, digest: str) -> int | None:
        sql = "SELECT id FROM documents WHERE digest = %s AND retired IS NULL"
        found = self.connection.value(sql, (digest,))
        return None if found is None else int(found)

    def places(self) -> Iterator[Place]:
        sql = f"{PLACE} WHERE path > %s ORDER BY path"
        yield from (Place(*row) for row in rows.paged(self.connection, sql, ""))

    def place(self, path: str) -> Place | None:
        found = self.connection.rows(f"{PLACE} WHERE path = %s", (path,))
        return Place(*found[0]) if found else None

    def once_at(self, path: str) -> list[int]:
        sql = (
            "SELECT document FROM places WHERE path = %(path)s UNION "
            "SELECT document FROM events WHERE path = %(path)s ORDER BY 1"
        )
        return [number for (number,) in self.connection.rows(sql, {"path": path})]

    def history(self, documents: Sequence[int]) -> list[Event]:
        return [Event(*row) for row in self.connection.rows(EVENTS, (list(documents),))]

    def slots(self, numbers: Sequence[int]) -> list[Slot]:
        every = rows.read_slots(self.connection, "WHERE id = ANY (%s)", (list(numbers),))
        found = {slot.id: slot for slot in every}
        return [found[number] for number in numbers]

    def slots_of(self, document: int) -> Iterator[Slot]:
        where = f"WHERE document = %s AND number > %s ORDER BY number LIMIT {rows.AT_ONCE}"
        last = -1
        while block := rows.read_slots(self.connection, where, (document, last)):
            yield from block
            last = block[-1].number

    def unmarked(self) -> Iterator[list[Slot]]:
        lacking = "(SELECT passage FROM lexicon LEFT JOIN vectors USING (passage)"
        where = (
            f"WHERE id IN {lacking} WHERE keys IS NULL AND passage > %s "
            f"ORDER BY passage LIMIT {rows.AT_ONCE}) ORDER BY id"
        )
        last = 0
        while block := rows.read_slots(self.connection, where, (last,)):
            last = block[-1].id
            yield block

    def give(self, numbers: Sequence[int], marks: Sequence[Marks]) -> None:
        dense.give(self.connection, zip(numbers, marks))

    def match(self, text: str, most: int, *, every: bool = False) -> list[Scored]:
        return match(self.connection, text, most, self.sizes(), every=every)

    def nearest(self, vector: Vectors, most: int) -> Nearest:
        return dense.nearest(self.connection, vector, most, self.size())

    def vectors(self, numbers: Sequence[int]) -> Vectors:
        return dense.read_vectors(self.connection, numbers, self.width())

    def keys(self, numbers: Sequence[int]) -> Keys:
        return dense.read_keys(self.connection, numbers, self.width())

    def width(self) -> int:
        model = self.model()
        return model.width if model else 0

    def size(self) -> int:
        return self.sizes()[0]

    def sizes(self) -> tuple[int, int]:
        """How many slots are read, and how many words they have; counted again after any change."""
        state = self.connection.value("SELECT pg_current_snapshot()::text")
        if self.connection.inside or self.sized[0] != state:
            sql = "SELECT count(*), coalesce(sum(length), 0)::bigint FROM lexicon"
            (found,) = self.connection.rows(sql)
            self.sized = (None if self.connection.inside else state, (found[0], found[1]))
        return self.sized[1]

    def count(self) -> Counts:
        return rows.count(self.connection)

    def check(self) -> Checked:
        return look(self.connection, self.model)
