"""Marginal likelihood of several right answers among sampled candidates.

Shapes: b batch, m questions, a answers (of the question with the most), c candidates.
"""

from typing import Any

import torch
from torch import Tensor, nn

from mnemic.memory.contract import MASKED_SCORE
from mnemic.models import IGNORE
from mnemic.objectives.contract import Loss


class AnswersLoss:
    """Negative log-likelihood of any right answer: ``-log Σ p(right)``.

    p is a softmax over candidates: the entities in the batch's memories, its right answers, and
    about ``negatives`` other entities (1000 in the authors' code). These are evenly spaced,
    different in each batch, and not random. With one right answer and all words as candidates it
    equals ``answer``.
    """

    def __init__(self, *, negatives: int = 1000) -> None:
        if negatives < 0:
            raise ValueError(f"answers takes negatives ≥ 0, not {negatives}")
        self.negatives = negatives

    def __call__(self, network: nn.Module, batch: Any, carried: Any = None) -> Loss:
        negatives = sample_evenly(batch.entities, self.negatives, batch.candidates.sum())
        candidates = torch.cat([batch.candidates, negatives]).unique()
        logits = network(batch.inputs._replace(candidates=candidates)).logits
        return Loss(*marginal_nll(logits, batch.answers, candidates), carried)


def sample_evenly(ids: Tensor, count: int, start: Tensor) -> Tensor:
    """Sample about ``count`` evenly spaced ids; ``start`` decides the first one."""
    if not count:
        return ids[:0]
    step = -(-len(ids) // count)
    return ids[int(start % step) :: step]


def marginal_nll(logits: Tensor, answers: Tensor, candidates: Tensor) -> tuple[Tensor, Tensor]:
    """Return the summed ``-log Σ p(right)`` and the number of questions that have an answer.

    ``logits`` b m c, ``answers`` b m a, ``candidates`` c. ``candidates`` are sorted and contain all
    right answers. A question without a known right answer (all IGNORE) is left out.
    """
    valid = answers != IGNORE  # b m a
    has_answer = valid.any(-1)  # b m
    columns = torch.searchsorted(candidates, answers.clamp(min=0)).clamp(max=len(candidates) - 1)
    answer_logsumexp = logits.gather(-1, columns).masked_fill(~valid, MASKED_SCORE).logsumexp(-1)
    return ((logits.logsumexp(-1) - answer_logsumexp) * has_answer).sum(), has_answer.sum()
