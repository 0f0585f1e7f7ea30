"""External attention: tokens read two learned memories that all texts share.

Shapes: b batch, n tokens, d width, h heads, c channels of one head, s slots.
"""

from typing import Literal

import torch
from torch import Tensor, nn

from mnemic.encode.masks import find_visible_keys
from mnemic.recipe import ConfigError

MemoryNorm = Literal["double", "softmax", "none"]


class ExternalAttention(nn.Module):
    """Attend to ``slots`` learned keys and values instead of a text.

    External attention (Guo et al. 2021, arXiv:2105.02358), multi-head as in the authors' code: the
    input is widened ``expansion`` times, with as many times more heads, and all heads read the same
    two memories.
    ``norm="double"`` is a softmax over the tokens, then each token's weights are divided by their
    sum; ``"softmax"`` is over the slots; ``"none"`` makes each head a network of two layers.

    Where we differ: padding is hidden before the softmax over tokens, which theirs lets in. Both
    steps are one softmax of logarithms, so no ε is needed. Neither the memories nor, with "double",
    the projection before them has a bias: a softmax over tokens ignores what is added to all of
    them. Cost is linear in the length.
    """

    def __init__(
        self,
        width: int,
        *,
        heads: int = 4,
        dropout: float = 0.0,
        slots: int = 64,
        expansion: int = 4,
        norm: MemoryNorm = "double",
    ) -> None:
        super().__init__()
        if heads < 1 or width % heads:
            raise ConfigError(f"width {width} does not divide into {heads} heads")
        self.heads, self.dropout, self.norm = heads * expansion, dropout, norm
        self.widen = nn.Linear(width, expansion * width, bias=norm != "double")
        self.memory_keys = nn.Linear(width // heads, slots, bias=False)  # s c
        self.memory_values = nn.Linear(slots, width // heads, bias=False)  # c s
        self.out = nn.Linear(expansion * width, width)

    def forward(self, x: Tensor, context: Tensor, mask: Tensor) -> Tensor:
        """Read the memories with each token of ``x``.

        ``x`` b n d → b n d, zeros at padding. ``context`` is ``x``; ``mask`` is broadcastable to
        b h n n and the same for all queries.
        """
        dropout = self.dropout if self.training else 0.0
        weights = nn.functional.dropout(self.attention_weights(x, context, mask), dropout, training=dropout > 0)
        mixed = self.memory_values(weights)  # b h n c
        return self.out(mixed.transpose(1, 2).flatten(2)) * find_visible_keys(mask, x.shape[1]).unsqueeze(-1)

    def attention_weights(self, x: Tensor, context: Tensor, mask: Tensor) -> Tensor:
        """Return how much of each common slot each token reads, b h n s.

        They are the evidence; zeros at padding.
        """
        states = self.widen(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)  # b h n c
        scores = self.memory_keys(states)  # b h n s
        is_real = find_visible_keys(mask, x.shape[1])[:, None, :, None]  # b 1 n 1
        return normalize_scores(scores, is_real, self.norm) * is_real


def normalize_scores(scores: Tensor, is_real: Tensor, norm: MemoryNorm) -> Tensor:
    """Normalize the scores of slots, b h n s.

    ``is_real`` is broadcastable to b h n 1.
    """
    if norm == "none":
        return scores
    logits = scores.to(torch.promote_types(scores.dtype, torch.float32))
    if norm == "double":
        hidden = ~(is_real | ~is_real.any(-2, keepdim=True))  # a text of padding hides nothing
        logits = logits - logits.masked_fill(hidden, float("-inf")).logsumexp(-2, keepdim=True)
    return logits.softmax(-1).to(scores.dtype)
