"""Let the sentences of a story know of each other: ``fuse(states, seen, words)``.

``states`` b n … are the texts' states as the encoder gave them, ``seen`` b n says which are real,
``words`` b n w which of their words. All of them give one state a sentence, b n 1 d.

Shapes: b batch, n sentences, w words, d width.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.encode.recurrent import GATED, RECURRENTS
from mnemic.recipe import build

BOTH_WAYS: Mapping[str, Any] = {"kind": "gru", "directions": "sum"}


class RecurrentFusion(nn.Module):
    """A recurrent network over the sentences, both ways and added (Xiong et al. 2016, eq. 4-6)."""

    def __init__(
        self, width: int, *, recurrent: Mapping[str, Any] = BOTH_WAYS, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.recurrent = build(RECURRENTS, recurrent, width=width)

    def forward(self, states: Tensor, seen: Tensor, words: Tensor) -> Tensor:
        read = self.recurrent(self.dropout(states.squeeze(2)), seen).states  # b n d
        return read.unsqueeze(2)


class WordByWordFusion(nn.Module):
    """A recurrent network over all words of the story; its states at sentence ends are the facts.

    The input module of DMN (Kumar et al. 2016, section 2.1); it wants the encoder ``words``.
    ``dropout`` acts on the word vectors. A sentence of no known word has a state of zeros.
    """

    def __init__(
        self, width: int, *, recurrent: Mapping[str, Any] = GATED, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.recurrent = build(RECURRENTS, recurrent, width=width)

    def forward(self, states: Tensor, seen: Tensor, words: Tensor) -> Tensor:
        told = words & seen.unsqueeze(2)  # b n w
        words_in = self.dropout(states).flatten(1, 2)  # b (n w) d
        read = self.recurrent(words_in, told.flatten(1)).states
        places = torch.arange(words.shape[2], device=words.device)
        last = torch.where(told, places, 0).amax(2)  # b n
        row = last[:, :, None, None].expand(-1, -1, 1, read.shape[-1])  # b n 1 d
        return read.unflatten(1, words.shape[1:]).gather(2, row)


FUSIONS: dict[str, Callable[..., Any]] = {
    "recurrent": RecurrentFusion,
    "words": WordByWordFusion,
}
