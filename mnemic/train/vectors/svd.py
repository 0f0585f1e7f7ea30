"""Word vectors by counting: pointwise mutual information, reduced by singular values.

Shapes: n words, d width.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mnemic.recipe import ConfigError
from mnemic.train.vectors.contract import OnProgress, WordSpans, check_options
from mnemic.train.vectors.cooccurrence import check_scipy, count_pairs


class PpmiSvd:
    """Factor the positive pointwise mutual information of near words (Levy et al. 2015).

    Transactions of the ACL 3, sections 2 and 3: ln P(word, context) / P(word) P(context), at least
    0, with the counts of contexts to the power of ``smoothing``; then U Σ ** ``power`` of its
    largest singular values.

    Where we differ: a word at distance i of ``window`` counts as often as word2vec would draw it on
    average, (window + 1 - i) / window times. A vector has the sign that makes the sum of its
    singular vector positive, so that the same counts give the same vectors.
    """

    packages: tuple[str, ...] = ("numpy", "scipy")

    def __init__(
        self, *, width: int = 300, window: int = 5, min_count: int = 5, smoothing: float = 0.75, power: float = 0.5
    ) -> None:
        check_options("svd", width=width, window=window, min_count=min_count)
        if not 0 < smoothing <= 1 or not 0 <= power <= 1:
            values = f"not {smoothing} and {power}"
            raise ConfigError(f"svd.smoothing is from above 0 to 1 and svd.power from 0 to 1, {values}")
        self.width, self.window, self.min_count = width, window, min_count
        self.smoothing, self.power = smoothing, power

    def check_installed(self) -> None:
        """Raise a ValueError if scipy is not installed."""
        check_scipy()

    def learn(
        self,
        spans: WordSpans,
        counts: Mapping[str, int],
        *,
        num_words: int,
        seed: int,
        threads: int,
        on_progress: OnProgress,
    ) -> Tensor:
        """Compute one vector for each word of ``counts``: n d."""
        from scipy.sparse.linalg import svds  # type: ignore[import-untyped]

        if self.width >= len(counts):
            raise ConfigError(
                f"svd makes vectors of at most {len(counts) - 1} numbers from {len(counts)} words, not of "
                f"{self.width}: give a smaller width, or more documents"
            )
        weights = [(self.window - distance) / self.window for distance in range(self.window)]
        information = compute_ppmi(count_pairs(spans, counts, weights, num_words, on_progress), self.smoothing)
        first_vector = np.random.default_rng(seed).standard_normal(len(counts))
        vectors, values, _ = svds(information.astype(np.float64), k=self.width, v0=first_vector)
        vectors = vectors * np.where(vectors.sum(0) < 0, -1.0, 1.0)
        order = np.argsort(-values)
        return torch.from_numpy(vectors[:, order] * values[order] ** self.power).float()


def compute_ppmi(counts: Any, smoothing: float) -> Any:
    """Compute the positive pointwise mutual information of a sparse matrix of counts, n n."""
    pairs = counts.tocoo()
    rows, columns = np.asarray(counts.sum(1)).ravel(), np.asarray(counts.sum(0)).ravel() ** smoothing
    expected = rows[pairs.row] * (columns / columns.sum())[pairs.col]  # of a pair, if words were drawn alone
    pairs.data = np.maximum(np.log(pairs.data / expected), 0)
    pairs = pairs.tocsr()
    pairs.eliminate_zeros()
    return pairs
