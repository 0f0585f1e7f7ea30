"""Check a PostgreSQL memory for faults that its constraints do not rule out."""

from collections.abc import Callable

from mnemic.store.contract import CheckReport, EmbeddingModel
from mnemic.store.postgres.bm25 import SELECT_MISMATCHES, normalize_words
from mnemic.store.postgres.connection import PostgresConnection
from mnemic.store.retrieve.query_words import can_segment_chinese
from mnemic.store.retrieve.sentence_keys import CODE_DTYPE
from mnemic.text.chinese import han_fraction

ACTIVE_PASSAGES = "(SELECT p.id FROM passages p JOIN documents d ON d.id = document WHERE retired IS NULL)"
# Message of a fault → query for the ids that have it.
FAULT_QUERIES = {
    "a sentence of passage {} lies outside its text": (
        "SELECT DISTINCT id FROM passages, generate_subscripts(sentences, 1) AS n "
        "WHERE sentences[n][1] < 0 OR sentences[n][2] <= sentences[n][1] "
        "OR sentences[n][2] > length(text)"
    ),
    "document {} is active, but has no passages": (
        "SELECT id FROM documents WHERE retired IS NULL "
        "AND NOT EXISTS (SELECT 1 FROM passages WHERE document = documents.id)"
    ),
    "the passages of document {} are not as many as it records, or not numbered from 0": (
        "SELECT d.id FROM documents d JOIN passages p ON p.document = d.id "
        "GROUP BY d.id HAVING max(number) + 1 <> count(*) OR count(*) <> d.passages"
    ),
    "passage {} has a vector, but is not active": (
        f"SELECT passage FROM vectors WHERE passage NOT IN {ACTIVE_PASSAGES}"
    ),
    "passage {} is active, but is not in the full-text index": (
        f"SELECT id FROM {ACTIVE_PASSAGES} AS own WHERE id NOT IN (SELECT passage FROM lexicon)"
    ),
    "passage {} is in the full-text index, but is not active": (
        f"SELECT passage FROM lexicon WHERE passage NOT IN {ACTIVE_PASSAGES}"
    ),
    "document {} is retired, but a file holds it": (
        "SELECT documents.id FROM documents JOIN places ON document = documents.id WHERE retired IS NOT NULL"
    ),
}
MAX_FAULTS_PER_QUERY = 5  # ids that are reported per query
BATCH_SIZE = 500


def check_memory(connection: PostgresConnection, get_model: Callable[[], EmbeddingModel | None]) -> CheckReport:
    """Run all checks; a reader can run all of them, too."""
    faults = []
    with connection.snapshot():
        for message, question in FAULT_QUERIES.items():
            rows = connection.fetch_all(f"{question} ORDER BY 1 LIMIT {MAX_FAULTS_PER_QUERY}")
            faults += [message.format(row[0]) for row in rows]
        faults += find_vector_faults(connection, get_model()) + find_index_faults(connection)
    return CheckReport(tuple(faults))


def find_vector_faults(connection: PostgresConnection, model: EmbeddingModel | None) -> list[str]:
    """Report missing vectors and vectors of the wrong width."""
    if model is None:
        num_vectors = connection.fetch_value("SELECT count(*) FROM vectors")
        return [f"{num_vectors} vectors, but no embedding model"] if num_vectors else []
    faults = []
    count_missing = "SELECT count(*) FROM lexicon WHERE passage NOT IN (SELECT passage FROM vectors)"
    if num_missing := connection.fetch_value(count_missing):
        faults.append(f"{num_missing} passages have no vector; `mnemic reindex` makes them")
    count_wrong = "SELECT count(*) FROM vectors WHERE vector_dims(vector) <> %s"
    if num_wrong := connection.fetch_value(count_wrong, (model.width,)):
        faults.append(f"{num_wrong} vectors are not of the model's width, {model.width}")
    count_broken = "SELECT count(*) FROM vectors WHERE length(keys) %% %s <> 0"
    if num_wrong := connection.fetch_value(count_broken, (model.width * CODE_DTYPE.itemsize,)):
        faults.append(f"the sentence vectors of {num_wrong} passages are not of the model's width, {model.width}")
    return faults


def find_index_faults(connection: PostgresConnection) -> list[str]:
    """Report passages whose full-text index differs from their text."""
    sql = "SELECT passage, text FROM lexicon JOIN passages ON id = passage WHERE passage > %s ORDER BY passage LIMIT %s"
    last, slot_ids = 0, []
    while rows := connection.fetch_all(sql, (last, BATCH_SIZE)):
        last = rows[-1][0]
        checkable = [row for row in rows if can_segment_chinese() or not han_fraction(row[1])]
        words = ([row[0] for row in checkable], [normalize_words(row[1]) for row in checkable])
        slot_ids += [row[0] for row in connection.fetch_all(SELECT_MISMATCHES, words)]
    message = "the full-text index does not agree with the texts: passage"
    return [f"{message} {slot_id}" for slot_id in sorted(slot_ids)[:MAX_FAULTS_PER_QUERY]]
