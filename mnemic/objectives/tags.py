"""Learn the tag of every word.

Shapes: w windows, n tokens, c tags.
"""

from typing import Any

from torch import nn

from mnemic.objectives.answer import cross_entropy
from mnemic.objectives.contract import Carried, Loss


class TagLoss:
    """Cross-entropy of the tag of each word's first token, in the window that owns the token."""

    def __call__(self, network: nn.Module, batch: Any, carried: Carried | None = None) -> Loss:
        return Loss(*cross_entropy(network(batch.inputs).scores, batch.targets), carried)
