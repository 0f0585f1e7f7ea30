"""Encode a text as the vectors of its words, read one by one.

Shapes: u texts, w words, v vocabulary, d width.
"""

import torch
from torch import Tensor, nn


class WordVectors(nn.Module):
    """Look up each word's vector and do nothing else.

    A fusion layer or a memory reads the words in order.
    """

    reads_texts = True

    def __init__(self, width: int, vocab: int, *, tables: int = 1, deviation: float = 0.1) -> None:
        super().__init__()
        if tables != 1:
            raise ValueError(f"word vectors are one table, not {tables}")
        self.width = width
        self.words = nn.Parameter(torch.randn(vocab, width) * deviation)

    def forward(self, tokens: Tensor, mask: Tensor, context: None = None) -> Tensor:
        """Encode texts: ``tokens``, ``mask``: u w → states u w d, zeros at padding."""
        return nn.functional.embedding(tokens, self.words) * mask.unsqueeze(-1)
