"""Cross-entropy of the next token, for language models and sequence-to-sequence models.

Shapes: b batch, n tokens, v vocabulary.
"""

from typing import Any

from torch import Tensor, nn

from mnemic.models import IGNORE, StreamMemory
from mnemic.objectives.answer import cross_entropy
from mnemic.objectives.contract import CarriedState, Loss
from mnemic.recipe import ConfigError


class NextTokenLoss:
    """Cross-entropy of every next token, given the right tokens before it.

    ``smooth`` is the share of each target that is spread over all tokens (label smoothing; Szegedy
    et al. 2016; Vaswani et al. 2017, section 5.4). A network that reads running text with a memory
    gets that of the step before, which is carried.
    """

    def __init__(self, *, label_smoothing: float = 0.0) -> None:
        if not 0 <= label_smoothing < 1:
            raise ConfigError(f"objective.label_smoothing is a share from 0 to below 1, not {label_smoothing}")
        self.smooth = label_smoothing

    def __call__(self, network: nn.Module, batch: Any, carried: CarriedState | None = None) -> Loss:
        inputs = batch.inputs if carried is None else batch.inputs._replace(memory=StreamMemory.from_tensors(carried))
        output = network(inputs)
        logits = output.logits  # b n v
        total, num_targets = cross_entropy(logits, batch.targets)
        if self.smooth:
            total = (1 - self.smooth) * total + self.smooth * uniform_cross_entropy(logits, batch.targets)
        return Loss(total, num_targets, None if output.memory is None else output.memory.to_tensors())


def uniform_cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Sum the cross-entropy against the uniform distribution, where targets are not IGNORE."""
    return -(logits.log_softmax(-1).mean(-1) * (targets != IGNORE)).sum()
