"""Losses of the answer and of the supporting facts (strong supervision).

The target of hop i is the i-th supporting fact, that of the last hop all remaining facts. A fact
that the memory no longer holds is left out.

Shapes: b batch, f facts, n inputs, m questions, k hops, h heads, s slots.
"""

from typing import Any

import torch
from torch import Tensor, nn

from mnemic.objectives.answer import cross_entropy
from mnemic.objectives.contract import Loss


def compute_gold_slots(chain: Tensor, write_weights: Tensor, *, num_hops: int) -> Tensor:
    """Compute the slots that each hop should find: b k s, 1 or 0.

    ``chain`` (b f) holds the positions of the facts; ``write_weights`` (b n s) is
    ``Written.weights``, how much of each input each slot took.
    """
    positions = torch.arange(write_weights.shape[1], device=write_weights.device)
    facts = (chain.unsqueeze(2) == positions).to(write_weights.dtype) @ write_weights  # b f s
    first, rest = facts[:, : num_hops - 1], facts[:, num_hops - 1 :].sum(1, keepdim=True)
    padding = facts.new_zeros(facts.shape[0], num_hops - 1 - first.shape[1], facts.shape[2])
    return torch.cat([first, padding, rest], 1)


def softmax_hop_loss(scores: Tensor, gold: Tensor) -> Tensor:
    """Cross-entropy of each hop's facts under a softmax of its scores: b.

    The facts of a hop are equally likely.
    """
    targets = gold / gold.sum(-1, keepdim=True).clamp(min=1)
    return -(targets * scores.log_softmax(-1)).sum((1, 2))


def gate_hop_loss(scores: Tensor, gold: Tensor) -> Tensor:
    """Binary cross-entropy of each gate, summed over hops and slots: b."""
    losses = nn.functional.binary_cross_entropy_with_logits(scores, gold, reduction="none")
    return losses.sum((1, 2))


class AnswerAndFactsLoss:
    """Cross-entropy of the answer, plus that of each hop's facts under a softmax over slots.

    A hop without a fact is left out. ``answer`` and ``facts`` are the weights of the two: J =
    α E(gates) + β E(answers) of DMN (Kumar et al. 2016), who train the gates alone at first, as a
    phase with ``answer = 0`` does. The network itself need not use a softmax of the scores: DMN
    opens gates with them.
    """

    hop_loss = staticmethod(softmax_hop_loss)

    def __init__(self, *, answer: float = 1.0, facts: float = 1.0) -> None:
        self.answer, self.facts = answer, facts

    def __call__(self, network: nn.Module, batch: Any, carried: Any = None) -> Loss:
        output = network(batch.inputs)
        total, num_targets = cross_entropy(output.logits, batch.answers)
        scores = output.reading.scores[:, :, 0, 0]  # b k s: one head, one question
        gold = compute_gold_slots(batch.chain, output.written.weights, num_hops=scores.shape[1])
        return Loss(self.answer * total + self.facts * self.hop_loss(scores, gold).sum(), num_targets, carried)


class AnswerAndGatesLoss(AnswerAndFactsLoss):
    """Cross-entropy of the answer, plus the binary cross-entropy of one gate per slot.

    A gate should be open for a fact and closed otherwise; a hop without a fact should read nothing.
    A gate has only read the sentences before it and cannot know that a later one is the better
    fact, so this trains DMN less well than ``answer+facts``.
    """

    hop_loss = staticmethod(gate_hop_loss)
