"""Word hashing by clusters of words: a question may read what it shares no word with.

Shapes: s slots of the whole memory, w words, b batch, c slots chosen, v vocabulary, d width.
"""

import torch
from torch import Tensor

from mnemic.memory.parts.key_hash import KeyHash


class ClusterHash:
    """The slots that share a cluster of words with the question (Weston et al. 2015a, section 3.3).

    As ``words``, whose buckets are words; here they are ``clusters`` of the words' vectors, by
    k-means. How many are best is to be measured: in 1M slots 4,000 found more than 1,000, and were
    faster (docs/results.md).
    """

    def __init__(
        self,
        keys: Tensor,
        vectors: Tensor,
        *,
        clusters: int,
        most: int = 20_000,
        common: int = 20_000,
        seed: int = 0,
    ) -> None:
        """``keys``: s w, word ids, 0 = padding; ``vectors``: v d, of which row 0 is not used."""
        dice = torch.Generator().manual_seed(seed)
        nearest = k_means(vectors[1:], clusters, dice=dice)
        self.cluster = torch.cat([nearest.new_zeros(1), nearest + 1])  # v, 0 = padding
        self.buckets = KeyHash(self.cluster[keys], most=most, common=common)

    def __call__(self, question: Tensor) -> Tensor:
        """b w, word ids → b c, slots, -1 behind them."""
        return self.buckets(self.cluster[question])


def k_means(vectors: Tensor, clusters: int, *, dice: torch.Generator, rounds: int = 10) -> Tensor:
    """The cluster of each vector: v. A cluster that loses all its vectors stays where it was."""
    if not 1 <= clusters <= len(vectors):
        raise ValueError(f"from 1 to {len(vectors)} clusters of as many vectors, not {clusters}")
    start = torch.randperm(len(vectors), generator=dice)[:clusters]
    centres = vectors[start.to(vectors.device)]  # k d
    for _ in range(rounds):
        nearest = closest(vectors, centres)
        sums = torch.zeros_like(centres).index_add_(0, nearest, vectors)
        counts = nearest.bincount(minlength=clusters).unsqueeze(1)
        centres = torch.where(counts > 0, sums / counts.clamp(min=1), centres)
    return closest(vectors, centres)


def closest(vectors: Tensor, centres: Tensor) -> Tensor:
    """The nearest centre of each vector, some thousand vectors at a time."""
    half = centres.square().sum(1) / 2  # |v - c|² = |v|² - 2 (v·c - |c|²/2)
    return torch.cat([(part @ centres.mT - half).argmax(1) for part in vectors.split(4096)])
