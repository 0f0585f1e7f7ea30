"""A persistent memory of documents: passages with text, vectors, provenance and history.

``Memory`` has the verbs. It knows a model only as ``Embedder`` (texts → vectors) and ``Reader``
(question and passages → spans), and a storage engine only as ``Store``.
"""

from typing import TYPE_CHECKING

from mnemic._lazy import lazy_names

if TYPE_CHECKING:
    from mnemic.store.answer.ask import AskOptions
    from mnemic.store.answer.confidence import AnswerSpan, Reader
    from mnemic.store.answers import Answer, Evidence, Hit, RankedAnswer, ResolvedDate
    from mnemic.store.contract import CheckReport, Document, StoreError
    from mnemic.store.engines import ENGINES
    from mnemic.store.ingest.forget import ForgetResult
    from mnemic.store.ingest.steps import RememberStep, count_unread
    from mnemic.store.memory import Memory
    from mnemic.store.postgres.store import PostgresStore
    from mnemic.store.relational import Store
    from mnemic.store.retrieve.embedders import Embedder, HashedNgrams
    from mnemic.store.sqlite.store import SQLiteStore

_HOMES = {
    "mnemic.store.answer.ask": ["AskOptions"],
    "mnemic.store.answer.confidence": ["Reader", "AnswerSpan"],
    "mnemic.store.answers": ["Answer", "Evidence", "Hit", "RankedAnswer", "ResolvedDate"],
    "mnemic.store.contract": ["CheckReport", "Document", "StoreError"],
    "mnemic.store.engines": ["ENGINES"],
    "mnemic.store.ingest.forget": ["ForgetResult"],
    "mnemic.store.ingest.steps": ["RememberStep", "count_unread"],
    "mnemic.store.memory": ["Memory"],
    "mnemic.store.postgres.store": ["PostgresStore"],
    "mnemic.store.relational": ["Store"],
    "mnemic.store.retrieve.embedders": ["Embedder", "HashedNgrams"],
    "mnemic.store.sqlite.store": ["SQLiteStore"],
}
if not TYPE_CHECKING:  # a type checker would accept any name
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)

__all__ = [
    "ENGINES", "Answer", "AnswerSpan", "AskOptions", "CheckReport", "Document", "Embedder", "Evidence",
    "ForgetResult", "HashedNgrams", "Hit", "Memory", "PostgresStore", "RankedAnswer", "Reader",
    "RememberStep", "ResolvedDate", "SQLiteStore", "Store", "StoreError", "count_unread",
]  # fmt: skip
