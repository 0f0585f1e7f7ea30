"""Fusion layers: let the sentences of a story exchange information.

Contract: ``fuse(states, sentence_mask, word_mask)``. ``states`` b n … are the encoder's states of
the texts, ``sentence_mask`` b n marks real sentences, ``word_mask`` b n w their real words. Every
kind returns one state per sentence, b n 1 d.

Shapes: b batch, n sentences, w words, d width.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.encode.recurrent import DEFAULT_RECURRENT, RECURRENTS
from mnemic.recipe import build

BIDIRECTIONAL_GRU: Mapping[str, Any] = {"kind": "gru", "directions": "sum"}


class RecurrentFusion(nn.Module):
    """A bidirectional recurrent network over the sentences, summed (Xiong et al. 2016, eq. 4-6)."""

    def __init__(self, width: int, *, recurrent: Mapping[str, Any] = BIDIRECTIONAL_GRU, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.recurrent = build(RECURRENTS, recurrent, width=width)

    def forward(self, states: Tensor, sentence_mask: Tensor, word_mask: Tensor) -> Tensor:
        """Run the recurrent network over the sentences' states."""
        fused = self.recurrent(self.dropout(states.squeeze(2)), sentence_mask).states  # b n d
        return fused.unsqueeze(2)


class WordByWordFusion(nn.Module):
    """A recurrent network over all words of the story, read at the sentence ends.

    The input module of DMN (Kumar et al. 2016, section 2.1); it needs the encoder ``words``.
    ``dropout`` acts on the word vectors. A sentence without a known word has a state of zeros.
    """

    def __init__(self, width: int, *, recurrent: Mapping[str, Any] = DEFAULT_RECURRENT, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.recurrent = build(RECURRENTS, recurrent, width=width)

    def forward(self, states: Tensor, sentence_mask: Tensor, word_mask: Tensor) -> Tensor:
        """Run the recurrent network over all words; take the state at each sentence's last word."""
        real_words = word_mask & sentence_mask.unsqueeze(2)  # b n w
        word_vectors = self.dropout(states).flatten(1, 2)  # b (n w) d
        states_per_word = self.recurrent(word_vectors, real_words.flatten(1)).states
        positions = torch.arange(word_mask.shape[2], device=word_mask.device)
        last = torch.where(real_words, positions, 0).amax(2)  # b n
        index = last[:, :, None, None].expand(-1, -1, 1, states_per_word.shape[-1])  # b n 1 d
        return states_per_word.unflatten(1, word_mask.shape[1:]).gather(2, index)


FUSIONS: dict[str, Callable[..., Any]] = {"recurrent": RecurrentFusion, "words": WordByWordFusion}
