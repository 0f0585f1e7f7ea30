"""Losses of text classification and regression, on the mean over the windows of a text.

Shapes: w windows, b texts, c classes.
"""

from typing import Any

from torch import Tensor, nn

from mnemic.models import IGNORE
from mnemic.objectives.answer import cross_entropy
from mnemic.objectives.contract import CarriedState, Loss
from mnemic.respond.merge_windows import average_windows


class ClassLoss:
    """Cross-entropy of the right class, from the mean of the windows' logits."""

    def __call__(self, network: nn.Module, batch: Any, carried: CarriedState | None = None) -> Loss:
        logits = average_windows(network(batch.inputs).logits, batch.owner, len(batch.targets))
        return Loss(*cross_entropy(logits, batch.targets), carried)


class NumberLoss:
    """Squared error of a number, predicted as the mean of the windows' outputs."""

    def __call__(self, network: nn.Module, batch: Any, carried: CarriedState | None = None) -> Loss:
        predictions = average_windows(network(batch.inputs).logits, batch.owner, len(batch.targets))
        return Loss(*squared_error(predictions, batch.targets), carried)


def squared_error(predictions: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return the summed squared error and the number of targets that are not IGNORE.

    ``predictions`` b 1, ``targets`` b.
    """
    valid = targets != IGNORE
    return ((predictions.squeeze(-1) - targets).square() * valid).sum(), valid.sum()
