"""Find faults in the tables of a memory that every engine reports alike."""

from mnemic.store.connection import Connection
from mnemic.store.contract import EmbeddingModel
from mnemic.store.retrieve.sentence_keys import CODE_DTYPE

MAX_FAULTS_PER_QUERY = 5  # ids that are reported per query
ACTIVE_PASSAGES = "(SELECT p.id FROM passages p JOIN documents d ON d.id = document WHERE retired IS NULL)"


def find_row_faults(connection: Connection, indexed: str, sentences_outside: str, boxes_outside: str) -> list[str]:
    """Report the faults of rows and of links between tables.

    ``indexed`` selects the ids of all slots in the full-text index, ``sentences_outside`` those
    with a sentence outside their text, ``boxes_outside`` those with a box outside its page.
    """
    fault_queries = {
        "a sentence of passage {} lies outside its text": sentences_outside,
        "a box of passage {} lies outside its page": boxes_outside,
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
            f"SELECT id FROM {ACTIVE_PASSAGES} AS active WHERE id NOT IN ({indexed})"
        ),
        "passage {} is in the full-text index, but is not active": (
            f"SELECT id FROM ({indexed}) AS indexed WHERE id NOT IN {ACTIVE_PASSAGES}"
        ),
        "document {} is retired, but a file holds it": (
            "SELECT documents.id FROM documents JOIN places ON document = documents.id WHERE retired IS NOT NULL"
        ),
    }
    return [
        message.format(row[0])
        for message, query in fault_queries.items()
        for row in connection.fetch_all(f"{query} ORDER BY 1 LIMIT {MAX_FAULTS_PER_QUERY}")
    ]


def find_vector_faults(
    connection: Connection, model: EmbeddingModel | None, vector_width: str, sentences_table: str
) -> list[str]:
    """Report missing vectors and vectors of the wrong width.

    ``vector_width`` computes the width of a stored vector. The ``sentences_table`` has the sentence
    vectors, in its column ``keys``.
    """
    if model is None:
        num_vectors = connection.fetch_value("SELECT count(*) FROM vectors")
        return [f"{num_vectors} vectors, but no embedding model"] if num_vectors else []
    row_bytes = model.width * CODE_DTYPE.itemsize
    count_missing = f"SELECT count(*) FROM {ACTIVE_PASSAGES} AS active WHERE id NOT IN (SELECT passage FROM vectors)"
    count_wrong = f"SELECT count(*) FROM vectors WHERE {vector_width} <> ?"
    count_broken = f"SELECT count(*) FROM {sentences_table} WHERE length(keys) / ? * ? <> length(keys)"
    counts = {
        "{} passages have no vector; `mnemic reindex` makes them": connection.fetch_value(count_missing),
        "{} vectors are not of the model's width, {}": connection.fetch_value(count_wrong, (model.width,)),
        "the sentence vectors of {} passages are not of the model's width, {}": (
            connection.fetch_value(count_broken, (row_bytes, row_bytes))
        ),
    }
    return [message.format(count, model.width) for message, count in counts.items() if count]


def find_question_faults(connection: Connection, model: EmbeddingModel | None, indexed: str) -> list[str]:
    """Report questions of passages that are not active, not indexed, or whose vectors are broken.

    ``indexed`` selects the ids of all slots in the full-text index of questions.
    """
    if not connection.fetch_value("SELECT 1 FROM questions LIMIT 1"):  # also of a memory of an older version
        return []
    row_bytes = (model.width if model else 1) * CODE_DTYPE.itemsize
    fault_queries = {
        "passage {} has questions, but is not active": f"passage NOT IN {ACTIVE_PASSAGES}",
        "the questions of passage {} are not in their full-text index": (f"text <> '' AND passage NOT IN ({indexed})"),
        "the vectors of the questions of passage {} are not of the model's width": (
            f"length(keys) / {row_bytes} * {row_bytes} <> length(keys)"
        ),
    }
    return [
        message.format(row[0])
        for message, condition in fault_queries.items()
        for row in connection.fetch_all(
            f"SELECT passage FROM questions WHERE {condition} ORDER BY 1 LIMIT {MAX_FAULTS_PER_QUERY}"
        )
    ]
