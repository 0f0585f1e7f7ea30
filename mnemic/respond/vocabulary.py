"""Score every token of the vocabulary, at all places or at some.

Shapes: b batch, n tokens, m places, d width, e width of the word vectors, v vocabulary.
"""

import torch
from torch import Tensor, nn

from mnemic.encode.block import ACTIVATIONS, Activation


class VocabularyHead(nn.Module):
    """``norm(gelu(W x)) Eᵀ + b``: BERT's masked-language-model head (Devlin et al. 2019).

    ``words`` (v e) are the encoder's word vectors, which then are E too; without them the head has
    its own. Their width may be another than the states' (ALBERT).
    """

    def __init__(
        self,
        width: int,
        vocab: int,
        *,
        words: nn.Parameter | None = None,
        activation: Activation = "gelu",
        epsilon: float = 1e-12,
    ) -> None:
        super().__init__()
        if words is not None and words.shape[0] != vocab:
            raise ValueError(f"{words.shape[0]} word vectors came for a vocabulary of {vocab}")
        own = torch.randn(vocab, width) * width**-0.5
        self.words = nn.Parameter(own) if words is None else words
        inner = self.words.shape[1]
        self.dense = nn.Linear(width, inner)
        self.kind, self.activation = activation, ACTIVATIONS[activation]
        self.norm = nn.LayerNorm(inner, eps=epsilon)
        self.bias = nn.Parameter(torch.zeros(vocab))

    def forward(self, states: Tensor, places: Tensor | None = None) -> Tensor:
        """``states`` b n d → b n v; with ``places`` (m, in the flattened batch) only there: m v.

        Scores are the largest part of a small BERT's work: 15 % of the places, 15 % of it. A place
        beyond the batch stands for none; what is scored there means nothing.
        """
        if places is not None:
            flat = states.flatten(0, 1)
            states = flat.index_select(0, places.clamp(max=len(flat) - 1))  # m d
        states = self.norm(self.activation(self.dense(states)))
        return nn.functional.linear(states, self.words, self.bias)
