"""Make the vectors of a memory, and their keys, anew after a change of the model."""

from collections.abc import Iterator

from mnemic.store.contract import Store
from mnemic.store.retrieve.embedders import Embedder


def reindex(store: Store, embedder: Embedder | None) -> Iterator[tuple[int, int]]:
    """Give every slot the marks of this embedder; yields how many have them, of how many."""
    model = embedder.model if embedder else None
    if model != store.model():
        with store.change():
            store.set_model(model)
    total, done = store.size(), store.count().keyed
    if embedder is None:
        return
    for slots in store.unmarked():
        marks = embedder.marks([slot.passage.text for slot in slots])
        with store.change():
            store.give([slot.id for slot in slots], marks)
        done += len(slots)
        yield done, total
