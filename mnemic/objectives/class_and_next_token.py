"""GPT's fine-tuning objective: the class of a text, and its next tokens beside it.

Shapes: w windows, b texts, n tokens, d width, v vocabulary.
"""

from typing import Any

from torch import Tensor, nn

from mnemic.models import IGNORE
from mnemic.models.contract import unwrap_network
from mnemic.objectives.answer import cross_entropy
from mnemic.objectives.contract import CarriedState, Loss, sum_weighted
from mnemic.objectives.pretraining.masked import check_weights
from mnemic.recipe import ConfigError
from mnemic.respond.merge_windows import average_windows


class ClassAndNextTokenLoss:
    """The mean loss of classes, plus ``next_token`` times that of the texts' next tokens.

    Radford et al. 2018, equation 5, where the weight is 0.5. Logits of tokens are the products of
    states and the encoder's word vectors, as there. The encoder is causal; ``classes`` is its
    nearest relative, and ``model.respond.pool = "last"`` reads the state that has seen all tokens.
    """

    replaces = "classes"

    def __init__(self, *, next_token: float = 0.5) -> None:
        self.weights = {"classes": 1.0, "next_token": next_token}
        check_weights(self.weights)

    def __call__(self, network: nn.Module, batch: Any, carried: CarriedState | None = None) -> Loss:
        output = network(batch.inputs)
        logits = average_windows(output.logits, batch.owner, len(batch.targets))
        losses = {
            "classes": Loss(*cross_entropy(logits, batch.targets)),
            "next_token": next_token_loss(unwrap_network(network).encode, output.states, batch.inputs),
        }
        return sum_weighted(losses, self.weights)._replace(carried=carried)


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
