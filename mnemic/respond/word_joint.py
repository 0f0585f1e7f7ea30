"""Word head of DMN+: answer with one word, from question and memory read.

Shapes: b batch, m queries, n inputs, t tables (1), d width, v vocabulary.
"""

import torch
from torch import Tensor, nn

from mnemic.encode.gru_cell import init_glorot
from mnemic.memory import Reading
from mnemic.respond.contract import Response


class JointWordHead(Response):
    """Score every word: ``W [query; found] + b`` (Xiong et al. 2016); ``dropout`` before W."""

    methods = ("ask_story",)

    def __init__(self, width: int, vocab: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.words = init_glorot(nn.Linear(2 * width, vocab))

    def forward(self, query: Tensor, reading: Reading, states: Tensor, mask: Tensor) -> Tensor:
        """Score all words, b m v."""
        joined = torch.cat([query.squeeze(2), reading.found], -1)  # b m 2d
        return self.words(self.dropout(joined))  # b m v
