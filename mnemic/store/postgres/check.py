"""Check a PostgreSQL memory for faults that its constraints do not rule out."""

from collections.abc import Callable
from itertools import islice

from mnemic.store.connection import BATCH_SIZE
from mnemic.store.contract import CheckReport, EmbeddingModel
from mnemic.store.faults import MAX_FAULTS_PER_QUERY, find_question_faults, find_row_faults, find_vector_faults
from mnemic.store.postgres.bm25 import SELECT_MISMATCHES, normalize_words
from mnemic.store.postgres.connection import PostgresConnection
from mnemic.store.retrieve.query_words import can_segment_chinese
from mnemic.text.chinese import han_fraction
from mnemic.text.documents.boxes import BOX_UNITS

SENTENCES_OUTSIDE = (
    "SELECT DISTINCT id FROM passages, generate_subscripts(sentences, 1) AS n WHERE sentences[n][1] < 0 "
    "OR sentences[n][2] <= sentences[n][1] OR sentences[n][2] > length(text)"
)
BOXES_OUTSIDE = (
    "SELECT DISTINCT id FROM passages, generate_subscripts(boxes, 1) AS n "
    f"WHERE NOT (0 <= boxes[n][1] AND boxes[n][1] < boxes[n][3] AND boxes[n][3] <= {BOX_UNITS} "
    f"AND 0 <= boxes[n][2] AND boxes[n][2] < boxes[n][4] AND boxes[n][4] <= {BOX_UNITS})"
)


def check_memory(connection: PostgresConnection, get_model: Callable[[], EmbeddingModel | None]) -> CheckReport:
    """Run all checks; a reader can run all of them, too."""
    with connection.snapshot():
        faults = find_row_faults(connection, "SELECT passage AS id FROM lexicon", SENTENCES_OUTSIDE, BOXES_OUTSIDE)
        faults += find_vector_faults(connection, get_model(), "pgvector.vector_dims(vector)", "vectors")
        faults += find_question_faults(connection, get_model(), "SELECT passage FROM question_lexicon")
        faults += find_index_faults(connection)
    return CheckReport(tuple(faults))


def find_index_faults(connection: PostgresConnection) -> list[str]:
    """Report passages whose full-text index differs from their text."""
    sql = "SELECT passage, text FROM lexicon JOIN passages ON id = passage WHERE passage > ? ORDER BY passage"
    rows = (row for row in connection.stream_rows(sql, 0) if can_segment_chinese() or not han_fraction(row[1]))
    slot_ids = []
    while batch := list(islice(rows, BATCH_SIZE)):
        words = ([slot_id for slot_id, _ in batch], [normalize_words(text) for _, text in batch])
        slot_ids += [row[0] for row in connection.fetch_all(SELECT_MISMATCHES, words)]
    message = "the full-text index does not agree with the texts: passage"
    return [f"{message} {slot_id}" for slot_id in sorted(slot_ids)[:MAX_FAULTS_PER_QUERY]]
