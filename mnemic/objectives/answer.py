"""Cross-entropy of the right answer.

Shapes: b batch, m questions, v vocabulary.
"""

from typing import Any

from torch import Tensor, nn

from mnemic.models import IGNORE
from mnemic.objectives.contract import CarriedState, Loss


class AnswerLoss:
    """Cross-entropy of the answer; targets equal to IGNORE are left out."""

    def __call__(self, network: nn.Module, batch: Any, carried: CarriedState | None = None) -> Loss:
        return Loss(*cross_entropy(network(batch.inputs).logits, batch.answers), carried)


def cross_entropy(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return the summed cross-entropy and the number of targets that are not IGNORE.

    ``logits`` b m v, ``targets`` b m.
    """
    valid = targets != IGNORE  # b m
    log_probs = logits.log_softmax(-1).gather(-1, targets.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    return -(log_probs * valid).sum(), valid.sum()
