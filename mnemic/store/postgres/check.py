"""What may be wrong with a memory on a PostgreSQL server, beyond what its constraints rule out."""

from collections.abc import Callable

from mnemic.store.contract import Checked, Model
from mnemic.store.postgres.bm25 import DIFFERENT, words_in
from mnemic.store.postgres.connection import Connection
from mnemic.store.retrieve.query_words import knows_chinese
from mnemic.store.retrieve.sentence_keys import CODE
from mnemic.text.chinese import share_of_han

READ = "(SELECT p.id FROM passages p JOIN documents d ON d.id = document WHERE retired IS NULL)"
# A question that has an answer only where something is wrong, and what is wrong then.
QUESTIONS = {
    "a sentence of passage {} lies outside its text": (
        "SELECT DISTINCT id FROM passages, generate_subscripts(sentences, 1) AS n "
        "WHERE sentences[n][1] < 0 OR sentences[n][2] <= sentences[n][1] "
        "OR sentences[n][2] > length(text)"
    ),
    "document {} is read and has no passages": (
        "SELECT id FROM documents WHERE retired IS NULL "
        "AND NOT EXISTS (SELECT 1 FROM passages WHERE document = documents.id)"
    ),
    "the passages of document {} are not as many as it says, or not numbered from 0": (
        "SELECT d.id FROM documents d JOIN passages p ON p.document = d.id "
        "GROUP BY d.id HAVING max(number) + 1 <> count(*) OR count(*) <> d.passages"
    ),
    "passage {} has a vector, but is not read": (
        f"SELECT passage FROM vectors WHERE passage NOT IN {READ}"
    ),
    "passage {} is read, but is not in the full-text index": (
        f"SELECT id FROM {READ} AS own WHERE id NOT IN (SELECT passage FROM lexicon)"
    ),
    "passage {} is in the full-text index, but is not read": (
        f"SELECT passage FROM lexicon WHERE passage NOT IN {READ}"
    ),
    "document {} is retired, but has a place": (
        "SELECT documents.id FROM documents JOIN places ON document = documents.id "
        "WHERE retired IS NOT NULL"
    ),
}
SHOWN = 5  # of each kind of fault
AT_ONCE = 500


def look(connection: Connection, model: Callable[[], Model | None]) -> Checked:
    """Everything that is wrong; a reader can ask all of it."""
    found = []
    with connection.snapshot():
        for words, question in QUESTIONS.items():
            rows = connection.rows(f"{question} ORDER BY 1 LIMIT {SHOWN}")
            found += [words.format(row[0]) for row in rows]
        found += vector_faults(connection, model()) + index_faults(connection)
    return Checked(tuple(found))


def vector_faults(connection: Connection, model: Model | None) -> list[str]:
    """With a model every slot has a vector of its width; without one none has."""
    if model is None:
        strange = connection.value("SELECT count(*) FROM vectors")
        return [f"{strange} vectors, but no model they are of"] if strange else []
    found = []
    lacking = "SELECT count(*) FROM lexicon WHERE passage NOT IN (SELECT passage FROM vectors)"
    if missing := connection.value(lacking):
        found.append(f"{missing} passages have no vector; `mnemic reindex` makes them")
    strange = "SELECT count(*) FROM vectors WHERE vector_dims(vector) <> %s"
    if wrong := connection.value(strange, (model.width,)):
        found.append(f"{wrong} vectors are not of the model's width, {model.width}")
    broken = "SELECT count(*) FROM vectors WHERE length(keys) %% %s <> 0"
    if wrong := connection.value(broken, (model.width * CODE.itemsize,)):
        found.append(f"the keys of {wrong} passages are not of the model's width, {model.width}")
    return found


def index_faults(connection: Connection) -> list[str]:
    """Whether the full-text index says what the texts say."""
    sql = (
        "SELECT passage, text FROM lexicon JOIN passages ON id = passage WHERE passage > %s "
        "ORDER BY passage LIMIT %s"
    )
    last, found = 0, []
    while rows := connection.rows(sql, (last, AT_ONCE)):
        last = rows[-1][0]
        known = [row for row in rows if knows_chinese() or not share_of_han(row[1])]
        words = ([row[0] for row in known], [words_in(row[1]) for row in known])
        found += [row[0] for row in connection.rows(DIFFERENT, words)]
    said = "the full-text index does not agree with the texts: passage"
    return [f"{said} {number}" for number in sorted(found)[:SHOWN]]
