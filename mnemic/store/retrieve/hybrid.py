"""Hybrid retrieval: rank the slots of a memory by BM25 and cosine similarity, fused.

BM25 and cosine are standardized by mean and deviation over all slots, so that they can be added; a
slot without a word of the query has a BM25 of 0.

Each of the two searches contributes candidates, the vector search by one vector per slot. The
cosine of a candidate is then the largest over its sentence vectors. Mean and deviation stay those
of the passage vectors of all slots, since comparing all sentence vectors would be too slow. A wrong
mean shifts all candidates alike, which changes neither their order nor their weights. The deviation
is nearly the same: that of the best sentence vectors of all slots was 0.985 of it (± 0.017 over
1,000 questions of SQuAD's train set), and with it, or with that of the candidates, recall is no
better.

Questions written ahead are further keys: the BM25 score is the larger of that of the words and,
weighted, that of the questions; the largest cosine is also over their vectors. Added up, the BM25
scores of people's questions found less than words alone.
"""

from collections.abc import Mapping, Sequence
from math import exp
from types import MappingProxyType
from typing import NamedTuple

from mnemic.checkpoint.shipped import EMBEDDERS
from mnemic.store.relational import Store
from mnemic.store.retrieve.embedders import Embedder
from mnemic.store.retrieve.sentence_keys import max_sentence_products

NUM_CANDIDATES = 200  # slots that each of the searches contributes
QUESTION_WEIGHT = 0.9  # of the BM25 score of a passage's questions, beside that of its words
# Scores that deviate by less than this fraction of their mean are alike, up to rounding: they are
# not standardized. In a memory of one passage, all of them are.
MIN_RELATIVE_STD = 1e-4


NO_COSINES: Mapping[int, float] = MappingProxyType({})


class Hop(NamedTuple):
    """The result of one read: scores of slots, and weights that sum to 1."""

    query: str
    scores: dict[int, float]  # slot id → fused score
    weights: dict[int, float]  # slot id → softmax of the scores, the evidence
    num_slots: int  # slots that were searched
    clue: str = ""  # the sentence of the hop before that was added to the query
    cosines: Mapping[int, float] = NO_COSINES  # slot id → cosine, of a shipped embedder

    def top_slots(self, limit: int) -> list[int]:
        """Return the ids of the slots with the highest scores, best first."""
        return sorted(self.scores, key=lambda slot_id: (-self.scores[slot_id], slot_id))[:limit]


class ScoreScale(NamedTuple):
    """Scores of some slots, with mean and standard deviation over all slots."""

    scores: Mapping[int, float]
    mean: float
    std: float

    def standardize(self, slot_id: int) -> float:
        """Return the standardized score of a slot."""
        deviation = self.scores.get(slot_id, 0.0) - self.mean
        return deviation / self.std if self.std > MIN_RELATIVE_STD * abs(self.mean) else deviation


class Candidates(NamedTuple):
    """Slots found by BM25 and by vectors, with both scores, before fusion."""

    query: str
    bm25: ScoreScale
    cosine: ScoreScale | None
    slot_ids: list[int]
    num_slots: int
    is_shipped: bool = False  # whether the cosines are by a shipped embedder

    def fuse(self, bm25_weight: float, excluded: Sequence[int] = ()) -> Hop:
        """Fuse the scores of the candidates that are not ``excluded`` into a hop."""
        slot_ids = sorted(set(self.slot_ids).difference(excluded))
        weighted_scales = [(self.bm25, bm25_weight)] + ([(self.cosine, 1 - bm25_weight)] if self.cosine else [])
        scores = {
            slot_id: sum(weight * scale.standardize(slot_id) for scale, weight in weighted_scales)
            for slot_id in slot_ids
        }
        cosines = self.cosine.scores if self.cosine and self.is_shipped else NO_COSINES
        return Hop(self.query, scores, softmax(scores), self.num_slots, cosines=cosines)


def retrieve_candidates(
    store: Store, embedder: Embedder | None, query: str, document_ids: Sequence[int] | None = None
) -> Candidates:
    """Search all slots by BM25 and vectors; rescore candidates by sentence vectors.

    With ``document_ids``, slots of other documents are not searched.
    """
    num_slots = store.count_slots(document_ids)
    bm25_scores = dict(store.search_bm25(query, NUM_CANDIDATES, document_ids=document_ids))
    has_questions = store.has_questions()
    if has_questions:
        for slot_id, score in store.search_questions(query, NUM_CANDIDATES, document_ids=document_ids):
            bm25_scores[slot_id] = max(bm25_scores.get(slot_id, 0.0), QUESTION_WEIGHT * score)
    bm25 = ScoreScale(bm25_scores, *compute_mean_std(list(bm25_scores.values()), num_slots))
    if embedder is None:
        return Candidates(query, bm25, None, list(bm25_scores), num_slots)
    vector = embedder.embed([query])[0]
    nearest = store.search_vectors(vector, NUM_CANDIDATES, document_ids)
    slot_ids = sorted({*bm25_scores, *(neighbor.slot_id for neighbor in nearest.best)})
    passage_products = store.get_vectors(slot_ids) @ vector
    products = max_sentence_products(store.get_sentence_vectors(slot_ids), vector, passage_products)
    if has_questions:
        products = max_sentence_products(store.get_question_vectors(slot_ids), vector, products).clip(min=products)
    cosine = ScoreScale(dict(zip(slot_ids, products.tolist())), nearest.mean, nearest.std)
    return Candidates(query, bm25, cosine, slot_ids, num_slots, embedder.model.name in EMBEDDERS)


def read_hop(
    store: Store,
    embedder: Embedder | None,
    query: str,
    *,
    bm25_weight: float | None = None,
    excluded: Sequence[int] = (),
    document_ids: Sequence[int] | None = None,
) -> Hop:
    """Read the memory with a query: retrieve candidates and fuse their scores.

    ``bm25_weight`` is by default the embedder's. ``excluded`` slots are left out, and with
    ``document_ids`` those of all other documents.
    """
    candidates = retrieve_candidates(store, embedder, query, document_ids)
    return candidates.fuse(choose_bm25_weight(embedder, bm25_weight), excluded)


def choose_bm25_weight(embedder: Embedder | None, bm25_weight: float | None) -> float:
    """Return the weight of BM25: 1 without an embedder, by default the embedder's."""
    if embedder is None:
        return 1.0
    return embedder.bm25_weight if bm25_weight is None else bm25_weight


def compute_mean_std(scores: Sequence[float], count: int) -> tuple[float, float]:
    """Return mean and standard deviation of ``count`` scores; those not given are 0."""
    mean = sum(scores) / max(count, 1)
    squares = sum(score * score for score in scores) / max(count, 1)
    return mean, max(squares - mean * mean, 0.0) ** 0.5


def softmax(scores: Mapping[int, float]) -> dict[int, float]:
    """Return the softmax over the values of a dict."""
    top = max(scores.values(), default=0.0)
    exponentials = {key: exp(score - top) for key, score in scores.items()}
    total = sum(exponentials.values())
    return {key: value / total for key, value in exponentials.items()}
