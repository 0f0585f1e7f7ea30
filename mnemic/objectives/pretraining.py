"""BERT's dual objective: masked language modelling and next-sentence prediction.

Shapes: b batch, n tokens, m places asked for, v vocabulary.
"""

from collections.abc import Mapping
from math import ceil, inf, sqrt
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.encode.packed import places_of
from mnemic.models import IGNORE, Windows
from mnemic.objectives.answer import cross_entropy
from mnemic.objectives.contract import Carried, Loss
from mnemic.objectives.masking import MASKINGS, ROLLS, Masking, corrupt
from mnemic.objectives.uniforms import rolls
from mnemic.recipe import ConfigError, build
from mnemic.respond.pretraining import Said

TOKENS: Mapping[str, Any] = {"kind": "tokens"}
DOUBT = 10  # how far the places asked for may exceed their mean, in √mean: there is room for them


class Asked(NamedTuple):
    """What a network reads, and the places that are asked for: nothing is scored anywhere else."""

    inputs: Windows  # whose ``inside`` are the places in the flattened batch, m
    targets: Tensor  # m; IGNORE where there are fewer places than room for them


class PretrainingLoss:
    """``mlm`` · mean masked-token loss + ``nsp`` · mean next-sentence loss (Devlin et al. 2019).

    A weight of 0 leaves its loss out: the network need not say it. Each pair counts by the number
    of tokens that are masked in it on average, so that the sums of parts of a batch, or of many
    processes, are the sum of the whole. Where we differ from BERT: long pairs count more.
    """

    def __init__(
        self, *, mlm: float = 1.0, nsp: float = 0.0, masking: Mapping[str, Any] = TOKENS
    ) -> None:
        self.weights = {"mlm": mlm, "nsp": nsp}
        check_weights(self.weights)
        self.masking = build(MASKINGS, masking)

    def __call__(self, network: nn.Module, batch: Any, carried: Carried | None = None) -> Loss:
        asked = ask(batch, self.masking)
        said = network(asked.inputs).scores
        mlm, nsp = self.weights["mlm"], self.weights["nsp"]
        if not nsp:
            return Loss(mlm * (words := word_loss(said, asked)).total, words.targets, carried)
        each = next_losses(said.follows, batch.follows)  # b
        if not mlm:
            return Loss(nsp * each.sum(), (batch.follows != IGNORE).sum(), carried)
        words = word_loss(said, asked)
        share = self.masking.rate * (~batch.fixed).sum(1)  # b
        return Loss(mlm * words.total + nsp * (share * each).sum(), words.targets, carried)


def ask(batch: Any, masking: Masking) -> Asked:
    """Hide tokens of a batch, by the dice that its keys throw."""
    dice = rolls(batch.keys, batch.tokens.shape[1], ROLLS)  # r b n
    chosen = masking(batch.fixed, batch.starts, dice[0])
    inputs, targets = corrupt(
        batch.tokens, chosen, dice[1:], hidden=batch.hidden, ordinary=batch.ordinary
    )
    if batch.room:
        most = masking.rate * batch.room
        places = places_of(chosen, min(ceil(most + DOUBT * sqrt(most)), batch.room))
    else:
        places = chosen.flatten().nonzero().squeeze(1)
    beyond = torch.cat([targets.flatten(), targets.new_full((1,), IGNORE)])
    windows = Windows(inputs, batch.mask, batch.segments, places, batch.room)
    return Asked(windows, beyond[places])


def word_loss(said: Said, asked: Asked) -> Loss:
    """Masked language modelling, over the places asked for."""
    return Loss(*cross_entropy(said.words.float(), asked.targets))


def next_losses(scores: Tensor | None, follows: Tensor) -> Tensor:
    """Next-sentence prediction: ``scores`` b 2, ``follows`` b → b, 0 where nothing is asked.

    The first score is for a text that follows, as in every published BERT.
    """
    if scores is None:
        raise ConfigError(
            "objective.nsp is above 0, but the network does not say what follows: set "
            "model.respond.pairs=true and a format of pairs, or objective.nsp=0"
        )
    right = (1 - follows).clamp(0, 1)  # of IGNORE any
    lost = -scores.float().log_softmax(-1).gather(-1, right.unsqueeze(-1)).squeeze(-1)
    return lost * (follows != IGNORE)


def check_weights(weights: Mapping[str, float]) -> None:
    for name, weight in weights.items():
        if not 0 <= weight < inf:
            raise ConfigError(f"the weight {name} is a number from 0 on, not {weight}")
    if not any(weights.values()):
        raise ConfigError(f"one of the weights {', '.join(weights)} has to be above 0")
