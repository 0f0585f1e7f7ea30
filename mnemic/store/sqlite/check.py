"""Check a SQLite memory: the file, links between tables, vectors, full-text index."""

from collections.abc import Callable

from mnemic.store.contract import CheckReport, EmbeddingModel, StoreError
from mnemic.store.retrieve.sentence_keys import CODE_DTYPE
from mnemic.store.sqlite.connection import SQLiteConnection
from mnemic.store.sqlite.vectors import STORED_DTYPE

# Message of a fault → query for the ids that have it.
FAULT_QUERIES = {
    "a sentence of passage {} lies outside its text": (
        "SELECT passage FROM sentences JOIN passages ON passages.id = passage "
        'WHERE start < 0 OR "end" <= start OR "end" > length(text)'
    ),
    "document {} is active, but has no passages": (
        "SELECT id FROM documents WHERE retired IS NULL AND id NOT IN (SELECT document FROM passages)"
    ),
    "the passages of document {} are not as many as it records, or not numbered from 0": (
        "SELECT document FROM passages JOIN documents ON documents.id = document "
        "GROUP BY document HAVING max(number) + 1 <> count(*) OR count(*) <> passages"
    ),
    "passage {} has a vector, but is not active": (
        "SELECT passage FROM vectors WHERE passage NOT IN (SELECT id FROM words_read)"
    ),
    "passage {} is active, but is not in the full-text index": (
        "SELECT id FROM words_read WHERE id NOT IN (SELECT id FROM lexicon_docsize)"
    ),
    "passage {} is in the full-text index, but is not active": (
        "SELECT id FROM lexicon_docsize WHERE id NOT IN (SELECT id FROM words_read)"
    ),
    "document {} is retired, but a file holds it": (
        "SELECT documents.id FROM documents JOIN places ON document = documents.id WHERE retired IS NOT NULL"
    ),
}
MAX_FAULTS_PER_QUERY = 5  # ids that are reported per query
INDEX_CHECK = "whether the full-text index says what the texts say"


def check_memory(
    connection: SQLiteConnection, get_model: Callable[[], EmbeddingModel | None], *, writing: bool
) -> CheckReport:
    """Run all checks; only a writer can check the full-text index."""
    try:
        with connection.snapshot():
            faults = find_file_faults(connection)
            if not faults:
                faults = find_row_faults(connection, get_model())
                faults += find_index_faults(connection) if writing else []
    finally:
        connection.check_unchanged()
    return CheckReport(tuple(faults), () if writing else (INDEX_CHECK,))


def find_file_faults(connection: SQLiteConnection) -> list[str]:
    """Report the faults of the file itself."""
    try:
        rows = connection.fetch_all("PRAGMA integrity_check")
    except StoreError as error:  # too damaged for an integrity check
        return [str(error)]
    return [f"the file: {line}" for (line,) in rows if line != "ok"]


def find_row_faults(connection: SQLiteConnection, model: EmbeddingModel | None) -> list[str]:
    """Report the faults of the rows and of the links between tables."""
    faults = []
    for table, row, parent, _ in connection.fetch_all("PRAGMA foreign_key_check"):
        faults.append(f"row {row} of {table} refers to a row of {parent} that is missing")
    for message, question in FAULT_QUERIES.items():
        rows = connection.fetch_all(f"{question} LIMIT {MAX_FAULTS_PER_QUERY}")
        faults += [message.format(row[0]) for row in rows]
    return faults + find_vector_faults(connection, model)


def find_vector_faults(connection: SQLiteConnection, model: EmbeddingModel | None) -> list[str]:
    """Report missing vectors and vectors of the wrong width."""
    if model is None:
        num_vectors = connection.fetch_value("SELECT count(*) FROM vectors")
        return [f"{num_vectors} vectors, but no embedding model"] if num_vectors else []
    faults = []
    count_missing = "SELECT count(*) FROM words_read WHERE id NOT IN (SELECT passage FROM vectors)"
    if num_missing := connection.fetch_value(count_missing):
        faults.append(f"{num_missing} passages have no vector; `mnemic reindex` makes them")
    size = model.width * STORED_DTYPE.itemsize
    if num_wrong := connection.fetch_value("SELECT count(*) FROM vectors WHERE length(vector) <> ?", (size,)):
        faults.append(f"{num_wrong} vectors are not of the model's width, {model.width}")
    count_broken = "SELECT count(*) FROM keys WHERE length(keys) % ?"
    if num_wrong := connection.fetch_value(count_broken, (model.width * CODE_DTYPE.itemsize,)):
        faults.append(f"the sentence vectors of {num_wrong} passages are not of the model's width, {model.width}")
    return faults


def find_index_faults(connection: SQLiteConnection) -> list[str]:
    """Report whether the full-text index differs from the texts."""
    try:
        connection.execute("INSERT INTO lexicon (lexicon, rank) VALUES ('integrity-check', 1)")
    except StoreError as error:
        return [f"the full-text index does not agree with the texts: {error}"]
    return []
