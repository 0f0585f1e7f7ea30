"""Masked-language-model head: score the vocabulary at all positions or at some.

Shapes: b batch, n tokens, m positions, d width, e width of the word vectors, v vocabulary.
"""

import torch
from torch import Tensor, nn

from mnemic.encode.stacks.block import ACTIVATIONS, Activation


class VocabularyHead(nn.Module):
    """BERT's masked-language-model head, ``norm(gelu(W x)) Eᵀ + b`` (Devlin et al. 2019).

    ``words`` (v e) are the encoder's word vectors, used as E; without them the head has its own.
    Their width may differ from the states' (ALBERT).
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
            raise ValueError(f"got {words.shape[0]} word vectors for a vocabulary of {vocab}")
        output_table = torch.randn(vocab, width) * width**-0.5
        self.words = nn.Parameter(output_table) if words is None else words
        inner = self.words.shape[1]
        self.dense = nn.Linear(width, inner)
        self.activation_name, self.activation = activation, ACTIVATIONS[activation]
        self.norm = nn.LayerNorm(inner, eps=epsilon)
        self.bias = nn.Parameter(torch.zeros(vocab))

    def forward(self, states: Tensor, positions: Tensor | None = None) -> Tensor:
        """Score the vocabulary at all positions, b n v, or at some, m v.

        ``states`` b n d; ``positions`` (m) are indices in the flattened batch; one beyond the batch
        is padding, whose logits mean nothing. Scoring is the largest part of a small BERT's work:
        15 % of the positions cost 15 % of it.
        """
        if positions is not None:
            flat = states.flatten(0, 1)
            states = flat.index_select(0, positions.clamp(max=len(flat) - 1))  # m d
        states = self.norm(self.activation(self.dense(states)))
        return nn.functional.linear(states, self.words, self.bias)
