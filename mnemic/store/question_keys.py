"""Questions written ahead, as further keys of passages: stored, searched and removed.

A passage has at most one row of questions, one question per line; a row without text says that
there are none to write. They are found by words, in an index of their own, and by vectors. They
are never part of a passage, and a document that is retired or erased loses them.

Shapes: n slots, q questions of a slot, d embedding width.
"""

from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any, NamedTuple

from mnemic.store.connection import BATCH_SIZE
from mnemic.store.contract import MemorySlot, ScoredSlot, SentenceVectors, Vectors
from mnemic.store.retrieve.sentence_keys import quantize_vectors, unpack_sentence_vectors
from mnemic.store.slot_search import C, SlotSearch

QUESTION_INDEX = "question_lexicon"
SELECT_ACTIVE = "SELECT p.id FROM passages p JOIN documents d ON d.id = p.document WHERE d.retired IS NULL AND p.id"
WITHOUT_QUESTIONS = (
    "WHERE id > ? AND id NOT IN (SELECT passage FROM questions) "
    "AND document IN (SELECT id FROM documents WHERE retired IS NULL)"
)
SELECT_UNEMBEDDED = "SELECT passage, text FROM questions WHERE passage > ? AND keys IS NULL AND text <> '' ORDER BY 1"


class QuestionRow(NamedTuple):
    """The questions of a slot, and their vectors."""

    slot_id: int
    questions: Sequence[str]
    vectors: Vectors | None = None  # q d; None: they are computed later


class QuestionKeys(SlotSearch[C]):
    """What engines with tables do alike with questions written ahead."""

    rows: ModuleType  # functions that write and read passages

    def has_questions(self) -> bool:
        """Return whether any passage has a row of questions."""
        return self.connection.fetch_value("SELECT 1 FROM questions LIMIT 1") is not None

    def read_slots(self, where: str, *values: Any) -> list[MemorySlot]:
        """Return the slots that a WHERE clause selects, with their sentences."""
        return self.rows.read_slots(self.connection, where, values)

    def count_slots_without_questions(self) -> int:
        """Count the active slots for which no questions were written."""
        return int(self.connection.fetch_value(f"SELECT count(*) FROM passages {WITHOUT_QUESTIONS}", (0,)))

    def list_slots_without_questions(self) -> Iterator[list[MemorySlot]]:
        """Yield batches of active slots for which no questions were written."""
        last, where = 0, f"{WITHOUT_QUESTIONS} ORDER BY id LIMIT {BATCH_SIZE}"
        while slots := self.read_slots(where, last):
            last = slots[-1].id
            yield slots

    def list_unembedded_questions(self) -> Iterator[QuestionRow]:
        """Yield the questions that have no vectors."""
        for slot_id, text in self.connection.stream_rows(SELECT_UNEMBEDDED, 0):
            yield QuestionRow(slot_id, text.splitlines())

    def get_questions(self, slot_ids: Sequence[int]) -> dict[int, list[str]]:
        """Return the questions of slots by their ids; slots without any are left out."""
        select = f"SELECT passage, text FROM questions WHERE text <> '' AND passage {self.connection.in_ids}"
        rows = self.connection.fetch_all(select, (self.connection.pack_ids(slot_ids),))
        return {slot_id: text.splitlines() for slot_id, text in rows}

    def put_questions(self, rows: Sequence[QuestionRow]) -> None:
        """Store the questions of slots, replacing earlier ones; skip slots that are not active."""
        select = f"{SELECT_ACTIVE} {self.connection.in_ids}{self.connection.row_lock}"
        active_rows = self.connection.fetch_all(select, (self.connection.pack_ids([row.slot_id for row in rows]),))
        active_ids = {slot_id for (slot_id,) in active_rows}
        packed = [
            (row.slot_id, "\n".join(row.questions), None if row.vectors is None else pack_questions(row.vectors))
            for row in rows
            if row.slot_id in active_ids
        ]
        if packed:
            self.rows.write_questions(self.connection, packed)

    def drop_question_vectors(self) -> None:
        """Drop the vectors of all questions, because another embedder is to make them."""
        self.connection.execute("UPDATE questions SET keys = NULL")

    def get_question_vectors(self, slot_ids: Sequence[int]) -> SentenceVectors:
        """Return the vectors of the questions of slots; no rows for a slot without them."""
        blobs = self.connection.fetch_blobs("keys", "questions", slot_ids)
        return unpack_sentence_vectors([blobs.get(slot_id) or b"" for slot_id in slot_ids], self.get_width())

    def search_questions(self, text: str, limit: int, *, document_ids: Sequence[int] | None = None) -> list[ScoredSlot]:
        """Rank the slots whose questions contain any word of ``text``, by BM25."""
        num_slots = self.count_slots(document_ids)
        return self.bm25.search_bm25(
            self.connection, text, limit, require_all=False, num_slots=num_slots, document_ids=document_ids,
            index=QUESTION_INDEX,
        )  # fmt: skip


def pack_questions(vectors: Vectors) -> bytes:
    """Pack the vectors of a slot's questions (q d), also of a single one."""
    return quantize_vectors(vectors)[1].tobytes()
