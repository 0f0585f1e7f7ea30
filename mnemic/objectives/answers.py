"""Learn from a set of right answers, ranked among candidates.

Shapes: b batch, m questions, a answers of the question that has most, c candidates.
"""

from typing import Any

import torch
from torch import Tensor, nn

from mnemic.memory.memn2n import HIDDEN
from mnemic.models import IGNORE
from mnemic.objectives.contract import Loss


class AnswersLoss:
    """``-log Σ p(right)``: any of the right answers will do, and none is a wrong one of the others.

    p is a softmax over candidates: what the batch's memories hold, its right answers, and about
    ``negatives`` other entities (1000 in the authors' code): evenly spread ones, others in each
    batch, and no dice. As ``answer`` where one answer is right and every word is a candidate.
    """

    def __init__(self, *, negatives: int = 1000) -> None:
        if negatives < 0:
            raise ValueError(f"answers takes negatives ≥ 0, not {negatives}")
        self.negatives = negatives

    def __call__(self, network: nn.Module, batch: Any, carried: Any = None) -> Loss:
        others = spread(batch.entities, self.negatives, batch.candidates.sum())
        candidates = torch.cat([batch.candidates, others]).unique()
        scores = network(batch.inputs._replace(candidates=candidates)).scores
        total, targets = rank(scores, batch.answers, candidates)
        return Loss(total, targets, carried)


def spread(ids: Tensor, count: int, start: Tensor) -> Tensor:
    """About ``count`` of the ids, evenly spread, the first one chosen by the number ``start``."""
    if not count:
        return ids[:0]
    step = -(-len(ids) // count)
    return ids[int(start % step) :: step]


def rank(scores: Tensor, answers: Tensor, candidates: Tensor) -> tuple[Tensor, Tensor]:
    """Summed loss and number of targets: ``scores`` b m c, ``answers`` b m a, ``candidates`` c.

    ``candidates`` are in order, and all right answers are among them. A question without a known
    right answer (all IGNORE) is not asked.
    """
    here = answers != IGNORE  # b m a
    asked = here.any(-1)  # b m
    places = torch.searchsorted(candidates, answers.clamp(min=0)).clamp(max=len(candidates) - 1)
    right = scores.gather(-1, places).masked_fill(~here, HIDDEN).logsumexp(-1)
    return ((scores.logsumexp(-1) - right) * asked).sum(), asked.sum()
