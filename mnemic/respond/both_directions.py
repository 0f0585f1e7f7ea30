"""Language-model head of two directions: the next and the previous token.

Shapes: b batch, n tokens, d width, c = d / 2 width of one direction, v vocabulary.
"""

import torch
from torch import Tensor, nn

from mnemic.recipe import ConfigError
from mnemic.respond.contract import Response
from mnemic.respond.next_token import check_tied_width


class BothDirectionsHead(Response):
    """Compute ``W s + b`` of the two halves of every state (ELMo).

    Peters et al. 2018, section 3.1. The first half, which read left to right, scores the next
    token, the second half the one before; both with the same W and b. ``tied`` uses the encoder's
    word vectors as W. ``dropout`` is applied to the states.
    """

    source = "text"
    replaces = "next-token"
    needs_directions = True

    def __init__(
        self, width: int, vocab: int, words: nn.Parameter | None = None, *, tied: bool = True, dropout: float = 0.0
    ) -> None:
        super().__init__()
        if width % 2:
            raise ConfigError(f"two directions halve the width; model.width is an even number, not {width}")
        check_tied_width(words, width // 2, tied)
        output_table = nn.Parameter(torch.randn(vocab, width // 2) * (width // 2) ** -0.5)
        self.words = words if tied and words is not None else output_table
        self.bias = nn.Parameter(torch.zeros(vocab))
        self.dropout = nn.Dropout(dropout)

    def forward(self, query: None, reading: None, states: Tensor, mask: Tensor) -> Tensor:
        """Score the next and the previous token: … d → … 2 v."""
        halves = self.dropout(states).unflatten(-1, (2, -1))  # … 2 c
        return nn.functional.linear(halves, self.words, self.bias)
