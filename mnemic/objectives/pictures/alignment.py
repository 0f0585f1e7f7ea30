"""The ranking loss of pictures and captions.

Shapes: b pictures and captions of a batch.
"""

from typing import Any

import torch
from torch import Tensor, nn

from mnemic.objectives.contract import CarriedState, Loss
from mnemic.recipe import ConfigError


class AlignmentLoss:
    """Rank each picture with its caption above all others, by a margin.

    Σ_k [Σ_l max(0, S_kl - S_kk + margin) + Σ_l max(0, S_lk - S_kk + margin)] over the l ≠ k of a
    batch (Karpathy and Fei-Fei 2015, equation 9, where the margin is 1). Captions that say the same
    are no negatives of each other. ``train.accumulate`` makes batches, and so negatives, smaller.
    """

    def __init__(self, *, margin: float = 1.0) -> None:
        if margin <= 0:
            raise ConfigError(f"objective.margin is above 0, not {margin}")
        self.margin = margin

    def __call__(self, network: nn.Module, batch: Any, carried: CarriedState | None = None) -> Loss:
        scores = network(batch.inputs).logits
        total = rank_both_ways(scores, batch.caption_ids, self.margin)
        return Loss(total, torch.tensor(len(scores), device=scores.device), carried)


def rank_both_ways(scores: Tensor, caption_ids: Tensor, margin: float) -> Tensor:
    """Sum the margin losses of pictures × captions, ``scores`` b b; equal ids are not compared."""
    is_right = caption_ids == caption_ids.unsqueeze(1)  # b b
    right = scores.diagonal()
    per_picture = (scores - right.unsqueeze(1) + margin).relu()
    per_caption = (scores - right + margin).relu()
    return (per_picture + per_caption).masked_fill(is_right, 0.0).sum()
