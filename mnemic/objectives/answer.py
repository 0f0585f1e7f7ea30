"""Learn from the right answer alone.

Shapes: b batch, m questions, v vocabulary.
"""

from typing import Any

from torch import Tensor, nn

from mnemic.models import IGNORE
from mnemic.objectives.contract import Carried, Loss


class AnswerLoss:
    """Cross-entropy of the answer word; targets equal to IGNORE are not asked for."""

    def __call__(self, network: nn.Module, batch: Any, carried: Carried | None = None) -> Loss:
        total, targets = cross_entropy(network(batch.inputs).scores, batch.answers)
        return Loss(total, targets, carried)


def cross_entropy(scores: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """The summed cross-entropy and the number of targets: ``scores`` b m v, ``targets`` b m."""
    asked = targets != IGNORE  # b m
    chosen = scores.log_softmax(-1).gather(-1, targets.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    return -(chosen * asked).sum(), asked.sum()
