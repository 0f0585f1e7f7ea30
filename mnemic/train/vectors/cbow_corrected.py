"""Word vectors by the continuous bag of words, with the gradient of the mean.

Shapes: n words, d width, p words of a span, c words around one, k negatives.
"""

from collections.abc import Mapping
from functools import partial

import torch
from torch import Tensor

from mnemic.recipe import ConfigError
from mnemic.train.vectors.contract import OnProgress, WordSpans, check_options
from mnemic.train.vectors.cooccurrence import iterate_blocks
from mnemic.train.vectors.word2vec import MIN_RATE

STEP_WORDS = 500  # at least, that are read for one step; a text adds at most 1,000
NOISE_POWER = 0.75  # of a word's count, in the distribution of random words


class CbowCorrected:
    """As ``cbow``, with the gradient of the mean (İrsoy et al. 2021).

    arXiv:2012.15332: each word of a mean gets its share. word2vec's program and gensim leave out
    the division by the number of words, so that ``cbow`` seemed worse than ``skip-gram``.
    Published: as good as skip-gram. The right gradient is smaller, so that the rate is three times
    as large.

    Where we differ: some 1,000 words are predicted at once, in torch, from the same vectors.
    """

    packages: tuple[str, ...] = ("torch",)

    def __init__(
        self,
        *,
        width: int = 300,
        window: int = 5,
        negatives: int = 5,
        min_count: int = 5,
        epochs: int = 5,
        rate: float = 0.075,
        subsample: float = 1e-3,
    ) -> None:
        kind = "cbow-corrected"
        check_options(kind, width=width, window=window, negatives=negatives, min_count=min_count, epochs=epochs)
        if rate <= 0 or not 0 <= subsample < 1:
            values = f"not {rate} and {subsample}"
            raise ConfigError(f"{kind}.rate is above 0 and {kind}.subsample from 0 to below 1, {values}")
        self.width, self.window, self.negatives = width, window, negatives
        self.min_count, self.epochs = min_count, epochs
        self.rate, self.subsample = rate, subsample

    def check_installed(self) -> None:
        """Do nothing: torch is all that it needs."""

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
        generator, num_threads = torch.Generator().manual_seed(seed), torch.get_num_threads()
        frequencies = torch.tensor(list(counts.values()), dtype=torch.float64)
        noise = frequencies.pow(NOISE_POWER).cumsum(0)
        keep = self.keep_probabilities(frequencies)
        vectors = (torch.rand(len(counts), self.width, generator=generator) - 0.5) / self.width
        outputs = torch.zeros(len(counts), self.width)
        torch.set_num_threads(threads)
        try:
            for epoch in range(self.epochs):
                num_before, total, num_trained = epoch * num_words, self.epochs * num_words, 0
                report = partial(report_epoch, on_progress, num_before, total)
                for arrays in iterate_blocks(spans, counts, num_words, report, STEP_WORDS):
                    ids, span_ids = (torch.from_numpy(array) for array in arrays)
                    rate = self.rate * max(1 - (num_before + num_trained) / total, MIN_RATE)
                    num_trained += len(ids)
                    is_kept = torch.rand(len(ids), generator=generator) < keep[ids]
                    around, mask = find_context(ids[is_kept], span_ids[is_kept], self.window, generator)
                    draws = torch.rand(len(around), self.negatives, generator=generator, dtype=torch.float64)
                    negatives = torch.searchsorted(noise, draws * noise[-1]).clamp(max=len(counts) - 1)
                    take_cbow_step(vectors, outputs, around, mask, ids[is_kept], negatives, rate)
        finally:
            torch.set_num_threads(num_threads)
        return vectors

    def keep_probabilities(self, frequencies: Tensor) -> Tensor:
        """Compute how likely each word is kept: √(t/f) + t/f, as in the authors' program."""
        if not self.subsample:
            return torch.ones(len(frequencies))
        ratio = self.subsample * frequencies.sum() / frequencies
        return (ratio.sqrt() + ratio).clamp(max=1).float()


def report_epoch(on_progress: OnProgress, num_before: int, total: int, num_read: int, num_words: int) -> None:
    """Report the progress of an epoch as one of all epochs."""
    on_progress(num_before + num_read, total)


def find_context(ids: Tensor, span_ids: Tensor, window: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Find the words around each of ``ids`` (p), up to a random distance.

    It is drawn from 1 to ``window``. ``span_ids`` (p) are those of their texts. Return ids and
    whether they are there, both p c.
    """
    last = len(ids) - 1
    distances = torch.cat([torch.arange(-window, 0), torch.arange(1, window + 1)])  # c
    positions = torch.arange(len(ids)).unsqueeze(1) + distances  # p c
    reach = torch.randint(1, window + 1, (len(ids), 1), generator=generator)
    mask = (positions >= 0) & (positions <= last) & (distances.abs() <= reach)
    positions = positions.clamp(0, max(last, 0))
    return ids[positions], mask & (span_ids[positions] == span_ids.unsqueeze(1))


def take_cbow_step(
    vectors: Tensor, outputs: Tensor, around: Tensor, mask: Tensor, ids: Tensor, negatives: Tensor, rate: float
) -> None:
    """Take a step towards predicting words from the mean of those around them.

    ``around`` (p c) are the words near ``ids`` (p), where ``mask`` (p c) is true; ``negatives`` (p
    k) are random words; one that is the right word has no loss. ``vectors`` and ``outputs`` (n d)
    change in place.
    """
    mean_weights = mask / mask.sum(1, keepdim=True).clamp(min=1)  # p c
    means = torch.einsum("pc,pcd->pd", mean_weights.to(vectors.dtype), vectors[around])
    words = torch.cat([ids.unsqueeze(1), negatives], 1)  # p 1+k
    candidates = outputs[words]  # p 1+k d
    errors = -torch.einsum("pd,pkd->pk", means, candidates).sigmoid()
    errors[:, 0] += 1
    errors[:, 1:] *= negatives != ids.unsqueeze(1)
    errors *= mask.any(1, keepdim=True)
    mean_steps = torch.einsum("pk,pkd->pd", errors, candidates)
    output_steps = errors.unsqueeze(-1) * means.unsqueeze(1)  # p 1+k d
    add_rows(outputs, words.flatten(), output_steps.flatten(0, 1), torch.ones(words.numel()), rate)
    positions, columns = mask.nonzero(as_tuple=True)
    weights = mean_weights[positions, columns]
    add_rows(vectors, around[positions, columns], mean_steps[positions] * weights.unsqueeze(1), weights, rate)


def add_rows(table: Tensor, rows: Tensor, steps: Tensor, weights: Tensor, rate: float) -> None:
    """Add ``rate`` times the ``steps`` to ``rows`` of a table, in place.

    A row whose steps have large ``weights`` together, as in a small vocabulary, takes shorter ones:
    a sum of many gradients would be too long.
    """
    totals = torch.zeros(len(table)).index_add_(0, rows, weights.float())
    rates = rate / (rate * totals).clamp(min=1)
    table.index_add_(0, rows, steps * rates[rows].to(table.dtype).unsqueeze(1))
