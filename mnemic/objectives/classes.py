"""Learn the class of a text, or its number; windows of one text answer together.

Shapes: w windows, b texts, c classes.
"""

from typing import Any

from torch import Tensor, nn

from mnemic.models import IGNORE
from mnemic.objectives.answer import cross_entropy
from mnemic.objectives.contract import Carried, Loss
from mnemic.respond.merge_windows import mean_windows


class ClassLoss:
    """Cross-entropy of the right class under the mean of the windows' scores."""

    def __call__(self, network: nn.Module, batch: Any, carried: Carried | None = None) -> Loss:
        scores = mean_windows(network(batch.inputs).scores, batch.owner, len(batch.targets))
        return Loss(*cross_entropy(scores, batch.targets), carried)


class NumberLoss:
    """Squared error of the mean of the windows' numbers."""

    def __call__(self, network: nn.Module, batch: Any, carried: Carried | None = None) -> Loss:
        scores = mean_windows(network(batch.inputs).scores, batch.owner, len(batch.targets))
        return Loss(*squared_error(scores, batch.targets), carried)


def squared_error(scores: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """The summed square of the differences and their number: ``scores`` b 1, ``targets`` b."""
    asked = targets != IGNORE
    return ((scores.squeeze(-1) - targets).square() * asked).sum(), asked.sum()
