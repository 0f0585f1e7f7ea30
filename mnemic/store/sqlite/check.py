"""Check a SQLite memory: the file, links between tables, vectors, full-text index."""

from collections.abc import Callable

from mnemic.store.contract import CheckReport, EmbeddingModel, StoreError
from mnemic.store.faults import find_question_faults, find_row_faults, find_vector_faults
from mnemic.store.retrieve.sentence_keys import STORED_DTYPE
from mnemic.store.sqlite.connection import SQLiteConnection
from mnemic.text.documents.boxes import BOX_UNITS

INDEX_CHECK = "whether the full-text index says what the texts say"
SENTENCES_OUTSIDE = (
    "SELECT DISTINCT passage FROM sentences JOIN passages ON passages.id = passage "
    'WHERE start < 0 OR "end" <= start OR "end" > length(text)'
)
BOXES_OUTSIDE = (
    "SELECT DISTINCT passage FROM boxes "
    f"WHERE NOT (0 <= x_min AND x_min < x_max AND x_max <= {BOX_UNITS} "
    f"AND 0 <= top AND top < bottom AND bottom <= {BOX_UNITS})"
)


def check_memory(connection: SQLiteConnection, get_model: Callable[[], EmbeddingModel | None]) -> CheckReport:
    """Run all checks; only a writer can check the full-text index."""
    try:
        with connection.snapshot():
            faults = find_file_faults(connection)
            if not faults:
                faults = [
                    f"row {row} of {table} refers to a row of {parent} that is missing"
                    for table, row, parent, _ in connection.fetch_all("PRAGMA foreign_key_check")
                ]
                faults += find_row_faults(
                    connection, "SELECT id FROM lexicon_docsize", SENTENCES_OUTSIDE, BOXES_OUTSIDE
                )
                width = f"length(vector) / {STORED_DTYPE.itemsize}.0"
                faults += find_vector_faults(connection, get_model(), width, "keys")
                faults += find_question_faults(connection, get_model(), "SELECT id FROM question_lexicon_docsize")
                faults += find_index_faults(connection) if connection.is_writing else []
    finally:
        connection.check_unchanged()
    return CheckReport(tuple(faults), () if connection.is_writing else (INDEX_CHECK,))


def find_file_faults(connection: SQLiteConnection) -> list[str]:
    """Report the faults of the file itself."""
    try:
        rows = connection.fetch_all("PRAGMA integrity_check")
    except StoreError as error:  # too damaged for an integrity check
        return [str(error)]
    return [f"the file: {line}" for (line,) in rows if line != "ok"]


def find_index_faults(connection: SQLiteConnection) -> list[str]:
    """Report whether the full-text index differs from the texts."""
    faults = []
    for index, name in {"lexicon": "texts", "question_lexicon": "questions"}.items():
        try:
            connection.execute(f"INSERT INTO {index} ({index}, rank) VALUES ('integrity-check', 1)")
        except StoreError as error:
            faults.append(f"the full-text index does not agree with the {name}: {error}")
    return faults
