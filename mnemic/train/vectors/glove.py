"""Word vectors whose products are the logarithms of counts.

Shapes: n words, d width, m pairs of words with a count.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mnemic.recipe import ConfigError
from mnemic.train.vectors.contract import OnProgress, WordSpans, check_options
from mnemic.train.vectors.cooccurrence import check_scipy, count_pairs

PAIRS_PER_STEP = 4096


class GloveTables(NamedTuple):
    """The weights of words and of contexts, and their sums of squared gradients."""

    vectors: Tensor  # 2 n d: of words, then of contexts
    biases: Tensor  # 2 n
    vector_squares: Tensor  # 2 n d
    bias_squares: Tensor  # 2 n


class Glove:
    """Fit the logarithms of weighted counts of near words (Pennington et al. 2014).

    "GloVe: Global Vectors for Word Representation", equation 8: the squared error of wᵀw̃ + b + b̃ -
    ln X, weighted by (X / ``max_count``) ** ¾, at most 1. A pair at distance i adds 1 / i to X.
    AdaGrad; a word's vector is w + w̃. Published with 300 dimensions and 6 billion words: 65.8 on
    WordSim-353, 71.7 % of the analogies.

    Where we differ: steps are of 4,096 pairs at once, whose gradients are summed; and the squares
    of a step count in that step, so that none is far too long.
    """

    packages: tuple[str, ...] = ("numpy", "scipy", "torch")

    def __init__(
        self,
        *,
        width: int = 300,
        window: int = 10,
        min_count: int = 5,
        epochs: int = 25,
        rate: float = 0.05,
        max_count: float = 100.0,
    ) -> None:
        check_options("glove", width=width, window=window, min_count=min_count, epochs=epochs)
        if rate <= 0 or max_count <= 0:
            raise ConfigError(f"glove.rate and glove.max_count are above 0, not {rate} and {max_count}")
        self.width, self.window, self.min_count = width, window, min_count
        self.epochs, self.rate, self.max_count = epochs, rate, max_count

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
        """Learn one vector for each word of ``counts``: n d."""
        weights, num_passes = [1 / distance for distance in range(1, self.window + 1)], self.epochs + 1
        counted = count_pairs(
            spans, counts, weights, num_words, lambda num_read, total: on_progress(num_read, num_passes * total)
        ).tocoo()
        pairs = torch.from_numpy(np.stack([counted.row, counted.col]).astype(np.int64))  # 2 m
        if not pairs.shape[1]:
            raise ConfigError("no two words of the corpus stand near each other: give more documents")
        values = torch.from_numpy(counted.data.astype(np.float32))  # m
        logs, loss_weights = values.log(), (values / self.max_count).clamp(max=1) ** 0.75
        generator, num_threads = torch.Generator().manual_seed(seed), torch.get_num_threads()
        tables = create_tables(len(counts), self.width, generator)
        torch.set_num_threads(threads)
        try:
            for epoch in range(self.epochs):
                num_trained = 0
                for batch in torch.randperm(len(values), generator=generator).split(PAIRS_PER_STEP):
                    take_glove_step(tables, pairs[:, batch], logs[batch], loss_weights[batch], self.rate)
                    num_trained += len(batch)
                    num_read = num_words * (epoch + 1) + num_words * num_trained // len(values)
                    on_progress(num_read, num_words * num_passes)
        finally:
            torch.set_num_threads(num_threads)
        return tables.vectors.sum(0)


def create_tables(num_words: int, width: int, generator: torch.Generator) -> GloveTables:
    """Create random weights, as the authors' program does, and sums of squares of 1."""
    vectors = (torch.rand(2, num_words, width, generator=generator) - 0.5) / width
    biases = (torch.rand(2, num_words, generator=generator) - 0.5) / width
    return GloveTables(vectors, biases, torch.ones_like(vectors), torch.ones_like(biases))


def take_glove_step(tables: GloveTables, pairs: Tensor, logs: Tensor, loss_weights: Tensor, rate: float) -> None:
    """Take a step of AdaGrad for ``pairs`` (2 m) with ``logs`` and weights ``loss_weights`` (m)."""
    words, contexts = (tables.vectors[side].index_select(0, pairs[side]) for side in (0, 1))  # m d
    biases = tables.biases[0].index_select(0, pairs[0]) + tables.biases[1].index_select(0, pairs[1])
    errors = loss_weights * (torch.linalg.vecdot(words, contexts) + biases - logs)  # m, the gradient of each bias
    for side, gradients in enumerate((errors.unsqueeze(1) * contexts, errors.unsqueeze(1) * words)):
        rows = pairs[side]
        for weights, squares, gradient in (
            (tables.vectors[side], tables.vector_squares[side], gradients),
            (tables.biases[side], tables.bias_squares[side], errors),
        ):
            squares.index_add_(0, rows, gradient.square())
            step = squares.index_select(0, rows).rsqrt_().mul_(gradient)
            weights.index_add_(0, rows, step, alpha=-rate)
