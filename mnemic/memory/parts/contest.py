"""Select a memory by comparing pairs, so that their times of writing can count.

Shapes: b batch, m queries, s slots, c candidates (the slots, then "nothing"), d width.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn


class PairwiseScores(NamedTuple):
    """The terms of ``s(x, y, y′)`` for all pairs of candidates y, y′.

    ``s = as_winner[y] − as_loser[y′] + older_bonus · [y before y′]``; positive: y wins.
    "Nothing", the last candidate, is neither before nor after a slot.
    """

    as_winner: Tensor  # b m c
    as_loser: Tensor  # b m c
    older_bonus: Tensor  # b m 1


class WriteTimeScorer(nn.Module):
    """Score pairs of candidates with features of write time (Weston et al. 2015a, 3.4).

    ``s(x, y, y′) = Φ(x)ᵀ Uᵀ U (Φ(y) − Φ(y′) + Φ_t(x, y, y′))``. Φ_t has one vector for each of: x
    older than y, x older than y′, y older than y′. The age of x is that of the last fact read; at
    first that of the question, which is newer than all.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.vectors = nn.Parameter(torch.randn(3, width) * 0.1)

    def forward(self, query: Tensor, scores: Tensor, last_slot: Tensor) -> PairwiseScores:
        """Add time features to the ``scores`` (b m c) of a ``query`` (b m d).

        ``last_slot`` b m: the slot read last, s for none.
        """
        positions = torch.arange(scores.shape[-1], device=scores.device)  # c
        is_newer = (positions > last_slot.unsqueeze(-1)) & (positions < positions.shape[0] - 1)  # b m c: x is older
        winner_bonus, loser_bonus, older_bonus = (query @ self.vectors.mT).split(1, -1)  # b m 1
        return PairwiseScores(scores + winner_bonus * is_newer, scores - loser_bonus * is_newer, older_bonus)


def pair_without_time(scores: Tensor) -> PairwiseScores:
    """Make pairwise scores that are differences of single scores."""
    return PairwiseScores(scores, scores, torch.zeros_like(scores[..., :1]))


def find_winner(scores: PairwiseScores, mask: Tensor) -> Tensor:
    """Find the winner of one pass over the candidates, oldest first: its index, b m.

    ``mask``: b m c; if all are masked, the last index. No loop over slots: each candidate points
    to the first later one that beats it, and ⌈log₂ c⌉ jumps follow these pointers to the end.
    """
    num_candidates = mask.shape[-1]
    positions = torch.arange(num_candidates, device=mask.device)
    is_later = positions > positions.unsqueeze(1)  # c c
    has_date = is_later & (positions < num_candidates - 1)
    margins = scores.as_winner.unsqueeze(-1) - scores.as_loser.unsqueeze(-2)  # b m c c
    is_beaten = (margins + scores.older_bonus.unsqueeze(-1) * has_date <= 0) & is_later & mask.unsqueeze(-2)
    beater = torch.where(is_beaten, positions, num_candidates).amin(-1)  # b m c
    beater = torch.where(beater == num_candidates, positions, beater)
    for _ in range(num_candidates.bit_length()):
        beater = beater.gather(-1, beater)
    start = torch.where(mask, positions, num_candidates - 1).amin(-1, keepdim=True)  # b m 1
    return beater.gather(-1, start).squeeze(-1)


def margins_over(scores: PairwiseScores, reference: Tensor) -> Tensor:
    """Compute the margins of all candidates over a ``reference`` (b m): b 2 m c.

    There are two, since s(x, y, y′) and −s(x, y′, y) may differ: −s(x, reference, y) and
    s(x, y, reference). The reference itself has margin 0.
    """
    as_winner, as_loser, older_bonus = scores
    num_candidates = as_winner.shape[-1]
    positions = torch.arange(num_candidates, device=reference.device)
    index = reference.unsqueeze(-1)  # b m 1
    has_date = (positions < num_candidates - 1) & (index < num_candidates - 1)
    reference_margins = as_winner.gather(-1, index) - as_loser + older_bonus * (has_date & (positions > index))
    candidate_margins = as_winner - as_loser.gather(-1, index) + older_bonus * (has_date & (positions < index))
    return torch.stack([-reference_margins, candidate_margins], 1) * (positions != index).unsqueeze(1)
