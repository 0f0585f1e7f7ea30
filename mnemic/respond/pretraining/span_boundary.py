"""SpanBERT's head: predict a masked token from the two tokens around its span.

Shapes: b batch, n tokens, m masked positions, d width, e width of the word vectors, v vocabulary.
"""

import torch
from torch import Tensor, nn

from mnemic.encode.stacks.block import ACTIVATIONS, Activation

MAX_OFFSETS = 20  # tokens of a span that are predicted, as in the authors' code
OFFSET_WIDTH = 200


class SpanBoundaryHead(nn.Module):
    """Score the vocabulary by ``[h_before; h_after; p_offset]``.

    Joshi et al. 2020 (arXiv:1907.10529), section 3.2, with a vector p per offset in the span.
    Two layers, each with an activation and a layer norm, then the word vectors ``words`` (v e) with
    a bias of their own. Nothing else of the text is seen: no state within the span.
    """

    def __init__(
        self, width: int, words: nn.Parameter, *, activation: Activation = "gelu", epsilon: float = 1e-12
    ) -> None:
        super().__init__()
        vocab, inner = words.shape
        self.words = words
        self.offsets = nn.Parameter(torch.randn(MAX_OFFSETS, OFFSET_WIDTH) * OFFSET_WIDTH**-0.5)
        self.join, self.dense = nn.Linear(2 * width + OFFSET_WIDTH, width), nn.Linear(width, inner)
        self.activation = ACTIVATIONS[activation]
        self.join_norm, self.dense_norm = nn.LayerNorm(width, eps=epsilon), nn.LayerNorm(inner, eps=epsilon)
        self.bias = nn.Parameter(torch.zeros(vocab))

    def forward(self, states: Tensor, span_ends: Tensor) -> Tensor:
        """Score the vocabulary at masked positions: ``states`` b n d, ``span_ends`` m 3 → m v.

        ``span_ends`` are the positions around each token's span in the flattened batch, and its
        offset in the span; those of offsets that have no vector mean nothing.
        """
        before, after, offset = span_ends.unbind(-1)
        flat = states.flatten(0, 1)
        around = [flat.index_select(0, before), flat.index_select(0, after)]
        offsets = self.offsets.index_select(0, offset.clamp(0, MAX_OFFSETS - 1)).to(states.dtype)
        x = self.join_norm(self.activation(self.join(torch.cat([*around, offsets], -1))))
        x = self.dense_norm(self.activation(self.dense(x)))
        return nn.functional.linear(x, self.words, self.bias)
