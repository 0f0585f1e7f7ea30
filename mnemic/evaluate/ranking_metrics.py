"""Metrics of a ranking, from the relevance of its items, best first.

Relevance is 0 for an irrelevant item, 1 for a relevant one, and more for grades.
"""

from collections.abc import Sequence
from math import log2


def reciprocal_rank(relevance: Sequence[float]) -> float:
    """Return 1 / the rank of the first relevant item; 0 without one.

    Its mean over questions is the MRR.

    >>> reciprocal_rank([0, 1, 1])
    0.5
    """
    return next((1 / rank for rank, grade in enumerate(relevance, start=1) if grade > 0), 0.0)


def recall_at(relevance: Sequence[float], top_k: int, num_relevant: int | None = None) -> float:
    """Return the share of the relevant items that are among the first ``top_k``.

    ``num_relevant`` counts all relevant items, also those that were not ranked.
    """
    total = sum(grade > 0 for grade in relevance) if num_relevant is None else num_relevant
    return sum(grade > 0 for grade in relevance[:top_k]) / total if total else 0.0


def ndcg_at(relevance: Sequence[float], top_k: int, ideal: Sequence[float] | None = None) -> float:
    """Compute nDCG@k: the gain of a ranking over that of the ideal one.

    Järvelin and Kekäläinen 2002.

    A grade g at rank r gains g / log2(1 + r). ``ideal`` has the grades of all items, also of those
    that were not ranked; 0 if nothing is relevant.

    >>> round(ndcg_at([0, 1], 10), 4)
    0.6309
    """
    best = sorted(relevance if ideal is None else ideal, reverse=True)
    ideal_gain = discounted_gain(best[:top_k])
    return discounted_gain(relevance[:top_k]) / ideal_gain if ideal_gain else 0.0


def summarize_ranks(ranks: Sequence[int], top_k: int = 10) -> dict[str, float]:
    """Compute MRR and nDCG of questions with one relevant item each, ranked after ``ranks`` others.

    >>> {name: round(value, 3) for name, value in summarize_ranks([0, 1, 10]).items()}
    {'MRR': 0.53, 'nDCG@10': 0.544}
    """
    count = max(len(ranks), 1)
    gains = [1 / log2(2 + rank) for rank in ranks if rank < top_k]
    return {"MRR": sum(1 / (1 + rank) for rank in ranks) / count, f"nDCG@{top_k}": sum(gains) / count}


def discounted_gain(relevance: Sequence[float]) -> float:
    """Sum grades, discounted by the logarithm of their rank."""
    return sum(grade / log2(1 + rank) for rank, grade in enumerate(relevance, start=1))
