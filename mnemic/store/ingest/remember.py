"""Write files into a memory, doing only what changed: a generator that steps and yields."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path
from typing import Literal, NamedTuple

from mnemic.store.contract import Document, Draft, Passages, Place, RaceError, Store, StoreError
from mnemic.store.ingest.file_stat import digest_of, placed, size_of
from mnemic.store.ingest.retry import resumed, retried
from mnemic.store.retrieve.embedders import Embedder, HashedNgrams
from mnemic.store.retrieve.query_words import check_chinese
from mnemic.text.documents import (
    Anchor,
    Closed,
    DocumentError,
    Measure,
    Note,
    Parser,
    Part,
    Passage,
    Piece,
    Title,
    kind_of,
    may_be_file,
    passages,
    storable,
)

AT_ONCE = 64  # passages that are embedded together
NOTE = "note"  # the kind of a text that came without a file
TITLE = 60  # characters of its beginning that a note is called by

Outcome = Literal["new", "changed", "moved", "copied", "unchanged", "gone", "broken", "reading"]


class Step(NamedTuple):
    """What happened to a file. Whatever it says was remembered is there for good."""

    path: str
    outcome: Outcome  # "reading": a large file is still being read
    document: int | None
    passages: int
    notes: tuple[str, ...]  # why it is broken, or what of it could not be read
    done: int  # bytes
    total: int


class Read(NamedTuple):
    """A file that was read and waits to be written."""

    path: Path
    draft: Draft
    stat: os.stat_result
    passages: list[Passage]


class Remembering:
    """One round of remembering files."""

    def __init__(self, store: Store, load: Callable[[], Embedder | None], parser: Parser) -> None:
        self.store = store
        self.load = load  # the embedder; not before something is to be embedded
        self.parser = parser
        self.waiting: list[Read] = []
        self.done = self.total = 0

    @cached_property
    def embedder(self) -> Embedder | None:
        return self.load()

    def files(self, files: Sequence[Path], closed: Sequence[Closed] = ()) -> Iterator[Step]:
        """Remember files; small ones are embedded, and committed, several at a time.

        Folders that stayed ``closed`` to the one who looked for files are told as broken.
        """
        for folder in closed:
            yield self.step(folder.path, "broken", notes=(folder.reason,))
        self.total = sum(map(size_of, files))
        for path in files:
            before = self.done
            try:
                size = path.stat().st_size
                yield from resumed(partial(self.file, path))
                self.done = before + size
            except (DocumentError, OSError) as error:
                reason = error.strerror if isinstance(error, OSError) else None
                yield self.step(path, "broken", notes=(reason or str(error),))
        yield from self.flush()

    def file(self, path: Path) -> Iterator[Step]:
        """Remember one file, if it is not as it was."""
        stat = path.stat()
        if not str(path).isascii() and storable(str(path)) != str(path):
            raise DocumentError("its name is no unicode text; give it another one")
        known = self.store.place(str(path))
        if known is not None and (known.size, known.modified) == (stat.st_size, stat.st_mtime_ns):
            yield self.step(path, "unchanged", known.document)
            return
        digest = digest_of(path)
        twin = self.store.equal(digest) or self.twin_waiting(digest)
        if isinstance(twin, Read):
            yield from self.flush()
            twin = self.store.equal(digest)
        if twin is not None:
            yield self.found_again(path, stat, known, twin)
            return
        previous = known.document if known else None
        yield from self.read(path, stat, digest, previous)

    def twin_waiting(self, digest: str) -> Read | None:
        return next((one for one in self.waiting if one.draft.digest == digest), None)

    def found_again(
        self, path: Path, stat: os.stat_result, known: Place | None, document: int
    ) -> Step:
        """The content is there already: under this path, under one that is gone, or elsewhere."""
        holder = self.store.document(document)
        assert holder is not None
        others = [place for place in holder.places if place != str(path)]
        gone = [place for place in others if not may_be_file(place)]
        same = known is not None and known.document == document
        outcome: Outcome = "unchanged" if same else "moved" if gone else "copied"
        with self.store.change():
            self.store.put(placed(path, document, stat), "" if same else outcome)
            for place in gone:
                self.store.remove(place)
        return self.step(path, outcome, document)

    def read(
        self, path: Path, stat: os.stat_result, digest: str, previous: int | None
    ) -> Iterator[Step]:
        """Read a file; a small one waits for others, a large one is written while it is read."""
        told: list[Note | Title] = []
        measure: Measure = (self.embedder or HashedNgrams()).measure
        found = passages(sorted_out(self.parser.read(path, kind_of(path)), told), measure)
        held: list[Passage] = []
        for passage in found:
            check_chinese(passage.text)
            held.append(passage)
            if len(held) == AT_ONCE:
                break
        if not held:
            reasons = [one.text for one in told if isinstance(one, Note)]
            raise DocumentError("; ".join(reasons[:5]) or "there is no text in it")
        if len(held) < AT_ONCE:
            self.check_still(path, stat)
            self.waiting.append(Read(path, draft_of(path, digest, previous, told), stat, held))
            if sum(len(one.passages) for one in self.waiting) >= AT_ONCE:
                yield from self.flush()
            return
        yield from self.flush()
        first = Read(path, draft_of(path, digest, previous, told), stat, held)
        yield from self.large(first, found, told)

    def large(
        self, first: Read, rest: Iterator[Passage], told: list[Note | Title]
    ) -> Iterator[Step]:
        """Write a file while it is read, in one change."""
        count, begun = 0, self.done
        with self.store.change():
            document = self.store.add(first.draft)
            held = first.passages
            while held:
                self.store.extend(document, with_marks(held, self.embedder))
                count += len(held)
                self.done += sum(len(passage.text) for passage in held)
                self.done = min(self.done, begun + first.stat.st_size)
                yield self.step(first.path, "reading", passages=count)
                held = [passage for _, passage in zip(range(AT_ONCE), rest)]
            self.check_still(first.path, first.stat)
            final = draft_of(first.path, first.draft.digest, first.draft.previous, told)
            self.store.retell(document, final)
            self.store.put(placed(first.path, document, first.stat), "")
        outcome: Outcome = "new" if final.previous is None else "changed"
        yield self.step(first.path, outcome, document, count, final.notes)

    def flush(self) -> Iterator[Step]:
        """Embed and write what waits, in one change."""
        waiting, self.waiting = self.waiting, []
        if not waiting:
            return
        held = [passage for one in waiting for passage in one.passages]
        pairs = iter(with_marks(held, self.embedder))
        every = [(one, [next(pairs) for _ in one.passages]) for one in waiting]
        try:
            yield from self.write(every)
        except RaceError:  # another process remembers the same: one by one, each after a new look
            for one, own in every:
                yield retried(partial(self.write_alone, one, own))

    def write(self, every: Sequence[tuple[Read, Passages]]) -> list[Step]:
        """Write files with their passages in one change."""
        steps = []
        with self.store.change():
            for one, own in every:
                number = self.store.add(one.draft, own)
                self.store.put(placed(one.path, number, one.stat), "")
                outcome: Outcome = "new" if one.draft.previous is None else "changed"
                count, notes = len(one.passages), one.draft.notes
                steps.append(self.step(one.path, outcome, number, count, notes))
        return steps

    def write_alone(self, one: Read, own: Passages) -> Step:
        """Write a file, unless another process has written the same just now."""
        known, twin = self.store.place(str(one.path)), self.store.equal(one.draft.digest)
        if twin is not None:
            return self.found_again(one.path, one.stat, known, twin)
        draft = one.draft._replace(previous=known.document if known else None)
        return self.write([(one._replace(draft=draft), own)])[0]

    def check_still(self, path: Path, before: os.stat_result) -> None:
        now = path.stat()
        if (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
            raise DocumentError("it was changed while it was read; remember it again")

    def gone(self, folders: Sequence[str]) -> Iterator[Step]:
        """Retire what lay in these folders and is known to be there no longer."""
        roots = [os.path.join(folder, "") for folder in folders]
        lost = [
            place
            for place in self.store.places()
            if any(place.path.startswith(root) for root in roots) and not may_be_file(place.path)
        ]
        for place in lost:
            retried(partial(self.leave, place.path))
            yield self.step(Path(place.path), "gone", place.document)

    def leave(self, path: str) -> None:
        with self.store.change():
            self.store.remove(path)

    def step(
        self,
        path: Path,
        outcome: Outcome,
        document: int | None = None,
        passages: int = 0,
        notes: tuple[str, ...] = (),
    ) -> Step:
        return Step(storable(str(path)), outcome, document, passages, notes, self.done, self.total)


def remember_note(
    store: Store, embedder: Embedder | None, text: str, title: str, previous: Document | None
) -> int:
    """Remember a text that lies in no file; the id of the document that says it."""
    text = storable(text)
    digest = sha256(f"{NOTE}\n{text}".encode()).hexdigest()
    if (known := store.equal(digest)) is not None:
        if previous is not None and previous.id != known:
            raise StoreError(f"document {known} says that already; forget {previous.id} instead")
        return known
    check_chinese(text)
    piece = Piece(text, (Anchor(0, 0, 1),))
    found = list(passages([piece], (embedder or HashedNgrams()).measure))
    if not found:
        raise DocumentError("the text is empty; there is nothing to remember")
    name = storable(title) or found[0].text[:TITLE].split("\n")[0]
    with store.change():
        for place in previous.places if previous else ():
            store.remove(place)
        draft = Draft(digest, NOTE, name, (), previous.id if previous else None)
        return store.add(draft, with_marks(found, embedder))


def with_marks(held: Sequence[Passage], embedder: Embedder | None) -> Passages:
    if embedder is None:
        return [(passage, None) for passage in held]
    return list(zip(held, embedder.marks([passage.text for passage in held])))


def sorted_out(parts: Iterable[Part], told: list[Note | Title]) -> Iterator[Piece]:
    """The pieces; notes and titles are put aside."""
    for part in parts:
        if isinstance(part, Piece):
            yield part
        else:
            told.append(part)


def draft_of(path: Path, digest: str, previous: int | None, told: Sequence[Note | Title]) -> Draft:
    titles = [one.text for one in told if isinstance(one, Title)]
    notes = tuple(one.text for one in told if isinstance(one, Note))
    title = titles[0] if titles else path.stem
    return Draft(digest, kind_of(path), title, notes, previous, str(path))
