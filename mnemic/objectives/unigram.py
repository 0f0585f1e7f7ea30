"""What guessing by frequency alone would cost: the baseline of every language model.

Shapes: v vocabulary.
"""

import torch
from torch import Tensor

from mnemic.models import IGNORE


def counts_of(targets: Tensor, vocab: int) -> Tensor:
    """How often each id is asked for (v); IGNORE is not counted."""
    return torch.bincount(targets[targets != IGNORE].flatten(), minlength=vocab)


def unigram_loss(seen: Tensor, asked: Tensor) -> float:
    """Mean cross-entropy, in nats, of targets counted in ``asked`` by the counts ``seen``: v each.

    One is added to each count, so that an id that was never seen is unlikely, not impossible.
    """
    likely = (seen + 1).double() / (seen + 1).sum()
    return float(-(asked * likely.log()).sum() / asked.sum())
