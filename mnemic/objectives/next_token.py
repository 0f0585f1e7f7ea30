"""Learn the next word, all words before it given: of a text, or of an answer.

Shapes: b batch, n tokens, v vocabulary.
"""

from typing import Any

from torch import Tensor, nn

from mnemic.models import IGNORE
from mnemic.objectives.answer import cross_entropy
from mnemic.objectives.contract import Carried, Loss
from mnemic.recipe import ConfigError


class NextLoss:
    """Cross-entropy of every next word: a language model's loss, or teacher forcing's.

    ``smooth`` is the share of each target that is spread over all words (label smoothing; Szegedy
    et al. 2016; Vaswani et al. 2017, section 5.4).
    """

    def __init__(self, *, smooth: float = 0.0) -> None:
        if not 0 <= smooth < 1:
            raise ConfigError(f"objective.smooth is a share from 0 to below 1, not {smooth}")
        self.smooth = smooth

    def __call__(self, network: nn.Module, batch: Any, carried: Carried | None = None) -> Loss:
        scores = network(batch.inputs).scores  # b n v
        total, targets = cross_entropy(scores, batch.targets)
        if self.smooth:
            total = (1 - self.smooth) * total + self.smooth * spread(scores, batch.targets)
        return Loss(total, targets, carried)


def spread(scores: Tensor, targets: Tensor) -> Tensor:
    """The summed cross-entropy against all words alike, where something is asked for."""
    return -(scores.log_softmax(-1).mean(-1) * (targets != IGNORE)).sum()
