"""Cross-entropy of the answer, and a cost of every step that a memory takes before it stops.

Shapes: b batch, m questions.
"""

from typing import Any

from torch import nn

from mnemic.models import IGNORE
from mnemic.objectives.answer import cross_entropy
from mnemic.objectives.contract import CarriedState, Loss


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
