"""Learn from the right answer and from the sentences that prove it: strong supervision.

Each hop of the reading is told which sentence to find: hop i the i-th fact of the proof, the last
hop all facts from there on. A fact that the memory has forgotten is asked of nobody.

Shapes: b batch, f facts, n inputs, m questions, k hops, h heads, s slots.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.objectives.answer import cross_entropy
from mnemic.objectives.contract import Loss

Missed = Callable[[Tensor, Tensor], Tensor]  # scores, gold (b k s each) → how wrong, b


class AnswerAndFacts:
    """The answer's cross-entropy, and every hop's: its facts against all slots of one softmax.

    A hop without a fact is not asked. ``answer`` and ``facts`` weigh the two: J = α E(gates) +
    β E(answers) of DMN (Kumar et al. 2016), who train the gates alone at first, as a phase with
    ``answer = 0`` does. Scores need not be a softmax's elsewhere: DMN opens gates with them.
    """

    def __init__(self, *, answer: float = 1.0, facts: float = 1.0) -> None:
        self.answer, self.facts = answer, facts

    def __call__(self, network: nn.Module, batch: Any, carried: Any = None) -> Loss:
        total, targets = answer_and_hops(network, batch, missed_choice, self.answer, self.facts)
        return Loss(total, targets, carried)


class AnswerAndGates:
    """As ``answer+facts``, but each slot has a gate of its own: open for a fact, else shut.

    A hop without a fact should read nothing. A gate that has read only what came before its
    sentence cannot know that a later one is the better fact, so that this teaches DMN less well.
    """

    def __init__(self, *, answer: float = 1.0, facts: float = 1.0) -> None:
        self.answer, self.facts = answer, facts

    def __call__(self, network: nn.Module, batch: Any, carried: Any = None) -> Loss:
        total, targets = answer_and_hops(network, batch, missed_gates, self.answer, self.facts)
        return Loss(total, targets, carried)


def answer_and_hops(
    network: nn.Module, batch: Any, missed: Missed, answer: float, facts: float
) -> tuple[Tensor, Tensor]:
    """The weighted sum of both losses, and how many questions were asked."""
    output = network(batch.inputs)
    total, targets = cross_entropy(output.scores, batch.answers)
    scores = output.reading.scores[:, :, 0, 0]  # b k s: one head, one question
    gold = gold_slots(batch.chain, output.written.weights, hops=scores.shape[1])
    return answer * total + facts * missed(scores, gold).sum(), targets


def gold_slots(chain: Tensor, put: Tensor, *, hops: int) -> Tensor:
    """Which slots each hop should find (b k s, 1 or 0), from the facts (b f) and what went where.

    ``put`` (b n s) is ``Written.weights``.
    """
    inputs = torch.arange(put.shape[1], device=put.device)
    facts = (chain.unsqueeze(2) == inputs).to(put.dtype) @ put  # b f s
    first, rest = facts[:, : hops - 1], facts[:, hops - 1 :].sum(1, keepdim=True)
    none = facts.new_zeros(facts.shape[0], hops - 1 - first.shape[1], facts.shape[2])
    return torch.cat([first, none, rest], 1)


def missed_choice(scores: Tensor, gold: Tensor) -> Tensor:
    """Cross-entropy of each hop's facts, equally likely, under the softmax of its scores: b."""
    share = gold / gold.sum(-1, keepdim=True).clamp(min=1)
    return -(share * scores.log_softmax(-1)).sum((1, 2))


def missed_gates(scores: Tensor, gold: Tensor) -> Tensor:
    """Cross-entropy of every gate by itself, summed over hops and slots: b."""
    loss = nn.functional.binary_cross_entropy_with_logits(scores, gold, reduction="none")
    return loss.sum((1, 2))
