"""Compute the vectors of passages again, or those that are missing."""

from collections.abc import Iterator

from mnemic.store.ingest.questions import embed_questions
from mnemic.store.relational import Store
from mnemic.store.retrieve.embedders import Embedder
from mnemic.store.retrieve.languages import embed_known_passages


def reindex_passages(store: Store, embedder: Embedder | None) -> Iterator[tuple[int, int]]:
    """Compute missing vectors, or all if the embedder is another; yield done and total."""
    model = embedder.model if embedder else None
    if model != store.get_model():
        with store.transaction():
            store.set_model(model)
    total, done = store.count_slots(), store.collect_stats().keyed
    if embedder is None:
        return
    for slots in store.list_unembedded_slots():
        embeddings = embed_known_passages(embedder, [slot.passage.text for slot in slots])
        with store.transaction():
            store.set_embeddings([slot.id for slot in slots], embeddings)
        done += len(slots)
        yield done, total
    for row in store.list_unembedded_questions():
        with store.transaction():
            store.put_questions(embed_questions([row], embedder))
