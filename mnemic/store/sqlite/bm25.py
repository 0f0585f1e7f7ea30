"""Rank slots by BM25 in SQLite's FTS5, at a bounded cost.

Scoring a slot takes a microsecond or two, and in a million slots a common word has a hundred
thousand matches. So the rarest words *lead*: only slots with one of them are scored. The other
words *follow*: they count in the scores of these slots, but add no slots, unless the leading words
match too few. As long as all words together match at most ``MAX_LEADING_SLOTS`` slots, all of them
lead, and this is plain BM25.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from mnemic.store.contract import ScoredSlot
from mnemic.store.retrieve.query_words import build_fts5_query, extract_words, split_unknown_words
from mnemic.store.sqlite.connection import SQLiteConnection

MAX_LEADING_SLOTS = 25_000  # slots that the leading words match
MAX_FOLLOWING_SLOTS = 1_000_000  # slots that the following words match; FTS5 counts each
COUNT_MATCHES = "SELECT count(*) FROM lexicon WHERE lexicon MATCH ?"
SELECT_RANKED = "SELECT rowid, -rank FROM lexicon WHERE lexicon MATCH ? ORDER BY rank LIMIT ?"
# + keeps SQLite from searching the words once per slot, and FTS5 from scoring slots of others.
IN_DOCUMENTS = "+rowid IN (SELECT id FROM passages WHERE document {})"
SELECT_RANKED_INSIDE = (
    f"SELECT rowid, -bm25(lexicon) AS score FROM lexicon WHERE lexicon MATCH ? AND {IN_DOCUMENTS} "
    "ORDER BY score DESC, rowid LIMIT ?"
)


class LexiconSearch(NamedTuple):
    """The full-text index of a memory, or of some documents of it."""

    connection: SQLiteConnection
    document_ids: Sequence[int] | None  # None: of all
    table: str = "lexicon"

    def name_index(self, select: str) -> str:
        """Name the table of the index in a query."""
        return select.replace("lexicon", self.table)

    def count_matches(self, query: str) -> int:
        """Return the number of slots that match a query."""
        if self.document_ids is None:
            return self.connection.fetch_value(self.name_index(COUNT_MATCHES), (query,))
        select = f"{COUNT_MATCHES} AND {IN_DOCUMENTS.format(self.connection.in_ids)}"
        return self.connection.fetch_value(
            self.name_index(select), (query, self.connection.pack_ids(self.document_ids))
        )

    def rank_slots(self, query: str, limit: int, repeats: int = 1) -> list[ScoredSlot]:
        """Return the best slots that match a query, which has each word ``repeats`` times."""
        if self.document_ids is None:
            rows = self.connection.fetch_all(self.name_index(SELECT_RANKED), (query, limit))
        else:
            select = SELECT_RANKED_INSIDE.format(self.connection.in_ids)
            values = (query, self.connection.pack_ids(self.document_ids), limit)
            rows = self.connection.fetch_all(self.name_index(select), values)
        return [ScoredSlot(slot_id, score / repeats) for slot_id, score in rows]


def search_bm25(
    connection: SQLiteConnection,
    text: str,
    limit: int,
    *,
    require_all: bool,
    num_slots: int,
    document_ids: Sequence[int] | None,
    index: str = "lexicon",
) -> list[ScoredSlot]:
    """Rank the slots with any of the words, or with all, by BM25."""
    words, lexicon = extract_words(text), LexiconSearch(connection, document_ids, index)
    if not words or not num_slots:
        return []
    if not require_all:
        memory_words = LexiconSearch(connection, None, index)
        words = split_unknown_words(words, lambda word: memory_words.count_matches(build_fts5_query([word])) > 0)
    if require_all or len(words) * num_slots <= MAX_LEADING_SLOTS:
        return lexicon.rank_slots(build_fts5_query(words, require_all=require_all), limit)
    counts = {word: lexicon.count_matches(build_fts5_query([word])) for word in words}
    ordered = sorted((word for word in words if counts[word]), key=lambda word: counts[word])
    counted_words = take_words_within(ordered, counts, MAX_FOLLOWING_SLOTS)
    scores: dict[int, float] = {}
    for query, leading_words in widen_queries(take_words_within(ordered, counts, MAX_LEADING_SLOTS), ordered):
        repeats, following_words = 1, [word for word in counted_words if word not in leading_words]
        if following_words:
            # FTS5 counts a word as often as the query has it: so have each of them twice.
            repeats, words = 2, [*leading_words, *following_words, *following_words]
            query = f"({query}) AND ({build_fts5_query(words)})"
        scores |= dict(lexicon.rank_slots(query, limit, repeats))
        if len(scores) >= limit:
            break
    best = sorted(scores, key=lambda slot_id: (-scores[slot_id], slot_id))
    return [ScoredSlot(slot_id, scores[slot_id]) for slot_id in best[:limit]]


def widen_queries(leading_words: list[str], words_by_rarity: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield queries that match more and more slots, each with its words."""
    if leading_words:
        yield build_fts5_query(leading_words), leading_words
    rest = words_by_rarity[len(leading_words) :]
    if len(rest) > 1:  # two common words rarely occur together
        yield build_fts5_query(rest[:2], require_all=True), rest[:2]
    if rest:
        yield build_fts5_query(rest[:1]), rest[:1]


def take_words_within(words: Sequence[str], counts: dict[str, int], max_slots: int) -> list[str]:
    """Return the first words that together match at most ``max_slots`` slots."""
    totals = accumulate(counts[word] for word in words)
    return [word for word, total in zip(words, totals) if total <= max_slots]


def list_terms(connection: SQLiteConnection, first_letter: str) -> list[tuple[str, int]]:
    """Return the stems that begin with a letter, and how many slots have each."""
    connection.execute("CREATE VIRTUAL TABLE IF NOT EXISTS temp.terms USING fts5vocab ('main', 'lexicon', 'row')")
    select = "SELECT term, doc FROM temp.terms WHERE term >= ? AND term < ?"
    return connection.fetch_all(select, (first_letter, chr(ord(first_letter) + 1)))


def find_term_slots(connection: SQLiteConnection, term: str, limit: int) -> list[int]:
    """Return the ids of a few slots that have a stem."""
    connection.execute(
        "CREATE VIRTUAL TABLE IF NOT EXISTS temp.occurrences USING fts5vocab ('main', 'lexicon', 'instance')"
    )
    select = "SELECT DISTINCT doc FROM temp.occurrences WHERE term = ? LIMIT ?"
    return [slot_id for (slot_id,) in connection.fetch_all(select, (term, limit))]
