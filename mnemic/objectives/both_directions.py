"""Cross-entropy of the next and of the previous token, for two language models at once.

Shapes: b batch, n tokens, v vocabulary.
"""

from typing import Any

import torch
from torch import Tensor, nn

from mnemic.models import IGNORE, WindowBatch
from mnemic.objectives.answer import cross_entropy
from mnemic.objectives.contract import CarriedState, Loss


class BothDirectionsLoss:
    """Sum the cross-entropies of next and of previous tokens (Peters et al. 2018, section 3.1).

    The network scores both, b n 2 v. A token before the first of a span is not asked.
    """

    replaces = "next-token"

    def __call__(self, network: nn.Module, batch: Any, carried: CarriedState | None = None) -> Loss:
        logits = network(batch.inputs).logits
        targets = torch.stack([batch.targets, find_previous(batch.inputs)], -1)  # b n 2
        return Loss(*cross_entropy(logits, targets), carried)


def find_previous(inputs: WindowBatch) -> Tensor:
    """Return the token before each token, b n; IGNORE for the first, and for padding."""
    previous = nn.functional.pad(inputs.tokens[:, :-1], (1, 0), value=IGNORE)
    return previous.masked_fill(~inputs.mask, IGNORE)
