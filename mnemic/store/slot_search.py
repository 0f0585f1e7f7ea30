"""What engines with tables do alike to search slots: by words, vectors, filters and stems."""

from collections.abc import Sequence
from types import ModuleType
from typing import Any, Generic, TypeVar

import numpy

from mnemic.store.connection import Connection
from mnemic.store.contract import Engine, ScoredSlot, SentenceVectors, Vectors
from mnemic.store.retrieve.filters import NO_FILTERS, Filters, check_kind
from mnemic.store.retrieve.sentence_keys import unpack_sentence_vectors, unpack_vectors

C = TypeVar("C", bound=Connection)


class SlotSearch(Engine, Generic[C]):
    """The searches of a storage engine with tables."""

    bm25: ModuleType  # functions that search words, alike in all engines
    vector_bytes: str  # the expression for the bytes of a vector, which are of the ``vector_dtype``
    vector_dtype: numpy.dtype[Any]
    keys_table: str  # the table whose column ``keys`` has the sentence vectors

    @property
    def connection(self) -> C:
        """The connection of this thread."""
        raise NotImplementedError

    def get_width(self) -> int:
        """Return the embedding width; 0 without a model."""
        raise NotImplementedError

    def get_vectors(self, slot_ids: Sequence[int]) -> Vectors:
        """Return the vectors (n d) of slots; zeros for a slot without one."""
        blobs, width = self.connection.fetch_blobs(self.vector_bytes, "vectors", slot_ids), self.get_width()
        zeros = bytes(width * self.vector_dtype.itemsize)
        return unpack_vectors([blobs.get(slot_id, zeros) for slot_id in slot_ids], width, self.vector_dtype)

    def get_sentence_vectors(self, slot_ids: Sequence[int]) -> SentenceVectors:
        """Return the sentence vectors of slots, as quantized; no rows for a slot without them."""
        blobs = self.connection.fetch_blobs("keys", self.keys_table, slot_ids)
        return unpack_sentence_vectors([blobs.get(slot_id) or b"" for slot_id in slot_ids], self.get_width())

    def find_documents(self, filters: Filters) -> list[int] | None:
        """Return the ids of the active documents that fit; None without a filter: all."""
        if filters == NO_FILTERS:
            return None
        if filters.kind is not None:
            rows = self.connection.fetch_all("SELECT DISTINCT kind FROM documents")
            check_kind(filters.kind, {kind for (kind,) in rows})
        return [document_id for (document_id,) in self.connection.fetch_all(*filters.build_query())]

    def count_slots(self, document_ids: Sequence[int] | None = None) -> int:
        """Return the number of active slots, in all or of these documents."""
        if document_ids is None:
            return self.count_active_slots()
        select = f"SELECT coalesce(sum(passages), 0) FROM documents WHERE id {self.connection.in_ids}"
        return int(self.connection.fetch_value(select, (self.connection.pack_ids(document_ids),)))

    def search_bm25(
        self, text: str, limit: int, *, require_all: bool = False, document_ids: Sequence[int] | None = None
    ) -> list[ScoredSlot]:
        """Rank the slots that contain any word of ``text``, or all of them, by BM25.

        With ``document_ids``, only slots of these documents are ranked, by the same scores.
        """
        num_slots = self.count_slots(document_ids)
        return self.bm25.search_bm25(
            self.connection, text, limit, require_all=require_all, num_slots=num_slots, document_ids=document_ids
        )

    def list_terms(self, first_letter: str) -> list[tuple[str, int]]:
        """Return the stems that begin with a letter, and how many slots have each."""
        return self.bm25.list_terms(self.connection, first_letter)

    def find_term_slots(self, term: str, limit: int) -> list[int]:
        """Return the ids of a few slots that have a stem."""
        return self.bm25.find_term_slots(self.connection, term, limit)
