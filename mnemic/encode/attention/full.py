"""Full attention: every query looks at every visible position.

Shapes: b batch, n queries, m context positions, d width, h heads, c channels of one head.
"""

from torch import Tensor, nn

from mnemic.encode.attention.heads import Heads, Kept
from mnemic.encode.packed import Packed, attend


class FullAttention(nn.Module):
    """Every query sees every visible context position (Vaswani et al. 2017, equation 1).

    Where we differ: a row that may see nothing comes out as zeros. ``dropout`` drops weights while
    training. ``fused`` uses torch's one-kernel attention; without it the same numbers come from
    plain matmuls, which `torch.func.vmap` can batch on a CPU too.
    """

    def __init__(
        self, width: int, *, heads: int = 4, dropout: float = 0.0, fused: bool = True
    ) -> None:
        super().__init__()
        self.project = Heads(width, heads)
        self.dropout = dropout
        self.fused = fused

    @property
    def packs(self) -> bool:
        """Whether ``mask`` may be ``Packed``; ``x`` and ``context`` are then the same row."""
        return self.fused

    def forward(self, x: Tensor, context: Tensor, mask: Tensor | Packed) -> Tensor:
        """``x`` b n d, ``context`` b m d, ``mask`` broadcastable to b h n m → b n d."""
        return self.mix(x, self.keep(context), mask)

    def keep(self, context: Tensor) -> Kept:
        """The context's keys and values, for ``mix``: a decoder makes them once a token."""
        return self.project.keep(context)

    def mix(self, x: Tensor, kept: Kept, mask: Tensor | Packed) -> Tensor:
        """``forward`` with a context that was kept before."""
        query = self.project.ask(x)
        rate = self.dropout if self.training else 0.0
        if isinstance(mask, Packed):
            return self.project.join(attend(query, *kept, mask, rate))
        mask = four_axes(mask)
        seen = mask.any(-1, keepdim=True)  # b h n 1
        if self.fused:
            # A row without a visible position is NaN in some kernels: let it look, then clear it.
            mixed = nn.functional.scaled_dot_product_attention(
                query, kept.keys, kept.values, attn_mask=mask | ~seen, dropout_p=rate
            )
        else:
            weights = weigh(query, kept.keys, mask)
            mixed = nn.functional.dropout(weights, rate, training=rate > 0) @ kept.values
        return self.project.join(mixed * seen) * seen.any(1)  # b n d

    def weights(self, x: Tensor, context: Tensor, mask: Tensor) -> Tensor:
        """How much each query looked at each position, without dropout: the evidence, b h n m."""
        return weigh(self.project.ask(x), self.keep(context).keys, four_axes(mask))


def weigh(query: Tensor, keys: Tensor, mask: Tensor) -> Tensor:
    """softmax(q kᵀ / √c) over what may be seen, b h n m; zeros where nothing may be."""
    scores = query @ keys.mT * query.shape[-1] ** -0.5  # b h n m
    hidden = ~mask & mask.any(-1, keepdim=True)
    return scores.masked_fill(hidden, float("-inf")).softmax(-1) * mask


def four_axes(mask: Tensor) -> Tensor:
    return mask[(None,) * (4 - mask.dim())]
