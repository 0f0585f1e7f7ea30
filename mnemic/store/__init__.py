"""The lasting memory: a person's documents as slots with text, vectors, provenance and history.

``Memory`` has the verbs. It knows a model only as ``Embedder`` (texts → vectors) and ``Reader``
(question and passages → spans), and an engine only as ``Store``.
"""

from collections.abc import Callable

from mnemic.store.answers import Answer, Evidence, Ranked
from mnemic.store.asking import Asking
from mnemic.store.confidence import Reader, Span
from mnemic.store.contract import Checked, Document, Store, StoreError
from mnemic.store.embed import Embedder, HashedNgrams
from mnemic.store.forgetting import Forgotten
from mnemic.store.memory import Hit, Memory
from mnemic.store.postgres import PostgresStore
from mnemic.store.remembering import Step
from mnemic.store.sqlite import SQLiteStore

ENGINES: dict[str, Callable[..., Store]] = {"sqlite": SQLiteStore, "postgresql": PostgresStore}

__all__ = [
    "ENGINES",
    "Answer",
    "Asking",
    "Checked",
    "Document",
    "Embedder",
    "Evidence",
    "Forgotten",
    "HashedNgrams",
    "Hit",
    "Memory",
    "PostgresStore",
    "Ranked",
    "Reader",
    "SQLiteStore",
    "Span",
    "Step",
    "Store",
    "StoreError",
]
