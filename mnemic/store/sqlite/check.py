"""What may be wrong with a memory in SQLite: the file, the links between tables, the indexes."""

from collections.abc import Callable

from mnemic.store.contract import Checked, Model, StoreError
from mnemic.store.retrieve.sentence_keys import CODE
from mnemic.store.sqlite.connection import Connection
from mnemic.store.sqlite.vectors import STORED

# A question that has an answer only where something is wrong, and what is wrong then.
QUESTIONS = {
    "a sentence of passage {} lies outside its text": (
        "SELECT passage FROM sentences JOIN passages ON passages.id = passage "
        'WHERE start < 0 OR "end" <= start OR "end" > length(text)'
    ),
    "document {} is read and has no passages": (
        "SELECT id FROM documents WHERE retired IS NULL "
        "AND id NOT IN (SELECT document FROM passages)"
    ),
    "the passages of document {} are not as many as it says, or not numbered from 0": (
        "SELECT document FROM passages JOIN documents ON documents.id = document "
        "GROUP BY document HAVING max(number) + 1 <> count(*) OR count(*) <> passages"
    ),
    "passage {} has a vector, but is not read": (
        "SELECT passage FROM vectors WHERE passage NOT IN (SELECT id FROM words_read)"
    ),
    "passage {} is read, but is not in the full-text index": (
        "SELECT id FROM words_read WHERE id NOT IN (SELECT id FROM lexicon_docsize)"
    ),
    "passage {} is in the full-text index, but is not read": (
        "SELECT id FROM lexicon_docsize WHERE id NOT IN (SELECT id FROM words_read)"
    ),
    "document {} is retired, but has a place": (
        "SELECT documents.id FROM documents JOIN places ON document = documents.id "
        "WHERE retired IS NOT NULL"
    ),
}
SHOWN = 5  # of each kind of fault
INDEX = "whether the full-text index says what the texts say"


def look(connection: Connection, model: Callable[[], Model | None], *, writing: bool) -> Checked:
    """Everything that is wrong; whoever does not write cannot ask the full-text index."""
    try:
        with connection.snapshot():
            found = file_faults(connection)
            if not found:
                found = row_faults(connection, model())
                found += index_faults(connection) if writing else []
    finally:
        connection.expect_unchanged()
    return Checked(tuple(found), () if writing else (INDEX,))


def file_faults(connection: Connection) -> list[str]:
    """What is wrong with the file itself, a line each."""
    try:
        rows = connection.rows("PRAGMA integrity_check")
    except StoreError as error:  # too damaged even for that
        return [str(error)]
    return [f"the file: {line}" for (line,) in rows if line != "ok"]


def row_faults(connection: Connection, model: Model | None) -> list[str]:
    """What is wrong with what the tables say, a line each."""
    found = []
    for table, row, parent, _ in connection.rows("PRAGMA foreign_key_check"):
        found.append(f"row {row} of {table} belongs to something in {parent} that is not there")
    for words, question in QUESTIONS.items():
        rows = connection.rows(f"{question} LIMIT {SHOWN}")
        found += [words.format(row[0]) for row in rows]
    return found + vector_faults(connection, model)


def vector_faults(connection: Connection, model: Model | None) -> list[str]:
    """With a model every slot has a vector of its width; without one none has."""
    if model is None:
        strange = connection.value("SELECT count(*) FROM vectors")
        return [f"{strange} vectors, but no model they are of"] if strange else []
    found = []
    lacking = "SELECT count(*) FROM words_read WHERE id NOT IN (SELECT passage FROM vectors)"
    if missing := connection.value(lacking):
        found.append(f"{missing} passages have no vector; `mnemic reindex` makes them")
    size = model.width * STORED.itemsize
    if strange := connection.value(
        "SELECT count(*) FROM vectors WHERE length(vector) <> ?", (size,)
    ):
        found.append(f"{strange} vectors are not of the model's width, {model.width}")
    broken = "SELECT count(*) FROM keys WHERE length(keys) % ?"
    if strange := connection.value(broken, (model.width * CODE.itemsize,)):
        found.append(f"the keys of {strange} passages are not of the model's width, {model.width}")
    return found


def index_faults(connection: Connection) -> list[str]:
    """Where the full-text index says something else than the texts."""
    try:
        connection.execute("INSERT INTO lexicon (lexicon, rank) VALUES ('integrity-check', 1)")
    except StoreError as error:
        return [f"the full-text index does not agree with the texts: {error}"]
    return []
