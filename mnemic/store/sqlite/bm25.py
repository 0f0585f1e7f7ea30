"""Rank slots by BM25 in SQLite's FTS5, at a bounded cost.

Scoring a slot takes a microsecond or two, and in a million slots a common word has a hundred
thousand matches. So the rarest words *lead*: only slots with one of them are scored. The other
words *follow*: they count in the scores of these slots, but add no slots, unless the leading words
match too few. As long as all words together match at most ``MAX_LEADING_SLOTS`` slots, all of them
lead, and this is plain BM25.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate

from mnemic.store.contract import ScoredSlot
from mnemic.store.retrieve.query_words import build_fts5_query, extract_words
from mnemic.store.sqlite.connection import SQLiteConnection
from mnemic.store.sqlite.vectors import read_slots_state

MAX_LEADING_SLOTS = 25_000  # slots that the leading words match
MAX_FOLLOWING_SLOTS = 1_000_000  # slots that the following words match; FTS5 counts each
COUNT_MATCHES = "SELECT count(*) FROM lexicon WHERE lexicon MATCH ?"
SELECT_RANKED = "SELECT rowid, -rank FROM lexicon WHERE lexicon MATCH ? ORDER BY rank LIMIT ?"


def search_bm25(connection: SQLiteConnection, text: str, limit: int, *, require_all: bool) -> list[ScoredSlot]:
    """Rank the slots with any of the words, or with all, by BM25."""
    words, num_slots = extract_words(text), read_slots_state(connection).num_slots
    if not words:
        return []
    if require_all or len(words) * num_slots <= MAX_LEADING_SLOTS:
        return rank_slots(connection, build_fts5_query(words, require_all=require_all), limit)
    counts = {word: connection.fetch_value(COUNT_MATCHES, (build_fts5_query([word]),)) for word in words}
    ordered = sorted((word for word in words if counts[word]), key=lambda word: counts[word])
    counted_words = take_words_within(ordered, counts, MAX_FOLLOWING_SLOTS)
    scores: dict[int, float] = {}
    for query, leading_words in widen_queries(take_words_within(ordered, counts, MAX_LEADING_SLOTS), ordered):
        repeats, following_words = 1, [word for word in counted_words if word not in leading_words]
        if following_words:
            # FTS5 counts a word as often as the query has it: so have each of them twice.
            repeats, words = 2, [*leading_words, *following_words, *following_words]
            query = f"({query}) AND ({build_fts5_query(words)})"
        scores |= dict(rank_slots(connection, query, limit, repeats))
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


def rank_slots(connection: SQLiteConnection, query: str, limit: int, repeats: int = 1) -> list[ScoredSlot]:
    """Return the best slots that match a query, which has each word ``repeats`` times."""
    rows = connection.fetch_all(SELECT_RANKED, (query, limit))
    return [ScoredSlot(slot_id, score / repeats) for slot_id, score in rows]


def take_words_within(words: Sequence[str], counts: dict[str, int], max_slots: int) -> list[str]:
    """Return the first words that together match at most ``max_slots`` slots."""
    totals = accumulate(counts[word] for word in words)
    return [word for word, total in zip(words, totals) if total <= max_slots]
