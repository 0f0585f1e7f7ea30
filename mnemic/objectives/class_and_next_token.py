"""GPT's fine-tuning objective: the class of a text, and its next tokens beside it.

Shapes: w windows, b texts, n tokens, d width, v vocabulary.
"""

from math import inf
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.models import IGNORE
from mnemic.models.contract import unwrap_network
from mnemic.objectives.answer import cross_entropy
from mnemic.objectives.contract import CarriedState, Loss, sum_weighted
from mnemic.objectives.pretraining.masked import check_weights
from mnemic.recipe import ConfigError
from mnemic.respond.merge_windows import average_windows

CALLS = "half_life.calls"  # the name of the carried counter: one call per part of a batch


class ClassAndNextTokenLoss:
    """The mean loss of classes, plus ``next_token`` times that of the texts' next tokens.

    Radford et al. 2018, equation 5, where the weight is 0.5. Logits of tokens are the products of
    states and the encoder's word vectors, as there. The encoder is causal; ``classes`` is its
    nearest relative, and ``model.respond.pool = "last"`` reads the state that has seen all tokens.
    ``next_token`` halves every ``half_life`` steps, so that classes win in the end (SiATL,
    Chronopoulou et al. 2019, arXiv:1902.10547); 0: it stays.
    """

    replaces = "classes"

    def __init__(self, *, next_token: float = 0.5, half_life: float = 0.0, shards: int = 1) -> None:
        self.weights = {"classes": 1.0, "next_token": next_token}
        check_weights(self.weights)
        if not 0 <= half_life < inf:
            raise ConfigError(f"objective.half_life is a number of steps from 0 on, not {half_life}")
        self.half_life, self.num_shards = half_life, shards

    def __call__(self, network: nn.Module, batch: Any, carried: CarriedState | None = None) -> Loss:
        output = network(batch.inputs)
        logits = average_windows(output.logits, batch.owner, len(batch.targets))
        losses = {
            "classes": Loss(*cross_entropy(logits, batch.targets)),
            "next_token": next_token_loss(unwrap_network(network).encode, output.states, batch.inputs),
        }
        if not self.half_life:
            return sum_weighted(losses, self.weights)._replace(carried=carried)
        num_calls = int(carried[CALLS]) if carried else 0
        share = 0.5 ** (num_calls // self.num_shards / self.half_life)
        weights = self.weights | {"next_token": share * self.weights["next_token"]}
        return sum_weighted(losses, weights)._replace(carried={CALLS: torch.tensor(num_calls + 1)})


def next_token_loss(encode: Any, states: Tensor, inputs: Any) -> Loss:
    """Cross-entropy of the token after each state (w n d), by the encoder's word vectors."""
    words = encode.embeddings.tokens  # v d
    if not encode.is_causal or words.shape[1] != states.shape[-1]:
        raise ConfigError(
            "classes+next-token asks for tokens that a causal encoder has not read, by its word vectors: set "
            "model.encode.kind=causal, with embeddings of the full width"
        )
    targets = inputs.tokens.masked_fill(~inputs.mask, IGNORE)[:, 1:]
    logits = nn.functional.linear(states[:, :-1], words)
    return Loss(*cross_entropy(logits.float(), targets))
