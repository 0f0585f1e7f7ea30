"""Compute the vectors of a memory again, after a change of the embedder."""

from collections.abc import Iterator

from mnemic.store.contract import Store
from mnemic.store.retrieve.embedders import Embedder


def reindex_store(store: Store, embedder: Embedder | None) -> Iterator[tuple[int, int]]:
    """Compute the missing embeddings of all slots; yield done and total."""
    model = embedder.model if embedder else None
    if model != store.get_model():
        with store.transaction():
            store.set_model(model)
    total, done = store.count_slots(), store.collect_stats().keyed
    if embedder is None:
        return
    for slots in store.list_unembedded_slots():
        embeddings = embedder.embed_passages([slot.passage.text for slot in slots])
        with store.transaction():
            store.set_embeddings([slot.id for slot in slots], embeddings)
        done += len(slots)
        yield done, total
