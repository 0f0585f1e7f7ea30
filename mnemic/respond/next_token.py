"""Language-model head: logits of the next token at every position.

Shapes: b batch, n tokens, d width, v vocabulary.
"""

import torch
from torch import Tensor, nn

from mnemic.recipe import ConfigError
from mnemic.respond.contract import Response


def check_tied_width(words: Tensor | None, width: int, tied: bool) -> None:
    """Check that shared word vectors are as wide as the states."""
    if tied and words is not None and words.shape[1] != width:
        raise ConfigError(
            f"word vectors of width {words.shape[1]} cannot score states of width {width}; set "
            "model.respond.tied = false"
        )


class NextTokenHead(Response):
    """Compute ``W s + b`` at every state of a left-to-right language model.

    ``tied`` uses the encoder's word vectors as W, as most language models do (Press and Wolf 2017;
    Inan et al. 2017): half the weights, and better with little data. ``dropout`` is applied to the
    states.
    """

    source = "text"
    needs_causal = True
    methods = ("complete", "perplexity")
    replaces = "masked"
    corpus_metrics = "next-token"

    def __init__(
        self, width: int, vocab: int, words: nn.Parameter | None = None, *, tied: bool = True, dropout: float = 0.0
    ) -> None:
        super().__init__()
        check_tied_width(words, width, tied)
        output_table = nn.Parameter(torch.randn(vocab, width) * width**-0.5)
        self.words = words if tied and words is not None else output_table
        self.bias = nn.Parameter(torch.zeros(vocab))
        self.dropout = nn.Dropout(dropout)

    def forward(self, query: None, reading: None, states: Tensor, mask: Tensor) -> Tensor:
        """Score the token after each state: b n d → b n v."""
        return nn.functional.linear(self.dropout(states), self.words, self.bias)
