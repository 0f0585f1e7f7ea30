"""BERT's dual objective: masked language modelling and next-sentence prediction.

Shapes: b batch, n tokens, m places asked for, v vocabulary.
"""

from collections.abc import Mapping
from math import inf
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.network import IGNORE
from mnemic.objectives.answer import cross_entropy
from mnemic.objectives.contract import Carried, Loss
from mnemic.objectives.masking import MASKINGS, ROLLS, corrupt
from mnemic.objectives.rolls import rolls
from mnemic.recipe import ConfigError, build

TOKENS: Mapping[str, Any] = {"kind": "tokens"}


class Asked(NamedTuple):
    """The places that are asked for, so that nothing is scored anywhere else."""

    places: Tensor  # m, in the flattened batch
    targets: Tensor  # m


class PretrainingLoss:
    """``mlm`` · mean masked-token loss + ``nsp`` · mean next-sentence loss (Devlin et al. 2019).

    Calls ``network(tokens, mask, segments=, places=)``, which returns ``words`` (m v), the scores
    at the places alone, and ``follows`` (b 2). A weight of 0 leaves its loss out: such a network
    need not say it.
    """

    def __init__(
        self, *, mlm: float = 1.0, nsp: float = 1.0, masking: Mapping[str, Any] = TOKENS
    ) -> None:
        self.weights = {"mlm": mlm, "nsp": nsp}
        check_weights(self.weights)
        self.masking = build(MASKINGS, masking)

    def __call__(self, network: nn.Module, batch: Any, carried: Carried | None = None) -> Loss:
        return weighted(self.parts(network, batch), self.weights)._replace(carried=carried)

    def parts(self, network: nn.Module, batch: Any) -> dict[str, Loss]:
        """Each loss by its name, for a log and for evaluation."""
        dice = rolls(batch.keys, batch.tokens.shape[1], ROLLS)  # r b n
        chosen = self.masking(batch.fixed, batch.starts, dice[0])
        inputs, targets = corrupt(
            batch.tokens, chosen, dice[1:], hidden=batch.hidden, ordinary=batch.ordinary
        )
        places, words = asked(targets)
        said = network(inputs, batch.mask, segments=batch.segments, places=places)
        losses = {}
        if self.weights["mlm"]:
            losses["mlm"] = Loss(*cross_entropy(said.words, words))
        if self.weights["nsp"]:
            losses["nsp"] = next_loss(said.follows, batch.follows)
        return losses


def next_loss(scores: Tensor, follows: Tensor) -> Loss:
    """Next-sentence prediction: ``scores`` b 2, ``follows`` b.

    The first score is for a text that follows, as in every published BERT.
    """
    return Loss(*cross_entropy(scores, torch.where(follows == IGNORE, IGNORE, 1 - follows)))


def asked(targets: Tensor) -> Asked:
    """Where ``targets`` (b n) ask for something, and for what."""
    flat = targets.flatten()
    places = (flat != IGNORE).nonzero().squeeze(1)
    return Asked(places, flat[places])


def weighted(losses: Mapping[str, Loss], weights: Mapping[str, float]) -> Loss:
    """The sum of mean losses, each times the weight of its name.

    It is told as a sum over the targets of the first loss, so that training, which divides by
    their number, gets the weighted means; over several batches or processes each counts by those
    targets. A loss that asked for nothing adds nothing.
    """
    if unknown := [name for name in losses if name not in weights]:
        raise ValueError(f"no weight for the loss {unknown[0]!r}; weights: {sorted(weights)}")
    first = next(iter(losses.values()))
    targets = first.targets.clamp(min=1)
    means = [
        weights[name] * loss.total / loss.targets.clamp(min=1) for name, loss in losses.items()
    ]
    return Loss(sum(means[1:], means[0]) * targets, targets)


def check_weights(weights: Mapping[str, float]) -> None:
    for name, weight in weights.items():
        if not 0 <= weight < inf:
            raise ConfigError(f"the weight {name} is a number from 0 on, not {weight}")
    if not any(weights.values()):
        raise ConfigError(f"one of the weights {', '.join(weights)} has to be above 0")
