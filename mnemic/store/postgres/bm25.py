"""Full text on a PostgreSQL server, ranked by BM25 as SQLite's FTS5 does it.

A passage is cut into words here, as FTS5's unicode61 does: folded to small letters without accents
(Chinese by rjieba); the server stems them. It can say which passages have a word, and ``ts_rank``,
with equal weights, is the sum of 1/i² over the i-th times a word occurs: so it tells how often.
"""

import re
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from unicodedata import normalize

from mnemic.store.contract import Scored
from mnemic.store.postgres.connection import Connection
from mnemic.store.retrieve import query_words as lexical

K, B = 1.2, 0.75  # of BM25, as in FTS5
RARE = 1e-6  # what a word counts that is in most passages, as in FTS5
LONGEST = 255  # characters of a word
ASKED_AT_ONCE = 500  # words of a question; each is a column
MOST = 256  # times a word is counted in a passage: PostgreSQL keeps no more places of it
LIMIT = 1.64493406685  # of the sum, as ts_rank divides by it
STEPS = [
    (total - 0.5 / time**2) / LIMIT
    for time, total in enumerate(accumulate(1 / time**2 for time in range(1, MOST + 1)), start=1)
]
_WORD = re.compile(r"[^\W_]+")

# Rules that Porter added after his paper (1980): FTS5 has them, the server's stemmer has not.
LATER = {"logy": "log", "logies": "log", "bly": "ble", "blies": "ble"}
_LATER = re.compile(r"(.*[aeiouy][^aeiouy].*?)(logy|logies|bly|blies)")

STEM = "CASE WHEN length(word) < 3 THEN word ELSE coalesce((ts_lexize('stem', word))[1], word) END"
STEMS = f"""
    (SELECT coalesce(string_agg(quote_literal({STEM}) || ':' || least(place, 16383), ' '), '')
     FROM unnest(string_to_array(words, ' ')) WITH ORDINALITY AS own (word, place))::tsvector
"""
GIVEN = "unnest(%s::bigint[], %s::text[]) AS given (passage, words)"
INSERT = f"""
    INSERT INTO lexicon
    SELECT passage, {STEMS}, coalesce(cardinality(string_to_array(words, ' ')), 0) FROM {GIVEN}
"""
TIMES = "width_bucket(ts_rank('{1,1,1,1}', stems, %(word)s::tsquery)::float8, %(steps)s::float8[])"
ASKED = f"""
    SELECT quote_literal({STEM}) FROM unnest(%s::text[]) WITH ORDINALITY AS own (word, place)
    ORDER BY place
"""
DIFFERENT = f"SELECT passage FROM {GIVEN} JOIN lexicon USING (passage) WHERE stems <> {STEMS}"


def words_in(text: str) -> str:
    """The words of a text as they are counted, with blanks between them."""
    spaced = lexical.spaced(text) or text
    folded = spaced.lower() if spaced.isascii() else "".join(map(plain, composed(spaced)))
    return " ".join(eased(word[:LONGEST]) for word in _WORD.findall(folded))


def eased(word: str) -> str:
    """A word as the server's stemmer must be given it to find the stem that FTS5 finds."""
    if word.endswith(tuple(LATER)) and (found := _LATER.fullmatch(word)):
        return found[1] + LATER[found[2]]
    return word


def composed(text: str) -> str:
    return normalize("NFC", text).lower()


@cache
def plain(character: str) -> str:
    """A Latin letter without its accents; any other character as it is."""
    first = normalize("NFD", character)[0]
    return first if first.isascii() else character


def match(
    connection: Connection, text: str, most: int, sizes: tuple[int, int], *, every: bool
) -> list[Scored]:
    """The passages with any of the words, or with every one; ``sizes``: passages, words in all."""
    words = words_in(" ".join(lexical.words_of(text))).split()[:ASKED_AT_ONCE]
    if not words or not sizes[1]:
        return []
    stems = [stem for (stem,) in connection.rows(ASKED, (words,))]
    sql = ranking(len(stems), every=every)
    named = {f"w{n}": stem for n, stem in enumerate(stems)}
    values = named | {"any": " | ".join(stems), "steps": STEPS, "most": most}
    values |= {"count": sizes[0], "average": sizes[1] / sizes[0]}
    found = connection.rows(sql, values)
    return [Scored(*row) for row in found]


def ranking(words: int, *, every: bool) -> str:
    """BM25 for a number of words, in SQL: first how often each occurs, then what each counts."""
    numbers: Sequence[int] = range(words)
    times = ", ".join(f"{TIMES.replace('%(word)s', f'%(w{n})s')} AS t{n}" for n in numbers)
    holders = ", ".join(f"count(*) FILTER (WHERE t{n} > 0) AS h{n}" for n in numbers)
    rarity = ", ".join(
        f"ln((%(count)s - h{n} + 0.5)::float8 / (h{n} + 0.5)::float8) AS r{n}" for n in numbers
    )
    norm = f"{K} * ({1 - B} + length / %(average)s::float8 * {B})"
    score = " + ".join(
        f"CASE WHEN r{n} > 0 THEN r{n} ELSE {RARE} END * t{n} * {K + 1} / (t{n} + {norm})"
        for n in numbers
    )
    wanted = "WHERE " + " AND ".join(f"t{n} > 0" for n in numbers) if every else ""
    return f"""
        WITH found AS MATERIALIZED (
            SELECT passage, length, {times} FROM lexicon WHERE stems @@ %(any)s::tsquery
        ), held AS (SELECT {holders} FROM found), rare AS MATERIALIZED (SELECT {rarity} FROM held)
        SELECT passage, ({score})::float8 AS score FROM found, rare {wanted}
        ORDER BY score DESC, passage LIMIT %(most)s
    """
