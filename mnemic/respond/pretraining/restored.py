"""Head of ELECTRA's comparisons: the word behind each token, and whether it is the token.

Shapes: b batch, n tokens, m positions, d width, v vocabulary.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.encode.stacks.block import Activation
from mnemic.memory import Reading
from mnemic.respond.contract import Response
from mnemic.respond.vocabulary import VocabularyHead


class RestoredLogits(NamedTuple):
    """What a network says of tokens that may have been replaced."""

    word_logits: Tensor  # m v, of the original words
    copy_logits: Tensor  # m, that the token is the original


class RestoredTokenHead(Response):
    """Score the original word at some positions, and whether the token is it.

    Clark et al. 2020, section 3.4: the networks that ELECTRA is compared with. ``words`` are the
    encoder's word vectors, shared with the head.
    """

    source = "text"
    replaces = "masked"
    corpus_metrics = "restored"

    def __init__(
        self,
        width: int,
        vocab: int,
        words: nn.Parameter | None = None,
        *,
        activation: Activation = "gelu",
        epsilon: float = 1e-12,
    ) -> None:
        super().__init__()
        self.vocabulary = VocabularyHead(width, vocab, words=words, activation=activation, epsilon=epsilon)
        self.copy = nn.Linear(width, 1)

    def forward(self, query: Tensor | None, reading: Reading | None, states: Tensor, mask: Tensor) -> RestoredLogits:
        """Score positions: where ``mask`` b n is True, or its indices m."""
        positions = mask if mask.dim() == 1 else mask.flatten().nonzero().squeeze(1)
        flat = states.flatten(0, 1)
        copy_logits = self.copy(flat.index_select(0, positions.clamp(max=len(flat) - 1))).squeeze(-1)
        return RestoredLogits(self.vocabulary(states, positions), copy_logits)

    def dummy_inputs(self, tokens: Tensor) -> dict[str, Any]:
        """Return indices of all positions, whose number needs no look at values."""
        return {"answer_mask": torch.arange(tokens.numel())}
