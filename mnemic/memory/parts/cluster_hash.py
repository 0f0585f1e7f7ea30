"""Select slots by clusters of words: a question finds slots without a common word.

Shapes: s slots of the whole memory, w words, b batch, c slots selected, v vocabulary, d width.
"""

import torch
from torch import Tensor

from mnemic.memory.parts.key_hash import KeyHash


class ClusterHash:
    """Select slots that share a cluster of words with the question.

    Weston et al. 2015a, section 3.3. As ``KeyHash``, but its buckets are k-means clusters of word
    vectors instead of words. The best number of clusters depends on the data: in 1M slots 4,000
    found more than 1,000, and were faster (docs/explain/results.md).
    """

    def __init__(
        self,
        keys: Tensor,
        vectors: Tensor,
        *,
        num_clusters: int,
        max_slots: int = 20_000,
        max_frequency: int = 20_000,
        seed: int = 0,
    ) -> None:
        """Cluster the words and index the keys.

        ``keys``: s w, word ids, 0 = padding; ``vectors``: v d, without row 0 (padding).
        """
        generator = torch.Generator().manual_seed(seed)
        clusters = assign_clusters(vectors[1:], num_clusters, generator=generator)
        self.cluster_of_word = torch.cat([clusters.new_zeros(1), clusters + 1])  # v, 0 = padding
        self.key_hash = KeyHash(self.cluster_of_word[keys], max_slots=max_slots, max_frequency=max_frequency)

    def __call__(self, question: Tensor) -> Tensor:
        """Select slots for each question (b w, word ids): b c, padded with -1."""
        return self.key_hash(self.cluster_of_word[question])


def assign_clusters(vectors: Tensor, num_clusters: int, *, generator: torch.Generator, num_rounds: int = 10) -> Tensor:
    """Run k-means; return the cluster of each vector (v).

    A cluster that loses all its vectors keeps its center.
    """
    if not 1 <= num_clusters <= len(vectors):
        raise ValueError(f"expected from 1 to {len(vectors)} clusters, at most one per vector, not {num_clusters}")
    initial = torch.randperm(len(vectors), generator=generator)[:num_clusters]
    centers = vectors[initial.to(vectors.device)]  # k d
    for _ in range(num_rounds):
        clusters = nearest_center(vectors, centers)
        sums = torch.zeros_like(centers).index_add_(0, clusters, vectors)
        counts = clusters.bincount(minlength=num_clusters).unsqueeze(1)
        centers = torch.where(counts > 0, sums / counts.clamp(min=1), centers)
    return nearest_center(vectors, centers)


def nearest_center(vectors: Tensor, centers: Tensor) -> Tensor:
    """Find the nearest center of each vector, in batches of 4,096 vectors."""
    half_norms = centers.square().sum(1) / 2  # |v - c|² = |v|² - 2 (v·c - |c|²/2)
    return torch.cat([(batch @ centers.mT - half_norms).argmax(1) for batch in vectors.split(4096)])
