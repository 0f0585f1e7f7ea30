"""GPT's pre-training objective: the next token of each sequence of a corpus.

Shapes: b batch, n tokens.
"""

from typing import Any

from torch import nn

from mnemic.data.language_modeling.batches import TokenBatch
from mnemic.models import IGNORE, WindowBatch
from mnemic.objectives.contract import CarriedState, Loss
from mnemic.objectives.next_token import NextTokenLoss


class NextSubwordLoss:
    """Cross-entropy of every next token of a sequence, [SEP] included (Radford et al. 2018).

    As ``next-token``, for sequences of a corpus, which other objectives mask: no token is masked
    here. The network is causal.
    """

    replaces = "masked"

    def __init__(self, *, label_smoothing: float = 0.0) -> None:
        self.loss = NextTokenLoss(label_smoothing=label_smoothing)

    def __call__(self, network: nn.Module, batch: Any, carried: CarriedState | None = None) -> Loss:
        return self.loss(network, shift_tokens(batch), carried)


def shift_tokens(batch: Any) -> TokenBatch:
    """Return a batch of sequences with the next token of each token as its target."""
    targets = batch.tokens.masked_fill(~batch.mask, IGNORE).roll(-1, 1)
    targets[:, -1] = IGNORE
    inputs = WindowBatch(batch.tokens, batch.mask, batch.segments, batch.mask, batch.max_tokens)
    return TokenBatch(inputs, targets)
