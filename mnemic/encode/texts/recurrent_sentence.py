"""A text as the last state of a recurrent network over its words.

Shapes: u texts, w words, v vocabulary, t tables (1), d width.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.encode.recurrent import GATED, RECURRENTS
from mnemic.recipe import build


class RecurrentSentence(nn.Module):
    """Read word after word; what is left at the end stands for the text (Kumar et al. 2016).

    ``words`` are the word vectors of another encoder, to be shared; without them it has its own,
    ``deviation`` apart at the start. Where slots are told apart by what their sentences say, small
    word vectors make all sentences alike for a long time: 1.0 learns several times sooner.
    """

    def __init__(
        self,
        width: int,
        vocab: int,
        *,
        tables: int = 1,
        words: nn.Parameter | None = None,
        recurrent: Mapping[str, Any] = GATED,
        deviation: float = 0.1,
    ) -> None:
        super().__init__()
        if tables != 1:
            raise ValueError(f"a recurrent sentence encoder has one state a text, not {tables}")
        self.width = width
        own = torch.randn(vocab, width) * deviation
        self.words = nn.Parameter(own) if words is None else words
        self.recurrent = build(RECURRENTS, recurrent, width=width)

    def forward(self, tokens: Tensor, mask: Tensor, context: None = None) -> Tensor:
        """``tokens``, ``mask``: u w → states u 1 d."""
        return self.recurrent(nn.functional.embedding(tokens, self.words), mask).last.unsqueeze(1)
