"""Word head of MemNN: answer with the word that best matches the memory read.

Shapes: b batch, m queries, n inputs, d width, v vocabulary.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.memory import Reading
from mnemic.memory.parts.match import MATCHES
from mnemic.recipe import build
from mnemic.respond.contract import Response

DEFAULT_MATCH: Mapping[str, Any] = {"kind": "tanh"}


class MatchWordHead(Response):
    """Score every word: ``s_R(x, w) = E(x)·E(w)`` (Weston et al. 2015b).

    With a linear match this is ``WordHead``.
    """

    methods = ("ask_story",)

    def __init__(self, width: int, vocab: int, *, match: Mapping[str, Any] = DEFAULT_MATCH) -> None:
        super().__init__()
        self.match = build(MATCHES, match, width=width)
        self.table = nn.Parameter(torch.randn(vocab, width) * 0.1)

    def forward(self, query: Tensor, reading: Reading, states: Tensor, mask: Tensor) -> Tensor:
        """Score all words, b m v."""
        return self.match(reading.found) @ self.match(self.table).mT  # b m v
