"""Loss of tagging every word.

Shapes: w windows, n tokens, c tags.
"""

from typing import Any

from torch import nn

from mnemic.objectives.answer import cross_entropy
from mnemic.objectives.contract import CarriedState, Loss


class TagLoss:
    """Cross-entropy of each word's tag at its first token.

    A token in several windows counts in one of them.
    """

    def __call__(self, network: nn.Module, batch: Any, carried: CarriedState | None = None) -> Loss:
        return Loss(*cross_entropy(network(batch.inputs).logits, batch.targets), carried)
