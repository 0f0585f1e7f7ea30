"""XLNet's pre-training head: words scored by the encoder's word vectors alone.

Shapes: b batch, n tokens, m asked positions, d width, v vocabulary.
"""

from typing import Any

import torch
from torch import Tensor, nn

from mnemic.encode.stacks import FactorizationOrder
from mnemic.memory import Reading
from mnemic.respond.contract import Response
from mnemic.respond.next_token import check_tied_width
from mnemic.respond.pretraining.masked import PretrainingLogits


class PermutedHead(Response):
    """Compute ``W s + b`` at asked positions, with the encoder's word vectors as W (XLNet).

    Yang et al. 2019, equation 4. The states are those of a ``two-stream`` stack's query stream.
    """

    source = "text"
    replaces = "masked"
    corruption = "permuted"

    def __init__(self, width: int, vocab: int, words: nn.Parameter | None = None) -> None:
        super().__init__()
        check_tied_width(words, width, tied=True)
        self.words = nn.Parameter(torch.randn(vocab, width) * width**-0.5) if words is None else words
        self.bias = nn.Parameter(torch.zeros(vocab))

    def forward(self, query: Tensor | None, reading: Reading | None, states: Tensor, mask: Tensor) -> PretrainingLogits:
        """Score the words at positions in the flattened batch.

        ``states`` b n d, ``mask`` m → m v.
        """
        flat = states.flatten(0, 1)
        asked_states = flat.index_select(0, mask.clamp(max=len(flat) - 1))  # m d
        return PretrainingLogits(nn.functional.linear(asked_states, self.words, self.bias), None)

    def dummy_inputs(self, tokens: Tensor) -> dict[str, Any]:
        """Ask for all tokens in the order of the text."""
        ranks = torch.arange(tokens.shape[1]).expand_as(tokens)
        return {"answer_mask": torch.arange(tokens.numel()), "order": FactorizationOrder(ranks, ranks)}
