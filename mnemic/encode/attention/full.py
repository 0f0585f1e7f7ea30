"""Full attention: every query attends to every visible position.

Shapes: b batch, n queries, m context positions, d width, h heads, c channels of one head.
"""

from torch import Tensor, nn

from mnemic.encode.attention.heads import HeadProjection, KeyValues
from mnemic.encode.packed import PackedMask, attend_packed


class FullAttention(nn.Module):
    """Multi-head attention over all visible positions (Vaswani et al. 2017, equation 1).

    Where we differ: a row without any visible position comes out as zeros. ``dropout`` drops
    attention weights during training. ``fused`` uses torch's one-kernel attention; without it the
    same numbers come from plain matmuls, which `torch.func.vmap` can batch on a CPU too.
    """

    def __init__(self, width: int, *, heads: int = 4, dropout: float = 0.0, fused: bool = True) -> None:
        super().__init__()
        self.project = HeadProjection(width, heads)
        self.dropout = dropout
        self.fused = fused

    @property
    def supports_packing(self) -> bool:
        """Whether ``mask`` may be a ``PackedMask``; ``x`` and ``context`` are then the same."""
        return self.fused

    def forward(self, x: Tensor, context: Tensor, mask: Tensor | PackedMask) -> Tensor:
        """Attend from ``x`` to ``context``.

        ``x`` b n d, ``context`` b m d, ``mask`` broadcastable to b h n m → b n d.
        """
        return self.attend(x, self.project_key_values(context), mask)

    def project_key_values(self, context: Tensor) -> KeyValues:
        """Compute the keys and values of a context, once per token in a decoder."""
        return self.project.project_key_values(context)

    def attend(self, x: Tensor, key_values: KeyValues, mask: Tensor | PackedMask) -> Tensor:
        """Attend from ``x`` to keys and values that were computed before."""
        query = self.project.project_query(x)
        dropout = self.dropout if self.training else 0.0
        if isinstance(mask, PackedMask):
            return self.project.merge_heads(attend_packed(query, *key_values, mask, dropout))
        mask = expand_to_four_axes(mask)
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

    def attention_weights(self, x: Tensor, context: Tensor, mask: Tensor) -> Tensor:
        """Return the attention weights of each query, without dropout: the evidence, b h n m."""
        return compute_attention_weights(
            self.project.project_query(x), self.project_key_values(context).keys, expand_to_four_axes(mask)
        )


def compute_attention_weights(query: Tensor, keys: Tensor, mask: Tensor) -> Tensor:
    """Compute softmax(q kᵀ / √c) over visible positions, b h n m.

    A row without any visible position is zeros.
    """
    logits = query @ keys.mT * query.shape[-1] ** -0.5  # b h n m
    is_hidden = ~mask & mask.any(-1, keepdim=True)
    return logits.masked_fill(is_hidden, float("-inf")).softmax(-1) * mask


def expand_to_four_axes(mask: Tensor) -> Tensor:
    """Add leading axes to a mask until it has four."""
    return mask[(None,) * (4 - mask.dim())]
