"""Forget documents so that nothing of them is left, and prove it."""

from collections.abc import Sequence
from typing import NamedTuple

from mnemic.store.contract import Document, Store
from mnemic.store.sqlite.residue import traces_of

SAMPLED = 200  # passages of a document whose traces are looked for


class Forgotten(NamedTuple):
    """What was forgotten, and whether the files are clean of it."""

    documents: tuple[Document, ...]
    scrubbed: bool  # False: another process still reads, so that the journal could not be emptied
    remains: tuple[str, ...] | None  # traces that were found; None: nobody looked
    beyond: str = ""  # where traces may be that the engine cannot reach


def forget(store: Store, numbers: Sequence[int], *, verify: bool) -> Forgotten:
    """Erase documents with their older versions, then clear indexes and journals of them."""
    if verify:
        store.remains([])  # whether it can be looked for at all, before anything is erased
    chosen = {one.id: one for number in numbers for one in with_versions(store, number)}
    traces = [trace for one in chosen.values() for trace in traces_in(store, one)] if verify else []
    with store.writing():
        with store.change():
            store.erase(list(chosen))
        scrubbed = store.scrub()
    left = store.remains(traces) if verify else None
    told = None if left is None else tuple(one.decode("utf-8", "replace") for one in left)
    return Forgotten(tuple(chosen.values()), scrubbed, told, store.beyond())


def finish(store: Store) -> None:
    """Do what a process that was killed while forgetting left undone."""
    if store.unscrubbed():
        store.scrub()


def with_versions(store: Store, number: int) -> list[Document]:
    """A document and the versions before it; one that is still read, at another place, stays."""
    versions = store.versions(number)
    return [one for one in versions if one.id == number or (one.id < number and one.retired)]


def traces_in(store: Store, document: Document) -> list[bytes]:
    """Of a long document, those of passages here and there."""
    step = document.passages // SAMPLED + 1
    slots = [slot for slot in store.slots_of(document.id) if slot.number % step == 0]
    numbers = [slot.id for slot in slots]
    return traces_of(document, slots, store.vectors(numbers), store.keys(numbers).rows)
