"""Which slots share words with a question, by BM25 in FTS5, at a cost that has a bound.

Weighing a slot costs a microsecond or two, and of a million slots a common word brings in a
hundred thousand. So the rarest words *lead*: a slot must have one of them to be weighed. The others
*follow*: they count in the slots that are weighed, as they always did, but bring in none, unless
those that lead bring in too few. As long as all words together bring in no more than ``LED`` slots,
all of them lead, and this is plain BM25.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mnemic.store.contract import Scored
from mnemic.store.retrieve.query_words import query
from mnemic.store.sqlite.connection import Connection

LED = 25_000  # slots that the leading words bring in, at most
FOLLOWED = 1_000_000  # slots that have the words which follow, at most: each is counted
COUNT = "SELECT count(*) FROM lexicon WHERE lexicon MATCH ?"
RANKED = "SELECT rowid, -rank FROM lexicon WHERE lexicon MATCH ? ORDER BY rank LIMIT ?"


class Plan(NamedTuple):
    """A query in FTS5's language, and how often it counts each word."""

    text: str
    times: int


def match(connection: Connection, words: Sequence[str], most: int, slots: int) -> list[Scored]:
    """The slots with the best BM25, best first."""
    if len(words) * slots <= LED:
        return weighed(connection, Plan(query(list(words)), 1), most)
    counts = {word: connection.value(COUNT, (query([word]),)) for word in words}
    ordered = sorted((word for word in words if counts[word]), key=lambda word: counts[word])
    counted = within(ordered, counts, FOLLOWED)
    found: dict[int, float] = {}
    for leading, lead in widening(within(ordered, counts, LED), ordered):
        follow = [word for word in counted if word not in lead]
        found |= dict(weighed(connection, planned(leading, lead, follow), most))
        if len(found) >= most:
            break
    best = sorted(found, key=lambda slot: (-found[slot], slot))
    return [Scored(slot, found[slot]) for slot in best[:most]]


def widening(lead: list[str], ordered: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Queries that bring in slots, and their words: the rare ones, then as many as are needed."""
    if lead:
        yield query(lead), lead
    rest = ordered[len(lead) :]
    if len(rest) > 1:  # two common words together are rare, mostly
        yield query(rest[:2], every=True), rest[:2]
    if rest:
        yield query(rest[:1]), rest[:1]


def planned(leading: str, lead: list[str], follow: list[str]) -> Plan:
    """Slots that ``leading`` finds, weighed by all the words."""
    if not follow:
        return Plan(leading, 1)
    # FTS5 counts a word as often as the query has it: all of them twice, then.
    return Plan(f"({leading}) AND ({query([*lead, *follow, *follow])})", 2)


def weighed(connection: Connection, plan: Plan, most: int) -> list[Scored]:
    rows = connection.rows(RANKED, (plan.text, most))
    return [Scored(slot, score / plan.times) for slot, score in rows]


def within(words: Sequence[str], counts: dict[str, int], most: int) -> list[str]:
    """As many of the words, from the first on, as have no more than ``most`` slots together."""
    found, total = [], 0
    for word in words:
        total += counts[word]
        if total > most:
            break
        found.append(word)
    return found
