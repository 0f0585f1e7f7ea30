"""Count how often words stand near each other in the spans of a corpus.

Shapes: n words.
"""

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import chain
from typing import Any

import numpy as np

from mnemic.train.vectors.contract import OnProgress, WordSpans

BLOCK_WORDS = 2_000_000  # that are counted at once: some 100 bytes each


def check_scipy() -> None:
    """Raise a ValueError if scipy is not installed."""
    if find_spec("scipy") is None:
        raise ValueError("counting words that are near each other needs scipy: pip install 'mnemic[vectors]'")


def count_pairs(
    spans: WordSpans, counts: Mapping[str, int], weights: Sequence[float], num_words: int, on_progress: OnProgress
) -> Any:
    """Count pairs of words that are near each other in a sparse matrix, n n.

    A pair at distance i counts ``weights[i - 1]``. Words that have no entry in ``counts`` are left
    out first, so that those around them are nearer. The matrix is symmetric.
    """
    from scipy import sparse  # type: ignore[import-untyped]

    total: Any = sparse.csr_matrix((len(counts), len(counts)), dtype=np.float32)
    for ids, span_ids in iterate_blocks(spans, counts, num_words, on_progress, BLOCK_WORDS):
        pairs = []
        for distance, weight in enumerate(weights, start=1):
            is_same = span_ids[distance:] == span_ids[:-distance]  # a pair is in one span
            first, second = ids[:-distance][is_same], ids[distance:][is_same]
            pairs.append((np.full(len(first), weight, dtype=np.float32), first, second))
        values, rows, columns = (np.concatenate(arrays) for arrays in zip(*pairs))
        total = total + sparse.coo_matrix((values, (rows, columns)), shape=total.shape).tocsr()
    return (total + total.T).tocsr()


def iterate_blocks(
    spans: WordSpans, counts: Mapping[str, int], num_words: int, on_progress: OnProgress, size: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the ids of at least ``size`` words at once, and the spans' numbers."""
    word_ids = {word: word_id for word_id, word in enumerate(counts)}
    block: list[list[int]] = []
    num_read = num_ids = 0
    for words in spans:
        num_read += len(words)
        on_progress(num_read, num_words)
        block.append([word_ids[word] for word in words if word in word_ids])
        num_ids += len(block[-1])
        if num_ids >= size:
            yield join_block(block)
            block, num_ids = [], 0
    if num_ids:
        yield join_block(block)


def join_block(block: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Join the spans of a block, and number them."""
    lengths = [len(ids) for ids in block]
    joined = np.fromiter(chain.from_iterable(block), dtype=np.int64, count=sum(lengths))
    return joined, np.repeat(np.arange(len(block)), lengths)
