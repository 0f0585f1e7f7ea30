"""Learn by putting the right fact and the right answer before all others: strong supervision.

Shapes: b batch, m questions, f facts, k hops, h heads, s slots, c candidates, v vocabulary.
"""

from typing import Any, Literal

import torch
from torch import Tensor, nn

from mnemic.memory.append import slots_of
from mnemic.models import IGNORE
from mnemic.objectives.contract import Loss


class RankingLoss:
    """``Σ max(0, γ − s(right) + s(wrong))`` over *all* wrong facts of each hop and all wrong words.

    Equations 6 to 8 of Weston et al. 2015a. The reading follows the right facts, so every hop
    learns from where it should be. Where a memory compares by pairs, its heads are the two sums of
    the paper's loss for write times. Where a memory may read nothing, that is one more candidate,
    and the right one at the first hop behind the last fact; where it may not, hops behind the last
    fact should find that again. Where a memory learns what sentences are worth, facts are worth
    more than all others; where a network learns to tell sentences apart, that loss is added.
    ``order``: the facts as the data gives them, or in the order they were told.
    """

    def __init__(
        self,
        *,
        margin: float = 0.1,
        facts: float = 1.0,
        order: Literal["given", "time"] = "given",
    ) -> None:
        self.margin, self.facts, self.order = margin, facts, order

    def __call__(self, network: nn.Module, batch: Any, carried: Any = None) -> Loss:
        chain = (batch.chain if self.order == "given" else by_time(batch.chain)).unsqueeze(1)
        output = network(batch.inputs, chain)
        asked = batch.answers != IGNORE  # b m
        answers = behind(output.scores, batch.answers.clamp(min=0), self.margin)  # b m
        reading = output.reading
        scores = reading.scores  # b k h m s
        target = slots_of(chain, output.written.weights)  # b 1 f
        told = target[..., : scores.shape[1]].transpose(1, 2)  # b k m
        told = nn.functional.pad(told, (0, 0, 0, scores.shape[1] - told.shape[1]), value=IGNORE)
        wanted = told >= 0
        if reading.nothing is not None:
            scores = torch.cat([scores, reading.nothing.unsqueeze(-1)], -1)
            told = torch.where(wanted, told, scores.shape[-1] - 1)
            wanted = torch.cat([torch.ones_like(wanted[:, :1]), wanted[:, :-1]], 1)
        else:
            told = repeated(told)
            wanted = told >= 0
        facts = behind(scores, told.clamp(min=0).unsqueeze(2), self.margin).sum(2) * wanted
        total = (answers * asked).sum() + self.facts * facts.sum()
        if reading.worth is not None:
            total = total + self.facts * unworthy(reading.worth, target, self.margin).sum()
        if output.segments is not None:
            total = total + output.segments.sum()
        return Loss(total, asked.sum(), carried)


def unworthy(worth: Tensor, facts: Tensor, margin: float) -> Tensor:
    """How far facts (b 1 f, slots) are from being worth more than all other slots (b s): b."""
    place = torch.arange(worth.shape[-1], device=worth.device)
    right = (facts.unsqueeze(-1) == place).any(2).mT  # b s 1
    over = (margin - worth.unsqueeze(2) + worth.unsqueeze(1)).clamp(min=0)  # b s s
    return (over * (right & ~right.mT)).sum((1, 2))


def by_time(chain: Tensor) -> Tensor:
    """The facts of each proof (b f) in the order they were told, those that are none last."""
    last = torch.iinfo(chain.dtype).max
    told = chain.masked_fill(chain < 0, last).sort(-1).values
    return told.masked_fill(told == last, IGNORE)


def repeated(told: Tensor) -> Tensor:
    """The last fact again at hops that have none (b k m)."""
    kept = [told[:, 0]]
    for now in told[:, 1:].unbind(1):
        kept.append(torch.where(now >= 0, now, kept[-1]))
    return torch.stack(kept, 1)


def behind(scores: Tensor, right: Tensor, margin: float) -> Tensor:
    """How far the right one is from leading all others by ``margin``, summed: … c, … → …."""
    right = right.expand(scores.shape[:-1]).unsqueeze(-1)
    place = torch.arange(scores.shape[-1], device=scores.device)
    over = (margin - scores.gather(-1, right) + scores).clamp(min=0)
    return (over * (place != right)).sum(-1)
