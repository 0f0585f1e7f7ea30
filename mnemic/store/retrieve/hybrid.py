"""Read a memory with a query: by its words and by its vectors, mixed.

BM25 and cosine are measured in deviations from their mean over all slots, so that they can be
added; a slot without a word of the query has a BM25 of 0.

Each way of looking brings in candidates, that by vectors by one vector a slot; the cosine of a
candidate is then that of its nearest key. Mean and deviation stay those of the vectors of all
slots, since nobody looks at all keys. A wrong mean shifts all candidates alike, which changes
neither their order nor their weights. The deviation is nearly the same: that of the nearest keys of
all slots was 0.985 of it (± 0.017 over 1,000 questions of SQuAD's train set), and taking it, or
that of the candidates, finds no better.
"""

from collections.abc import Mapping, Sequence
from math import exp
from typing import NamedTuple

from mnemic.store.contract import Store
from mnemic.store.retrieve.embedders import Embedder
from mnemic.store.retrieve.sentence_keys import nearest_keys

CANDIDATES = 200  # slots that each way of looking brings in
FLAT = 1e-9  # a deviation that is none


class Hop(NamedTuple):
    """What one read found. The weights of all candidates add up to 1; they are the evidence."""

    query: str
    scores: dict[int, float]  # slot → mixed score
    weights: dict[int, float]
    looked: int  # how many slots were looked at
    clue: str = ""  # a sentence of the hop before that was part of the query

    def best(self, most: int) -> list[int]:
        """The slots that were read most, most read first."""
        return sorted(self.scores, key=lambda slot: (-self.scores[slot], slot))[:most]


class Scale(NamedTuple):
    """Scores of some slots, and how those of all slots are spread."""

    scores: Mapping[int, float]
    mean: float
    deviation: float

    def of(self, slot: int) -> float:
        """In deviations from the mean."""
        return (self.scores.get(slot, 0.0) - self.mean) / max(self.deviation, FLAT)


class Sought(NamedTuple):
    """What was found by words and by vectors, before the two are mixed."""

    query: str
    words: Scale
    vectors: Scale | None
    slots: list[int]
    looked: int

    def mixed(self, share: float, besides: Sequence[int] = ()) -> Hop:
        """The hop in which words count that much beside vectors."""
        chosen = sorted(set(self.slots).difference(besides))
        parts = [(self.words, share)] + ([(self.vectors, 1 - share)] if self.vectors else [])
        scores = {slot: sum(own * scale.of(slot) for scale, own in parts) for slot in chosen}
        return Hop(self.query, scores, softmax(scores), self.looked)


def seek(store: Store, embedder: Embedder | None, query: str) -> Sought:
    """Look at every slot, and at the keys of the candidates."""
    looked = store.size()
    matched = dict(store.match(query, CANDIDATES))
    words = Scale(matched, *spread(list(matched.values()), looked))
    if embedder is None:
        return Sought(query, words, None, list(matched), looked)
    vector = embedder.embed([query])[0]
    near = store.nearest(vector, CANDIDATES)
    slots = sorted({*matched, *(one.slot for one in near.best)})
    whole = store.vectors(slots) @ vector
    products = dict(zip(slots, nearest_keys(store.keys(slots), vector, whole).tolist()))
    return Sought(query, words, Scale(products, near.mean, near.deviation), slots, looked)


def read(
    store: Store,
    embedder: Embedder | None,
    query: str,
    *,
    lexical: float | None = None,
    besides: Sequence[int] = (),
) -> Hop:
    """Look at every slot but ``besides``; the weights are the softmax of the mixed scores.

    ``lexical`` is the share of BM25 in them: what suits the embedder, unless told.
    """
    return seek(store, embedder, query).mixed(share(embedder, lexical), besides)


def share(embedder: Embedder | None, lexical: float | None) -> float:
    """How much words count, beside vectors."""
    if embedder is None:
        return 1.0
    return embedder.lexical if lexical is None else lexical


def spread(scores: Sequence[float], count: int) -> tuple[float, float]:
    """Mean and deviation of ``count`` scores, of which all but these are 0."""
    mean = sum(scores) / max(count, 1)
    squares = sum(score * score for score in scores) / max(count, 1)
    return mean, max(squares - mean * mean, 0.0) ** 0.5


def softmax(scores: Mapping[int, float]) -> dict[int, float]:
    top = max(scores.values(), default=0.0)
    grown = {key: exp(score - top) for key, score in scores.items()}
    total = sum(grown.values())
    return {key: value / total for key, value in grown.items()}
