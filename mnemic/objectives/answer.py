"""Cross-entropy of the right answer, also with a cost of each step of a memory.

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


class AnswerAndStepsLoss:
    """Cross-entropy of the answer, plus ``cost`` times the expected number of steps.

    For a memory with a learned stop (``Reading.steps``), which would otherwise have no reason to
    stop before its last step: the time penalty of Graves 2016 (arXiv:1603.08983, equation 12). The
    Universal Transformer has a cost of 0.01.

    Where we differ: the number of steps is an expectation, and its gradient is exact.
    """

    def __init__(self, *, cost: float = 0.01) -> None:
        if not cost >= 0:
            raise ValueError(f"the cost of a step is 0 or more, not {cost}")
        self.cost = cost

    def __call__(self, network: nn.Module, batch: Any, carried: CarriedState | None = None) -> Loss:
        output = network(batch.inputs)
        if output.reading.steps is None:
            raise ValueError("answer+steps needs a memory with a learned stop, such as slot-rewriting")
        total, num_targets = cross_entropy(output.logits, batch.answers)
        steps = (output.reading.steps * (batch.answers != IGNORE)).sum()
        return Loss(total + self.cost * steps, num_targets, carried)


def cross_entropy(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return the summed cross-entropy and the number of targets that are not IGNORE.

    ``logits`` b m v, ``targets`` b m.
    """
    valid = targets != IGNORE  # b m
    log_probs = logits.log_softmax(-1).gather(-1, targets.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    return -(log_probs * valid).sum(), valid.sum()
