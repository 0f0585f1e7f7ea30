"""Losses of fine-tuning on texts: classes, numbers, spans and tags.

Shapes: w windows, b texts, c classes or tags, n tokens.
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


class SpanLoss:
    """Mean cross-entropy of the answer's first and last token (Devlin et al. 2019, section 4.2).

    Each window counts separately: one without the whole answer should predict "no answer".
    """

    def __call__(self, network: nn.Module, batch: Any, carried: CarriedState | None = None) -> Loss:
        return Loss(*span_loss(network(batch.inputs).logits, batch.targets), carried)


class TagLoss:
    """Cross-entropy of each word's tag at its first token.

    A token in several windows counts in one of them.
    """

    def __call__(self, network: nn.Module, batch: Any, carried: CarriedState | None = None) -> Loss:
        return Loss(*cross_entropy(network(batch.inputs).logits, batch.targets), carried)


def squared_error(predictions: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return the summed squared error and the number of targets that are not IGNORE.

    ``predictions`` b 1, ``targets`` b.
    """
    valid = targets != IGNORE
    return ((predictions.squeeze(-1) - targets).square() * valid).sum(), valid.sum()


def span_loss(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return the summed span loss and the number of windows.

    ``logits`` w 2 1+n (column 0: no answer), ``targets`` w 2, indices of columns.
    """
    total, num_ends = cross_entropy(logits, targets)
    return total / 2, num_ends / 2
