"""A memory as JSON lines, and back: for backups, for other programs, for another engine.

The first line names the format. Then, for each document, a line with what is known of it and a line
a passage. Vectors and keys are left out: they are made anew.
"""

import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from mnemic.store.contract import Document, Event, Place, Store, StoreError
from mnemic.store.retrieve.embedders import Embedder
from mnemic.text.documents import Passage, Sentence

FORMAT = {"format": "mnemic memory", "version": 1}
T = TypeVar("T")
AT_ONCE = 64  # passages that are embedded together


class Record(NamedTuple):
    """A document as it stands in a file."""

    document: Document
    places: list[Place]
    events: list[Event]
    passages: Iterator[Passage]


class Progress(NamedTuple):
    """How far it is: documents written, or bytes read, of how many."""

    done: int
    total: int


def write(store: Store, path: Path) -> Iterator[Progress]:
    """Write everything, the history too, beside ``path`` and rename it into place."""
    every = list(store.documents(retired=True))
    places: dict[int, list[Place]] = {}
    for place in store.places():
        places.setdefault(place.document, []).append(place)
    beside = path.with_name(f".{path.name}.new")
    try:
        with open(beside, "w", encoding="utf-8", opener=private) as file:
            file.write(json.dumps(FORMAT) + "\n")
            for number, document in enumerate(every):
                own = document._asdict() | {
                    "places": [list(place) for place in places.get(document.id, [])],
                    "events": [list(event) for event in store.history([document.id])],
                }
                file.write(line({"document": own}))
                for slot in store.slots_of(document.id):
                    file.write(line({"passage": list(slot.passage)}))
                yield Progress(number + 1, len(every))
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True) + "\n"


def private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def read(store: Store, embedder: Embedder | None, path: Path) -> Iterator[Progress]:
    """Add the documents of a file; those that are there already are passed over.

    Each document is there whole or not at all, so that an import can be stopped and done again.
    """
    there = {(one.digest, one.retired and one.remembered) for one in store.documents(retired=True)}
    numbers: dict[int, int] = {}  # ids in the file → ids here
    total = path.stat().st_size
    for done, (document, places, events, found) in documents_of(path):
        if (document.digest, document.retired and document.remembered) in there:
            deque(found, maxlen=0)  # read past them
            yield Progress(done, total)
            continue
        previous = numbers.get(document.previous) if document.previous else None
        own = document._replace(previous=previous)
        with store.change():
            number = store.restore(own, embedded(found, embedder), places, events)
        numbers[document.id] = number
        yield Progress(done, total)


def check(path: Path) -> None:
    """Read a file to its end; the error it has, if any, comes before anything is written."""
    for _, record in documents_of(path):
        deque(record.passages, maxlen=0)


def embedded(found: Iterable[Passage], embedder: Embedder | None) -> Iterator[Any]:
    passages = iter(found)
    while held := list(islice(passages, AT_ONCE)):
        if embedder is None:
            yield from ((passage, None) for passage in held)
        else:
            yield from zip(held, embedder.marks([passage.text for passage in held]))


def documents_of(path: Path) -> Iterator[tuple[int, Record]]:
    """The documents of a file, and how many bytes were read until each.

    A document's passages are a stream, to be read before the next one comes.
    """
    with path.open(encoding="utf-8") as file:
        rows = Rows(file, path)
        if rows.next() != FORMAT:
            raise StoreError(f"{path} is no memory that `mnemic export-memory` wrote")
        while (row := rows.next()) is not None:
            document, places, events = rows.understood(as_document, row)
            yield rows.bytes, Record(document, places, events, rows.passages())


class Rows:
    """The lines of a file, one of them ahead; a mistake names its line."""

    def __init__(self, file: Iterable[str], path: Path) -> None:
        self.lines = iter(file)
        self.path = path
        self.number = self.bytes = 0
        self.ahead: list[Any] = []

    def next(self) -> Any:
        if self.ahead:
            return self.ahead.pop()
        self.number += 1
        text = self.understood(lambda lines: next(lines, None), self.lines)
        self.bytes += len(text or "")  # it is all ASCII
        return None if text is None else self.understood(json.loads, text)

    def passages(self) -> Iterator[Passage]:
        while (row := self.next()) is not None:
            if not isinstance(row, dict) or "passage" not in row:
                self.ahead.append(row)
                return
            yield self.understood(as_passage, row)

    def understood(self, what: Callable[[Any], T], value: Any) -> T:
        try:
            return what(value)
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise StoreError(
                f"{self.path}, line {self.number} is not as `mnemic export-memory` writes it: "
                f"{type(error).__name__}: {error}"
            ) from None


def as_document(row: dict[str, Any]) -> tuple[Document, list[Place], list[Event]]:
    told = dict(row["document"])
    places = [Place(str(a), whole(b), whole(c), whole(d)) for a, b, c, d in told.pop("places")]
    events = [Event(whole(a), str(b), str(c), str(d)) for a, b, c, d in told.pop("events")]
    told |= {"notes": tuple(map(str, told["notes"])), "places": tuple(one.path for one in places)}
    for name in ("digest", "kind", "title", "remembered"):
        told[name] = str(told[name])
    return Document(**told), places, events


def as_passage(row: dict[str, Any]) -> Passage:
    text, page, sentences = row["passage"]
    found = tuple(Sentence(*map(whole, one)) for one in sentences)
    if not isinstance(text, str) or not text:
        raise ValueError("a passage has a text")
    if not all(0 <= one.start < one.end <= len(text) for one in found):
        raise ValueError("a sentence lies outside its text")
    return Passage(text, None if page is None else whole(page), found)


def whole(value: Any) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{value!r} is no whole number")
    return value
