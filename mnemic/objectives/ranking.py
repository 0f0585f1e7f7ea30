"""Margin ranking loss of supporting facts and answers (strong supervision).

Shapes: b batch, m questions, f facts, k hops, h heads, s slots, c candidates, v vocabulary.
"""

from typing import Any, Literal

import torch
from torch import Tensor, nn

from mnemic.memory.append import find_slots
from mnemic.models import IGNORE
from mnemic.objectives.contract import Loss


class RankingLoss:
    """Margin ranking loss of each hop's fact and of the answer against all wrong ones.

    ``Σ max(0, γ − s(right) + s(wrong))`` over all wrong facts of each hop and all wrong words:
    equations 6 to 8 of Weston et al. 2015a. The reading is teacher-forced: each hop continues from
    the right fact. If a memory compares pairs, its heads are the two sums of the paper's loss for
    write times. If a memory may read nothing, that is one more candidate, and the right one at the
    first hop after the last fact; otherwise hops after the last fact should find that fact again.
    If a memory learns the salience of sentences, facts should have more than all others; if a
    network learns to segment its input, that loss is added. ``order``: the facts in the order of
    the data, or in the order of the story.
    """

    def __init__(self, *, margin: float = 0.1, facts: float = 1.0, order: Literal["given", "time"] = "given") -> None:
        self.margin, self.facts, self.order = margin, facts, order

    def __call__(self, network: nn.Module, batch: Any, carried: Any = None) -> Loss:
        chain = (batch.chain if self.order == "given" else sort_by_time(batch.chain)).unsqueeze(1)
        output = network(batch.inputs, chain)
        valid = batch.answers != IGNORE  # b m
        answer_losses = margin_loss(output.logits, batch.answers.clamp(min=0), self.margin)  # b m
        reading = output.reading
        scores = reading.scores  # b k h m s
        fact_slots = find_slots(chain, output.written.weights)  # b 1 f
        hop_slots = fact_slots[..., : scores.shape[1]].transpose(1, 2)  # b k m
        hop_slots = nn.functional.pad(hop_slots, (0, 0, 0, scores.shape[1] - hop_slots.shape[1]), value=IGNORE)
        has_target = hop_slots >= 0
        if reading.nothing is not None:
            scores = torch.cat([scores, reading.nothing.unsqueeze(-1)], -1)
            hop_slots = torch.where(has_target, hop_slots, scores.shape[-1] - 1)
            has_target = torch.cat([torch.ones_like(has_target[:, :1]), has_target[:, :-1]], 1)
        else:
            hop_slots = repeat_last_slot(hop_slots)
            has_target = hop_slots >= 0
        fact_losses = margin_loss(scores, hop_slots.clamp(min=0).unsqueeze(2), self.margin).sum(2) * has_target
        total = (answer_losses * valid).sum() + self.facts * fact_losses.sum()
        if reading.salience is not None:
            total = total + self.facts * salience_loss(reading.salience, fact_slots, self.margin).sum()
        if output.segmentation_loss is not None:
            total = total + output.segmentation_loss.sum()
        return Loss(total, valid.sum(), carried)


def salience_loss(salience: Tensor, fact_slots: Tensor, margin: float) -> Tensor:
    """Sum the margin violations of facts against slots of other sentences: b.

    ``salience`` b s, ``fact_slots`` b 1 f.
    """
    slots = torch.arange(salience.shape[-1], device=salience.device)
    is_fact = (fact_slots.unsqueeze(-1) == slots).any(2).mT  # b s 1
    violations = (margin - salience.unsqueeze(2) + salience.unsqueeze(1)).clamp(min=0)  # b s s
    return (violations * (is_fact & ~is_fact.mT)).sum((1, 2))


def sort_by_time(chain: Tensor) -> Tensor:
    """Sort the facts of each question (b f) by position, IGNORE last."""
    last = torch.iinfo(chain.dtype).max
    ordered = chain.masked_fill(chain < 0, last).sort(-1).values
    return ordered.masked_fill(ordered == last, IGNORE)


def repeat_last_slot(hop_slots: Tensor) -> Tensor:
    """Fill hops without a fact (b k m) with the slot of the last fact."""
    filled = [hop_slots[:, 0]]
    for slots in hop_slots[:, 1:].unbind(1):
        filled.append(torch.where(slots >= 0, slots, filled[-1]))
    return torch.stack(filled, 1)


def margin_loss(scores: Tensor, target: Tensor, margin: float) -> Tensor:
    """Sum the margin violations of the right candidate against all others: … c, … → …."""
    target = target.expand(scores.shape[:-1]).unsqueeze(-1)
    columns = torch.arange(scores.shape[-1], device=scores.device)
    violations = (margin - scores.gather(-1, target) + scores).clamp(min=0)
    return (violations * (columns != target)).sum(-1)
