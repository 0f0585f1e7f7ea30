"""Full-text search on a PostgreSQL server, ranked by BM25 as in SQLite's FTS5.

A passage is split into words here, as FTS5's unicode61 does: lower case without accents (Chinese by
rjieba); the server stems them. The server knows which passages contain a word, and ``ts_rank`` with
equal weights is the sum of 1/i² over the i-th occurrences of a word, from which the count follows.
"""

import re
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from unicodedata import normalize

from mnemic.store.contract import ScoredSlot
from mnemic.store.postgres.connection import PostgresConnection
from mnemic.store.retrieve.query_words import extract_words, segment_chinese, split_unknown_words

BM25_K, BM25_B = 1.2, 0.75  # as in FTS5
MIN_IDF = 1e-6  # of a word that is in most passages, as in FTS5
MAX_WORD_LENGTH = 255  # characters
MAX_QUERY_WORDS = 500  # each is a column of the query
MAX_COUNT = 256  # of a word in a passage: PostgreSQL stores no more positions
RANK_DIVISOR = 1.64493406685  # limit of the sum, by which ts_rank divides
RANK_OF_COUNT = [
    (total - 0.5 / time**2) / RANK_DIVISOR
    for time, total in enumerate(accumulate(1 / time**2 for time in range(1, MAX_COUNT + 1)), start=1)
]
_WORD = re.compile(r"[^\W_]+")

# Rules that Porter added after his paper (1980): FTS5 has them, the server's stemmer does not.
LATER_SUFFIXES = {"logy": "log", "logies": "log", "bly": "ble", "blies": "ble"}
_LATER_SUFFIX = re.compile(r"(.*[aeiouy][^aeiouy].*?)(logy|logies|bly|blies)")

STEM_SQL = "CASE WHEN length(word) < 3 THEN word ELSE coalesce((ts_lexize('stem', word))[1], word) END"
STEMS_SQL = f"""
    (SELECT coalesce(string_agg(quote_literal({STEM_SQL}) || ':' || least(place, 16383), ' '), '')
     FROM unnest(string_to_array(words, ' ')) WITH ORDINALITY AS own (word, place))::tsvector
"""
INPUTS = "unnest(%s::bigint[], %s::text[]) AS given (passage, words)"
INSERT_WORDS = f"""
    INSERT INTO lexicon
    SELECT passage, {STEMS_SQL}, coalesce(cardinality(string_to_array(words, ' ')), 0) FROM {INPUTS}
"""
COUNT_SQL = "width_bucket(ts_rank('{1,1,1,1}', stems, %(word)s::tsquery)::float8, %(steps)s::float8[])"
SELECT_STEMS = f"""
    SELECT quote_literal({STEM_SQL}) FROM unnest(%s::text[]) WITH ORDINALITY AS own (word, place)
    ORDER BY place
"""
IN_DOCUMENTS = "passage IN (SELECT id FROM passages WHERE document = ANY (%(documents)s::bigint[]))"
SELECT_SIZES = "SELECT count(*), coalesce(sum(length), 0)::bigint FROM lexicon"  # slots, words
SELECT_MISMATCHES = f"SELECT passage FROM {INPUTS} JOIN lexicon USING (passage) WHERE stems <> {STEMS_SQL}"


def normalize_words(text: str) -> str:
    """Return the normalized words of a text, Chinese ones too, separated by blanks."""
    return fold_words(segment_chinese(text) or text)


def fold_words(text: str) -> str:
    """Return the normalized words of a text that has blanks between words."""
    lower = normalize("NFC", text).lower()
    folded = lower if lower.isascii() else "".join(map(strip_accents, lower))
    return " ".join(adapt_to_stemmer(word[:MAX_WORD_LENGTH]) for word in _WORD.findall(folded))


def adapt_to_stemmer(word: str) -> str:
    """Change a word so that the server's stemmer returns the stem of FTS5."""
    if word.endswith(tuple(LATER_SUFFIXES)) and (match := _LATER_SUFFIX.fullmatch(word)):
        return match[1] + LATER_SUFFIXES[match[2]]
    return word


