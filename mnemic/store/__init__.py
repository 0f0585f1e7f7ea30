"""The lasting memory: a person's documents as slots with text, vectors, provenance and history.

``Memory`` has the verbs. It knows a model only as ``Embedder`` (texts → vectors) and ``Reader``
(question and passages → spans), and an engine only as ``Store``.
"""

from typing import TYPE_CHECKING

from mnemic._lazy import lazy_names

if TYPE_CHECKING:
    from mnemic.store.answer.ask import Asking as Asking
    from mnemic.store.answer.confidence import Reader as Reader
    from mnemic.store.answer.confidence import Span as Span
    from mnemic.store.answers import Answer as Answer
    from mnemic.store.answers import Evidence as Evidence
    from mnemic.store.answers import Ranked as Ranked
    from mnemic.store.contract import Checked as Checked
    from mnemic.store.contract import Document as Document
    from mnemic.store.contract import Store as Store
    from mnemic.store.contract import StoreError as StoreError
    from mnemic.store.ingest.forget import Forgotten as Forgotten
    from mnemic.store.ingest.remember import Step as Step
    from mnemic.store.memory import ENGINES as ENGINES
    from mnemic.store.memory import Hit as Hit
    from mnemic.store.memory import Memory as Memory
    from mnemic.store.postgres.store import PostgresStore as PostgresStore
    from mnemic.store.retrieve.embedders import Embedder as Embedder
    from mnemic.store.retrieve.embedders import HashedNgrams as HashedNgrams
    from mnemic.store.sqlite.store import SQLiteStore as SQLiteStore

_HOMES = {
    "mnemic.store.answer.ask": ["Asking"],
    "mnemic.store.answer.confidence": ["Reader", "Span"],
    "mnemic.store.answers": ["Answer", "Evidence", "Ranked"],
    "mnemic.store.contract": ["Checked", "Document", "Store", "StoreError"],
    "mnemic.store.ingest.forget": ["Forgotten"],
    "mnemic.store.ingest.remember": ["Step"],
    "mnemic.store.memory": ["ENGINES", "Hit", "Memory"],
    "mnemic.store.postgres.store": ["PostgresStore"],
    "mnemic.store.retrieve.embedders": ["Embedder", "HashedNgrams"],
    "mnemic.store.sqlite.store": ["SQLiteStore"],
}

if not TYPE_CHECKING:  # a type checker would take every name for known
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)

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
