"""Relative positions: learned vectors for the distance of query and key.

Shapes: b batch, n queries, m context positions, d width, h heads, c channels of one head, k the
largest distance with a vector of its own.
"""

import torch
from torch import Tensor, nn

from mnemic.encode.attention.distances import DistanceAttention, mix_distances, score_distances
from mnemic.encode.attention.full import KeyValues
from mnemic.recipe import ConfigError


class RelativeAttention(DistanceAttention):
    """Attention with relative position representations (Shaw et al. 2018, equations 3 to 5).

    The score of positions i and j is qᵢ · (kⱼ + aᴷ) / √c, and what is mixed is vⱼ + aⱽ. Both
    vectors belong to the distance j - i, clipped to ±``distance``, and are shared by all heads;
    each layer has its own. ``values = false`` leaves aⱽ out. It reads texts of any length, without
    position embeddings.

    Where we differ: a row without any visible position comes out as zeros. ``fused`` uses torch's
    one-kernel attention without aⱽ; with aⱽ, which needs the attention weights themselves, the
    numbers always come from plain matmuls.
    """

    def __init__(
        self,
        width: int,
        *,
        heads: int = 4,
        dropout: float = 0.0,
        distance: int = 16,
        values: bool = True,
        fused: bool = True,
    ) -> None:
        super().__init__(width, heads=heads, dropout=dropout)
        if distance < 1:
            raise ConfigError(
                f"distance, up to which positions have vectors of their own, is 1 or more, not {distance}"
            )
        self.distance, self.fused = distance, fused
        self.key_table = make_distance_table(distance, width // heads)
        self.value_table = make_distance_table(distance, width // heads) if values else None

    def mix_visible(self, query: Tensor, key_values: KeyValues, mask: Tensor, dropout: float) -> Tensor:
        """Mix the values of visible positions, in one kernel where no weights are needed."""
        if not self.fused or self.value_table is not None:
            return super().mix_visible(query, key_values, mask, dropout)
        query = query * query.shape[-1] ** -0.5
        bias = score_distances(query, self.key_table, key_values.keys.shape[-2])
        return nn.functional.scaled_dot_product_attention(
            query, *key_values, attn_mask=bias.masked_fill(~mask, float("-inf")), dropout_p=dropout, scale=1.0
        )

    def compute_scores(self, query: Tensor, keys: Tensor) -> Tensor:
        """Compute q (k + aᴷ) / √c, b h n m."""
        products = query @ keys.mT + score_distances(query, self.key_table, keys.shape[-2])
        return products * query.shape[-1] ** -0.5

    def mix_values(self, weights: Tensor, values: Tensor) -> Tensor:
        """Mix the values and the vectors of their distances, b h n c."""
        mixed = weights @ values
        return mixed if self.value_table is None else mixed + mix_distances(weights, self.value_table)


def make_distance_table(distance: int, channels: int) -> nn.Parameter:
    """Make a table of random vectors for the distances -``distance`` … ``distance``."""
    return nn.Parameter(nn.init.xavier_uniform_(torch.empty(2 * distance + 1, channels)))
