"""The base of attention kinds that know distances, and tables of vectors by clipped distance.

The distance from query i to context position j is j - i; the queries are the end of the context.

Shapes: b batch, n queries, m context positions, d width, h heads, c channels of one head, k the
largest distance of a table.
"""

import torch
from torch import Tensor, nn

from mnemic.encode.attention.full import HeadProjection, KeyValues
from mnemic.encode.masks import CausalMask, to_dense_mask


class DistanceAttention(nn.Module):
    """The base of kinds whose scores or values depend on distances.

    A subclass has ``compute_scores``; where distances change the values too, ``mix_values``. Keys
    and values know nothing of distances, so a decoder's cache holds for any later query.
    """

    supports_causal = supports_context = supports_rows = supports_scores = True
    supports_cross = False  # a position of another text has no distance

    def __init__(self, width: int, *, heads: int, dropout: float, bias: bool = True, head_width: int = 0) -> None:
        super().__init__()
        self.project = HeadProjection(width, heads, bias=bias, head_width=head_width)
        self.dropout = dropout

    @property
    def heads(self) -> int:
        """The number of heads."""
        return self.project.heads

    def forward(self, x: Tensor, context: Tensor, mask: Tensor | CausalMask) -> Tensor:
        """Attend from ``x``, the end of ``context``.

        ``x`` b n d, ``context`` b m d, ``mask`` broadcastable to b h n m → b n d.
        """
        return self.attend(x, self.project_key_values(context), mask)

    def project_key_values(self, context: Tensor) -> KeyValues:
        """Compute the keys and values of a context, once per token in a decoder."""
        return self.project.project_key_values(context)

    def attend(self, x: Tensor, key_values: KeyValues, mask: Tensor | CausalMask) -> Tensor:
        """Attend from ``x`` to keys and values that were computed before."""
        mask = to_dense_mask(mask, x.shape[1])
        has_visible = mask.any(-1, keepdim=True)  # b h n 1
        dropout = self.dropout if self.training else 0.0
        mixed = self.mix_visible(self.project.project_query(x), key_values, mask | ~has_visible, dropout)
        return self.project.merge_heads(mixed * has_visible) * has_visible.any(1)  # b n d

    def mix_visible(self, query: Tensor, key_values: KeyValues, mask: Tensor, dropout: float) -> Tensor:
        """Mix values of visible positions, b h n c; no row of ``mask`` is empty."""
        scores = self.compute_scores(query, key_values.keys).masked_fill(~mask, float("-inf"))
        weights = nn.functional.dropout(scores.softmax(-1), dropout, training=dropout > 0)
        return self.mix_values(weights, key_values.values)

    def compute_scores(self, query: Tensor, keys: Tensor) -> Tensor:
        """Compute the scores before the softmax, b h n m, of hidden positions too."""
        raise NotImplementedError

    def mix_values(self, weights: Tensor, values: Tensor) -> Tensor:
        """Mix values b h m c by attention weights b h n m."""
        return weights @ values

    def attention_scores(self, x: Tensor, context: Tensor, mask: Tensor | CausalMask) -> Tensor:
        """Return the scores before the softmax, b h n m; -inf at hidden positions."""
        scores = self.compute_scores(self.project.project_query(x), self.project_key_values(context).keys)
        return scores.masked_fill(~to_dense_mask(mask, x.shape[1]), float("-inf"))

    def attention_weights(self, x: Tensor, context: Tensor, mask: Tensor | CausalMask) -> Tensor:
        """Return the attention weights of each query, without dropout: the evidence, b h n m.

        A row without any visible position is zeros.
        """
        mask = to_dense_mask(mask, x.shape[1])
        scores = self.attention_scores(x, context, mask | ~mask.any(-1, keepdim=True))
        return scores.softmax(-1) * mask


def index_distances(num_queries: int, num_context: int, limit: int, device: torch.device) -> Tensor:
    """Return the table row of each query and context position, n m.

    Row 0 is for a distance of ``-limit`` and below, row 2 · ``limit`` for ``limit`` and above.

    >>> index_distances(2, 4, 2, torch.device("cpu"))
    tensor([[0, 1, 2, 3],
            [0, 0, 1, 2]])
    """
    positions = torch.arange(num_context, device=device)
    distances = positions - positions[num_context - num_queries :, None]
    return distances.clamp(-limit, limit) + limit


def score_distances(query: Tensor, table: Tensor, num_context: int) -> Tensor:
    """Multiply each query with the vectors of its distances, b h n m.

    ``query`` is b h n c, ``table`` 2k+1 c, for clipped distances. There is no tensor n m c: the
    products with the table, b h n 2k+1, are looked up.
    """
    rows = index_distances(query.shape[-2], num_context, len(table) // 2, query.device)
    products = query @ table.mT  # b h n 2k+1
    return products.gather(-1, rows.expand(*products.shape[:-1], -1))


def mix_distances(weights: Tensor, table: Tensor) -> Tensor:
    """Mix the vectors of clipped distances by attention weights, b h n c.

    ``weights`` is b h n m; those of equal distance are added up before they meet the table, which
    is 2k+1 c.
    """
    rows = index_distances(weights.shape[-2], weights.shape[-1], len(table) // 2, weights.device)
    sums = weights.new_zeros(*weights.shape[:-1], len(table))  # b h n 2k+1
    return sums.scatter_add(-1, rows.expand_as(weights), weights) @ table
