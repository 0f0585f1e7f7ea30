"""Word head: answer with one word of the vocabulary.

Shapes: b batch, m queries, n inputs, d width, v vocabulary.
"""

import torch
from torch import Tensor, nn

from mnemic.memory import Reading
from mnemic.respond.contract import Response


class WordHead(Response):
    """Score every word: ``W found``, without a bias (Sukhbaatar et al. 2015, equation 3).

    With ``tied`` the network uses the encoder's last table as W (adjacent tying). With
    ``candidates`` (c, word ids) only they are scored, in their order.
    """

    methods = ("ask_story",)

    def __init__(self, width: int, vocab: int, *, tied: bool = False) -> None:
        super().__init__()
        self.tied = tied
        self.table = nn.Parameter(torch.randn(vocab, width) * 0.1)

    def forward(
        self, query: Tensor, reading: Reading, states: Tensor, mask: Tensor, candidates: Tensor | None = None
    ) -> Tensor:
        """Score all words (b m v) or the candidates (b m c)."""
        table = self.table if candidates is None else self.table.index_select(0, candidates)
        return reading.found @ table.mT  # b m v, or b m c
