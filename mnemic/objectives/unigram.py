"""Cross-entropy of a unigram model: the baseline of every language model.

Shapes: v vocabulary.
"""

import torch
from torch import Tensor

from mnemic.models import IGNORE


def count_targets(targets: Tensor, vocab_size: int) -> Tensor:
    """Count the targets of each id: v; IGNORE is not counted."""
    return torch.bincount(targets[targets != IGNORE].flatten(), minlength=vocab_size)


def unigram_loss(train_counts: Tensor, target_counts: Tensor) -> float:
    """Mean cross-entropy in nats of targets under a unigram model of training counts.

    Both arguments are counts per id: v. One is added to each training count (Laplace smoothing).
    """
    probabilities = (train_counts + 1).double() / (train_counts + 1).sum()
    return float(-(target_counts * probabilities.log()).sum() / target_counts.sum())
