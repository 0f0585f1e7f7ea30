"""Choosing a memory by comparing two at a time, so that the time of writing may count.

Shapes: b batch, m queries, s slots, c candidates (the slots, then "nothing"), d width.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn


class Pairs(NamedTuple):
    """``s(x, y, y′)`` of every pair in parts: ``first[y] − second[y′] + older · [y before y′]``.

    Positive: y is preferred. "Nothing", the last candidate, is neither before nor after a slot.
    """

    first: Tensor  # b m c
    second: Tensor  # b m c
    older: Tensor  # b m 1


class Times(nn.Module):
    """Φ_t: whether x is older than y, x older than y′, y older than y′ (Weston et al. 2015a, 3.4).

    ``s(x, y, y′) = Φ(x)ᵀ Uᵀ U (Φ(y) − Φ(y′) + Φ_t(x, y, y′))``: a vector for each of the three.
    The age of x is that of the fact found last, and at first, of the question: newer than all.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.vectors = nn.Parameter(torch.randn(3, width) * 0.1)

    def forward(self, query: Tensor, score: Tensor, last: Tensor) -> Pairs:
        """``query`` b m d, ``score`` b m c, ``last`` b m: the slot found last, s if none was."""
        place = torch.arange(score.shape[-1], device=score.device)  # c
        after = (place > last.unsqueeze(-1)) & (place < place.shape[0] - 1)  # b m c: x is older
        first, second, older = (query @ self.vectors.mT).split(1, -1)  # b m 1
        return Pairs(score + first * after, score - second * after, older)


def untimed(score: Tensor) -> Pairs:
    """Each candidate has a score of its own, and the difference decides."""
    return Pairs(score, score, torch.zeros_like(score[..., :1]))


def contest(pairs: Pairs, seen: Tensor) -> Tensor:
    """Go through the candidates once, oldest first, keeping the winner so far: its place, b m.

    ``seen``: b m c. Where nothing is seen, the last place. No loop over slots: each candidate knows
    the first later one that beats it, and ⌈log₂ c⌉ jumps follow that path to its end.
    """
    count = seen.shape[-1]
    place = torch.arange(count, device=seen.device)
    later = place > place.unsqueeze(1)  # c c
    dated = later & (place < count - 1)
    ahead = pairs.first.unsqueeze(-1) - pairs.second.unsqueeze(-2)  # b m c c
    beaten = (ahead + pairs.older.unsqueeze(-1) * dated <= 0) & later & seen.unsqueeze(-2)
    beater = torch.where(beaten, place, count).amin(-1)  # b m c
    beater = torch.where(beater == count, place, beater)
    for _ in range(count.bit_length()):
        beater = beater.gather(-1, beater)
    start = torch.where(seen, place, count - 1).amin(-1, keepdim=True)  # b m 1
    return beater.gather(-1, start).squeeze(-1)


def against(pairs: Pairs, chosen: Tensor) -> Tensor:
    """How far every candidate is ahead of the ``chosen`` one (b m), which has 0: b 2 m c.

    Twice, since s(x, y, y′) and −s(x, y′, y) may differ: −s(x, chosen, y) and s(x, y, chosen).
    """
    count = pairs.first.shape[-1]
    place = torch.arange(count, device=chosen.device)
    one = chosen.unsqueeze(-1)  # b m 1
    dated = (place < count - 1) & (one < count - 1)
    behind = pairs.first.gather(-1, one) - pairs.second + pairs.older * (dated & (place > one))
    ahead = pairs.first - pairs.second.gather(-1, one) + pairs.older * (dated & (place < one))
    return torch.stack([-behind, ahead], 1) * (place != one).unsqueeze(1)
