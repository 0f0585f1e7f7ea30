"""Loss of extractive question answering: where an answer starts and ends in a window.

Shapes: w windows, n tokens.
"""

from typing import Any

from torch import Tensor, nn

from mnemic.objectives.answer import cross_entropy
from mnemic.objectives.contract import CarriedState, Loss


class SpanLoss:
    """Mean cross-entropy of the answer's first and last token (Devlin et al. 2019, section 4.2).

    Each window counts separately: one without the whole answer should predict "no answer".
    """

    def __call__(self, network: nn.Module, batch: Any, carried: CarriedState | None = None) -> Loss:
        return Loss(*span_loss(network(batch.inputs).logits, batch.targets), carried)


def span_loss(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return the summed span loss and the number of windows.

    ``logits`` w 2 1+n (column 0: no answer), ``targets`` w 2, indices of columns.
    """
    total, num_ends = cross_entropy(logits, targets)
    return total / 2, num_ends / 2
