"""Answer with the word that matches best what was found.

Shapes: b batch, m queries, n inputs, d width, v vocabulary.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.memory import Reading
from mnemic.memory.parts.match import MATCHES
from mnemic.recipe import build

TANH: Mapping[str, Any] = {"kind": "tanh"}


class MatchedWord(nn.Module):
    """``s_R(x, w) = E(x)·E(w)`` (Weston et al. 2015b); with a linear match this is ``word``."""

    tied = False

    def __init__(self, width: int, vocab: int, *, match: Mapping[str, Any] = TANH) -> None:
        super().__init__()
        self.match = build(MATCHES, match, width=width)
        self.table = nn.Parameter(torch.randn(vocab, width) * 0.1)

    def forward(self, query: Tensor, reading: Reading, states: Tensor, mask: Tensor) -> Tensor:
        return self.match(reading.found) @ self.match(self.table).mT  # b m v
