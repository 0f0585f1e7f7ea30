"""The embedder of a memory: that of its vectors, or none where they are outdated.

A new version of mnemic may ship a new version of an embedder, whose vectors cannot be compared with
those that a memory has. The memory is then searched by words alone until it is reindexed, and what
is remembered meanwhile has no vectors yet: reindexing computes those of all passages.
"""

from collections.abc import Sequence

from mnemic.checkpoint import shipped
from mnemic.store.contract import EmbeddingModel, StoreError
from mnemic.store.retrieve.embedders import NO_EMBEDDER, Embedder, HashedNgrams, resolve_embedder


class StoredEmbedder:
    """The embedder that fits the stored vectors of a memory.

    ``embedder`` is None if the memory has no vectors, or outdated ones: of a shipped embedder that
    nobody requested, in another version. Then ``successor`` is the one that reindexing would use,
    which says how long a passage may be. Any other disagreement is a ``StoreError``.
    """

    def __init__(self, location: str, model: EmbeddingModel | None, requested: str | Embedder | None) -> None:
        self.model, self.embedder = model, resolve_embedder(requested or get_stored_name(model))
        self.successor: Embedder | None = None
        actual = self.embedder.model if self.embedder else None
        if actual == model:
            return
        if requested is not None or model is None or model.name not in shipped.list_text_models():
            raise StoreError(
                f"{location} was written with {describe_model(model)}, and this "
                f"is {describe_model(actual)}: their vectors cannot be compared. Nothing was "
                "changed; `mnemic reindex --embedder NAME`, in Python Memory.reindex, computes them again"
            )
        self.embedder, self.successor = None, resolve_embedder(choose_successor(model))

    @property
    def is_outdated(self) -> bool:
        """Whether the stored vectors are by another version of the embedder."""
        return self.successor is not None

    @property
    def search_note(self) -> str:
        """What a user should know of a search; empty: nothing."""
        return self.describe("it was searched by words alone; `mnemic reindex` computes them again")

    @property
    def write_note(self) -> str:
        """What a user should know of new passages; empty: nothing."""
        return self.describe("new passages have none until `mnemic reindex` computes all of them again")

    def describe(self, consequence: str) -> str:
        """Describe outdated vectors and their consequence; empty if there are none."""
        cause = f"the vectors of this memory are by another version of the embedder {get_stored_name(self.model)}"
        return f"{cause}: {consequence}" if self.is_outdated else ""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text, for this embedder or its successor."""
        return (self.embedder or self.successor or HashedNgrams()).count_tokens(texts)


def get_stored_name(model: EmbeddingModel | None) -> str:
    """Return the name of the embedder that made the vectors of a memory."""
    return model.name if model else NO_EMBEDDER


def choose_successor(model: EmbeddingModel | None) -> str:
    """Choose the embedder that computes the vectors of a memory again, if none is requested.

    It is that of the memory, or the default if that one ships for reading alone now.
    """
    name = get_stored_name(model)
    is_retired = name in shipped.list_text_models() and name not in shipped.EMBEDDERS
    return shipped.EMBEDDERS[0] if is_retired else name


def describe_model(model: EmbeddingModel | None) -> str:
    """Describe an embedding model for an error message."""
    return f"the embedder {model.name} ({model.hash[:12]})" if model else "no embedder"