@cache
def strip_accents(character: str) -> str:
    """Return a Latin letter without its accents, any other character as it is."""
    first = normalize("NFD", character)[0]
    return first if first.isascii() else character


def search_bm25(
    connection: PostgresConnection,
    text: str,
    limit: int,
    *,
    require_all: bool,
    num_slots: int,
    document_ids: Sequence[int] | None,
    index: str = "lexicon",
) -> list[ScoredSlot]:
    """Rank the passages with any of the words, or with all, by BM25."""
    query_words = extract_words(text)
    if not require_all:
        query_words = split_unknown_words(query_words, lambda word: bool(find_term_slots(connection, word, 1, index)))
    words = fold_words(" ".join(query_words)).split()[:MAX_QUERY_WORDS]
    num_passages, num_words = read_sizes(connection, index)
    if not words or not num_words or not num_slots:
        return []
    stems = [stem for (stem,) in connection.fetch_all(SELECT_STEMS, (words,))]
    conditions = [f"t{n} > 0" for n in range(len(stems))] if require_all else []
    conditions += [] if document_ids is None else [IN_DOCUMENTS]
    sql = build_ranking_sql(len(stems), conditions).replace("lexicon", index)
    stem_values = {f"w{n}": stem for n, stem in enumerate(stems)}
    values = stem_values | {"any": " | ".join(stems), "steps": RANK_OF_COUNT, "most": limit}
    values |= {"count": num_passages, "average": num_words / num_passages, "documents": list(document_ids or [])}
    return [ScoredSlot(*row) for row in connection.fetch_all(sql, values)]


def read_sizes(connection: PostgresConnection, index: str) -> tuple[int, int]:
    """Return the numbers of slots and of words of an index."""
    if index == "lexicon":  # the only row that a connection caches
        return connection.fetch_unchanged(SELECT_SIZES)
    return connection.fetch_all(SELECT_SIZES.replace("lexicon", index))[0]


def build_ranking_sql(num_words: int, conditions: Sequence[str]) -> str:
    """Build the SQL of BM25 for a number of words: counts, then frequencies, then scores."""
    numbers: Sequence[int] = range(num_words)
    counts = ", ".join(f"{COUNT_SQL.replace('%(word)s', f'%(w{n})s')} AS t{n}" for n in numbers)
    frequencies = ", ".join(f"count(*) FILTER (WHERE t{n} > 0) AS h{n}" for n in numbers)
    idfs = ", ".join(f"ln((%(count)s - h{n} + 0.5)::float8 / (h{n} + 0.5)::float8) AS r{n}" for n in numbers)
    norm = f"{BM25_K} * ({1 - BM25_B} + length / %(average)s::float8 * {BM25_B})"
    score = " + ".join(
        f"CASE WHEN r{n} > 0 THEN r{n} ELSE {MIN_IDF} END * t{n} * {BM25_K + 1} / (t{n} + {norm})" for n in numbers
    )
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"""
        WITH found AS MATERIALIZED (
            SELECT passage, length, {counts} FROM lexicon WHERE stems @@ %(any)s::tsquery
        ), held AS (SELECT {frequencies} FROM found), rare AS MATERIALIZED (SELECT {idfs} FROM held)
        SELECT passage, ({score})::float8 AS score FROM found, rare {where}
        ORDER BY score DESC, passage LIMIT %(most)s
    """


def list_terms(connection: PostgresConnection, first_letter: str) -> list[tuple[str, int]]:
    """Return the stems that begin with a letter, and how many slots have each."""
    select = "SELECT word, ndoc FROM ts_stat('SELECT stems FROM lexicon') WHERE starts_with(word, %s)"
    return connection.fetch_all(select, (first_letter,))


def find_term_slots(connection: PostgresConnection, term: str, limit: int, index: str = "lexicon") -> list[int]:
    """Return the ids of a few slots that have a stem."""
    select = f"SELECT passage FROM {index} WHERE stems @@ quote_literal(%s)::tsquery ORDER BY passage LIMIT %s"
    return [slot_id for (slot_id,) in connection.fetch_all(select, (term, limit))]
