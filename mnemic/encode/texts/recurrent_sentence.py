"""Encode a text as the last state of a recurrent network over its words.

Shapes: u texts, w words, v vocabulary, t tables (1), d width.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.encode.recurrent import DEFAULT_RECURRENT, RECURRENTS
from mnemic.recipe import build


class RecurrentSentence(nn.Module):
    """Encode a text by a recurrent network's last state (Kumar et al. 2016).

    ``words`` are word vectors shared with another encoder; without them it has its own, with this
    standard ``deviation`` at the start. Where slots are distinguished by the content of their
    sentences, small word vectors make all sentences alike for a long time: 1.0 learns several times
    sooner.
    """

    reads_texts = True

    def __init__(
        self,
        width: int,
        vocab: int,
        *,
        tables: int = 1,
        words: nn.Parameter | None = None,
        recurrent: Mapping[str, Any] = DEFAULT_RECURRENT,
        deviation: float = 0.1,
    ) -> None:
        super().__init__()
        if tables != 1:
            raise ValueError(f"a recurrent sentence encoder has one state a text, not {tables}")
        self.width = width
        word_vectors = torch.randn(vocab, width) * deviation
        self.words = nn.Parameter(word_vectors) if words is None else words
        self.recurrent = build(RECURRENTS, recurrent, width=width)

    def forward(self, tokens: Tensor, mask: Tensor, context: None = None) -> Tensor:
        """Encode texts: ``tokens``, ``mask``: u w → states u 1 d."""
        return self.recurrent(nn.functional.embedding(tokens, self.words), mask).last.unsqueeze(1)
