"""Learn where an answer begins and ends, or that a window holds none.

Shapes: w windows, n tokens.
"""

from typing import Any

from torch import Tensor, nn

from mnemic.objectives.answer import cross_entropy
from mnemic.objectives.contract import Carried, Loss


class SpanLoss:
    """The mean of two cross-entropies: of the first token, of the last (Devlin et al. 2019, 4.2).

    Every window is asked by itself: one that does not hold the whole answer should say "none".
    """

    def __call__(self, network: nn.Module, batch: Any, carried: Carried | None = None) -> Loss:
        return Loss(*span_loss(network(batch.inputs).scores, batch.targets), carried)


def span_loss(scores: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Summed loss and number of windows: ``scores`` w 2 1+n, ``targets`` w 2, columns of them."""
    total, ends = cross_entropy(scores, targets)
    return total / 2, ends / 2
