"""Full attention: every query attends to every visible position.

Shapes: b batch, n queries, m context positions, d width, h heads, c channels of one head.
"""

from typing import NamedTuple

from torch import Tensor, nn

from mnemic.encode.masks import CausalMask, to_dense_mask
from mnemic.encode.packed import PackedMask, attend_packed
from mnemic.recipe import ConfigError


class KeyValues(NamedTuple):
    """The keys and values of a context, computed once for any number of queries."""

    keys: Tensor  # b h m c
    values: Tensor  # b h m c


class HeadProjection(nn.Module):
    """Linear projections to queries, keys and values, and back (Vaswani et al. 2017, 3.2.2).

    ``head_width`` is that of one head; 0 divides the width among the heads.
    """

    def __init__(self, width: int, heads: int, *, bias: bool = True, head_width: int = 0) -> None:
        super().__init__()
        if heads < 1 or head_width < 0 or (not head_width and width % heads):
            raise ConfigError(f"width {width} does not divide into {heads} heads")
        self.heads = heads
        inner = heads * head_width or width
        self.query, self.key, self.value = (nn.Linear(width, inner, bias=bias) for _ in range(3))
        self.out = nn.Linear(inner, width, bias=bias)

    def project_query(self, x: Tensor) -> Tensor:
        """Project hidden states to the queries of each head."""
        return self.split_heads(self.query(x))  # b n d -> b h n c

    def project_key_values(self, context: Tensor) -> KeyValues:
        """Project a context to the keys and values of each head."""
        return KeyValues(self.split_heads(self.key(context)), self.split_heads(self.value(context)))

    def split_heads(self, x: Tensor) -> Tensor:
        """Split the channels into heads."""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # b n d -> b h n c

    def merge_heads(self, x: Tensor) -> Tensor:
        """Concatenate the heads and project back to the width."""
        return self.out(x.transpose(1, 2).flatten(2))  # b h n c -> b n d


class FullAttention(nn.Module):
    """Multi-head attention over all visible positions (Vaswani et al. 2017, equation 1).

    Where we differ: a row without any visible position comes out as zeros. ``dropout`` drops
    attention weights during training. ``fused`` uses torch's one-kernel attention; without it the
    same numbers come from plain matmuls, which `torch.func.vmap` can batch on a CPU too.
    """

    supports_causal = supports_context = supports_rows = supports_cross = True
    supports_scores = decodes_in_slots = True
    scale: float | None = None  # of scores: 1/√c

    def __init__(self, width: int, *, heads: int = 4, dropout: float = 0.0, fused: bool = True) -> None:
        super().__init__()
        self.project = HeadProjection(width, heads)
        self.dropout = dropout
        self.fused = fused

    @property
    def supports_packing(self) -> bool:
        """Whether ``mask`` may be a ``PackedMask``; ``x`` and ``context`` are then the same."""
        return self.fused

    @property
    def heads(self) -> int:
        """The number of heads."""
        return self.project.heads

    def forward(self, x: Tensor, context: Tensor, mask: Tensor | CausalMask | PackedMask) -> Tensor:
        """Attend from ``x`` to ``context``.

        ``x`` b n d, ``context`` b m d, ``mask`` broadcastable to b h n m → b n d.
        """
        return self.attend(x, self.project_key_values(context), mask)

    def project_key_values(self, context: Tensor) -> KeyValues:
        """Compute the keys and values of a context, once per token in a decoder."""
        return self.project.project_key_values(context)

    def attend(self, x: Tensor, key_values: KeyValues, mask: Tensor | CausalMask | PackedMask) -> Tensor:
        """Attend from ``x`` to keys and values that were computed before."""
        query = self.project.project_query(x)
        dropout = self.dropout if self.training else 0.0
        if isinstance(mask, PackedMask):
            return self.project.merge_heads(attend_packed(query, *key_values, mask, dropout))
        mask = to_dense_mask(mask, x.shape[1])
        has_visible = mask.any(-1, keepdim=True)  # b h n 1
        if self.fused:
            # Some kernels return NaN for a row without visible positions: unmask it, zero it after.
            mixed = nn.functional.scaled_dot_product_attention(
                query, key_values.keys, key_values.values, attn_mask=mask | ~has_visible, dropout_p=dropout
            )
        else:
            weights = compute_attention_weights(query, key_values.keys, mask)
            mixed = nn.functional.dropout(weights, dropout, training=dropout > 0) @ key_values.values
        return self.project.merge_heads(mixed * has_visible) * has_visible.any(1)  # b n d

    def step_bias(self, num_steps: int) -> Tensor | None:
        """Return None: what is added to a decoder's scores of each step so far."""
        return None

    def attention_scores(self, x: Tensor, context: Tensor, mask: Tensor | CausalMask) -> Tensor:
        """Return the scores before the softmax, b h n m; -inf at hidden positions."""
        keys = self.project.split_heads(self.project.key(context))
        return compute_attention_scores(self.project.project_query(x), keys, to_dense_mask(mask, x.shape[1]))

    def attention_weights(self, x: Tensor, context: Tensor, mask: Tensor | CausalMask) -> Tensor:
        """Return the attention weights of each query, without dropout: the evidence, b h n m."""
        return compute_attention_weights(
            self.project.project_query(x), self.project_key_values(context).keys, to_dense_mask(mask, x.shape[1])
        )


def compute_attention_scores(query: Tensor, keys: Tensor, mask: Tensor) -> Tensor:
    """Compute q kᵀ / √c at visible positions and -inf elsewhere, b h n m."""
    return (query @ keys.mT * query.shape[-1] ** -0.5).masked_fill(~mask, float("-inf"))


def compute_attention_weights(query: Tensor, keys: Tensor, mask: Tensor) -> Tensor:
    """Compute softmax(q kᵀ / √c) over visible positions, b h n m.

    A row without any visible position is zeros.
    """
    scores = compute_attention_scores(query, keys, mask | ~mask.any(-1, keepdim=True))
    return scores.softmax(-1) * mask
