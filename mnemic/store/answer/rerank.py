"""Rerank passages: read more of them, and rank them by retrieval and the reader together.

Retrieval compares a question with passages that were embedded without it; a reader reads both
together and says how well the passage answers. It reads a passage once: the same pass finds the
span and scores the passage. In several hops the passages of the last one are reranked.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from mnemic.store.contract import MemorySlot
from mnemic.store.relational import Store
from mnemic.store.retrieve.hybrid import Hop, softmax

R = TypeVar("R")
BATCH_SIZE = 5  # texts that are read between two looks at the clock
MAX_RELEVANCE = 15.0  # bound of log-odds, as of the confidence of answers
# Of log-odds beside the fused score of retrieval, by python benchmarks/rerank_passages.py
RELEVANCE_WEIGHT = 1.0


def list_further_slots(store: Store, hop: Hop, num_kept: int, num_reranked: int) -> list[MemorySlot]:
    """List the slots of a hop to read and rank beside the best ``num_kept``."""
    return store.get_slots(hop.top_slots(num_reranked)[num_kept:]) if num_reranked > num_kept else []


def read_in_time(
    read: Callable[[Sequence[str]], list[R]], texts: Sequence[str], num_first: int, timeout_s: float | None
) -> list[R]:
    """Read texts in batches until the time is up; return the results so far.

    The first ``num_first`` are read in any case, and all at once without a timeout.
    """
    if timeout_s is None:
        return read(texts)
    deadline = time.monotonic() + timeout_s
    results = read(texts[:num_first])
    for start in range(num_first, len(texts), BATCH_SIZE):
        if time.monotonic() >= deadline:
            break
        results += read(texts[start : start + BATCH_SIZE])
    return results


def rerank_hop(hop: Hop, relevance: Mapping[int, float]) -> Hop:
    """Rank the slots of a hop by retrieval and their relevance.

    Slots without a relevance were not read: they come after the others, ranked by retrieval.
    """
    scores = {
        slot_id: hop.scores[slot_id] + RELEVANCE_WEIGHT * max(-MAX_RELEVANCE, min(MAX_RELEVANCE, value))
        for slot_id, value in relevance.items()
        if slot_id in hop.scores
    }
    unread = {slot_id: score for slot_id, score in hop.scores.items() if slot_id not in scores}
    if scores and unread:
        shift = min(min(scores.values()) - max(unread.values()) - 1, 0.0)
        scores |= {slot_id: score + shift for slot_id, score in unread.items()}
    return hop._replace(scores=scores, weights=softmax(scores)) if scores else hop


def describe_timeout(num_unread: int, timeout_s: float) -> str:
    """Describe that the time was up before all passages were read."""
    return f"after {timeout_s:g} s, {num_unread} passages were not read: they are ranked by retrieval alone"
