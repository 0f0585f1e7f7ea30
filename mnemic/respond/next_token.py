"""Say at every place which word comes next.

Shapes: b batch, n tokens, d width, v vocabulary.
"""

import torch
from torch import Tensor, nn

from mnemic.recipe import ConfigError


def check_tied(words: Tensor | None, width: int, tied: bool) -> None:
    """Word vectors can be shared only where they are as wide as the states."""
    if tied and words is not None and words.shape[1] != width:
        raise ConfigError(
            f"word vectors of width {words.shape[1]} cannot score states of width {width}; set "
            "model.respond.tied = false"
        )


class NextWord(nn.Module):
    """``W s + b`` at every state of a language model that reads from left to right.

    ``tied`` takes the encoder's word vectors for W, as most language models do (Press and Wolf
    2017; Inan et al. 2017): half the weights, and better where data are few. ``dropout`` is that of
    the states.
    """

    def __init__(
        self,
        width: int,
        vocab: int,
        words: nn.Parameter | None = None,
        *,
        tied: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_tied(words, width, tied)
        own = nn.Parameter(torch.randn(vocab, width) * width**-0.5)
        self.words = words if tied and words is not None else own
        self.bias = nn.Parameter(torch.zeros(vocab))
        self.dropout = nn.Dropout(dropout)

    def forward(self, query: None, reading: None, states: Tensor, mask: Tensor) -> Tensor:
        """``states`` b n d → scores b n v, of the word behind each; at padding they say nothing."""
        return nn.functional.linear(self.dropout(states), self.words, self.bias)
