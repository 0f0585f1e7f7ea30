"""Rerank passages: read more of them, and rank them by retrieval and the reader together.

Retrieval compares a question with passages that were embedded without it; a reader reads both
together and says how well the passage answers. It reads a passage once: the same pass finds the
span and scores the passage. In several hops the passages of the last one are reranked.

By default few passages are read where the first ones answer, and more where none does: so the right
one is found more often, and half of the questions take less time.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from typing import NamedTuple

from mnemic.store.answer.confidence import AnswerSpan
from mnemic.store.contract import MemorySlot
from mnemic.store.relational import Store
from mnemic.store.retrieve.hybrid import Hop, softmax

BATCH_SIZE = 5  # passages that are read between two looks at the clock
# By default: how many are read first, how many more at once, and at most, per passage that is used.
FIRST_SIZE, NEXT_SIZE, MAX_RATIO = 3, 6, 3
ENOUGH_RELEVANCE = 1.5  # of a passage, as log-odds: no further ones are read
MAX_RELEVANCE = 15.0  # bound of log-odds, as of the confidence of answers
# Of log-odds beside the fused score of retrieval, by python benchmarks/rerank_passages.py
RELEVANCE_WEIGHT = 1.0


class ReadingPlan(NamedTuple):
    """How many passages are read at once, and when no further ones are."""

    sizes: tuple[int, ...]  # of batches of passages; the first one is read in any case
    timeout_s: float = inf
    enough_relevance: float = inf


def count_reranked(num_used: int, rerank: int | None, timeout_s: float | None) -> int:
    """Count the passages of the last hop that may be read; ``rerank`` as in ``AskOptions``."""
    if rerank is None:
        return num_used if timeout_s == 0 else MAX_RATIO * num_used
    return rerank


def plan_reading(
    num_retrieved: int, num_further: int, *, rerank: int | None, timeout_s: float | None, num_hops: int
) -> ReadingPlan:
    """Plan to read the retrieved passages of all hops, then further ones of the last."""
    timeout = inf if timeout_s is None else timeout_s
    if rerank is None and timeout:
        first = FIRST_SIZE if num_hops == 1 else num_retrieved
        sizes = split_evenly(num_retrieved + num_further, first, NEXT_SIZE)
        return ReadingPlan(sizes, timeout, ENOUGH_RELEVANCE)
    if num_further and timeout < inf:
        return ReadingPlan(split_evenly(num_retrieved + num_further, num_retrieved, BATCH_SIZE), timeout)
    return ReadingPlan((num_retrieved + num_further,))


def split_evenly(total: int, first: int, size: int) -> tuple[int, ...]:
    """Split a number into the first size, and equal ones as far as it goes.

    >>> split_evenly(15, 3, 5)
    (3, 5, 5, 2)
    """
    starts = range(first, total, size)
    return (min(first, total), *(min(size, total - start) for start in starts))


def list_further_slots(store: Store, hop: Hop, num_kept: int, num_reranked: int) -> list[MemorySlot]:
    """List the slots of a hop to read and rank beside the best ``num_kept``."""
    return store.get_slots(hop.top_slots(num_reranked)[num_kept:]) if num_reranked > num_kept else []


def read_in_batches(
    read: Callable[[Sequence[str]], list[AnswerSpan]], batches: Iterator[Sequence[str]], plan: ReadingPlan
) -> tuple[list[AnswerSpan], bool]:
    """Read batches until a passage answers, or the time is up.

    Return what was read, and whether the time was up.
    """
    deadline = time.monotonic() + plan.timeout_s
    spans: list[AnswerSpan] = []
    for number, batch in enumerate(batches):
        if any(span.passage_relevance >= plan.enough_relevance for span in spans):
            return spans, False
        if number and time.monotonic() >= deadline:
            return spans, True
        spans += read(batch)
    return spans, False


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
