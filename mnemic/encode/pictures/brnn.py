"""The bidirectional network that reads words to be aligned with regions of a picture.

Shapes: b batch, n tokens, d width.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.encode.gru_cell import init_glorot
from mnemic.encode.token_encoder import TokenEncoder

DEFAULT_EMBEDDINGS: Mapping[str, Any] = {"kind": "sum", "positions": {"kind": "none"}, "norm": False}


class BRNNEncoder(TokenEncoder):
    """Read words in both directions with rectified units.

    Karpathy and Fei-Fei 2015, arXiv:1412.2306, equations 2 to 6: e = f(W_e x + b_e), h→ = f(e + W_f
    h→ + b_f), h← likewise from the end, and s = f(W_d (h→ + h←) + b_d), with f = max(0, ·). The
    recurrence has no dropout.

    Where we differ: word vectors are learned unless ``train.frozen`` names them; theirs are
    word2vec's and fixed. The recurrent matrices start as identities (Le et al. 2015,
    arXiv:1504.00941), with which rectified networks learn.
    """

    def __init__(self, width: int, vocab: int, *, embeddings: Mapping[str, Any] = DEFAULT_EMBEDDINGS) -> None:
        super().__init__(width, vocab, embeddings)
        self.input = init_glorot(nn.Linear(width, width))
        self.forth, self.back = nn.Linear(width, width), nn.Linear(width, width)
        for direction in (self.forth, self.back):
            nn.init.eye_(direction.weight)
            nn.init.zeros_(direction.bias)
        self.out = init_glorot(nn.Linear(width, width))

    def forward(self, tokens: Tensor, mask: Tensor, context: None = None) -> Tensor:
        """Encode tokens: b n → b n d, zeros at padding; there is no ``context``."""
        is_real = mask.unsqueeze(-1)
        inputs = self.input(self.embeddings(tokens, mask)).relu()  # b n d
        first = run_direction(self.forth, inputs, is_real)
        second = run_direction(self.back, inputs.flip(1), is_real.flip(1)).flip(1)
        return self.out(first + second).relu() * is_real


def run_direction(recurrence: nn.Module, inputs: Tensor, is_real: Tensor) -> Tensor:
    """Run one direction over ``inputs`` e (b n d): h = relu(e + W h + b).

    Padding has the state 0.
    """
    hidden = inputs.new_zeros(inputs.shape[0], inputs.shape[2])
    states = []
    for x, real in zip(inputs.unbind(1), is_real.unbind(1)):
        hidden = (x + recurrence(hidden)).relu() * real
        states.append(hidden)
    return torch.stack(states, 1) if states else inputs
