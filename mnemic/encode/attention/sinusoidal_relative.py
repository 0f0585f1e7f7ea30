"""Sinusoidal relative positions: fixed waves of the distance of query and key (NEZHA).

Shapes: b batch, n queries, m context positions, h heads, c channels of one head.
"""

import torch
from torch import Tensor, nn

from mnemic.encode.attention.distances import DistanceAttention, mix_distances, score_distances
from mnemic.encode.attention.full import KeyValues
from mnemic.encode.masks import CausalMask
from mnemic.encode.packed import PackedMask, attend_packed
from mnemic.encode.positions import SinusoidalPositions
from mnemic.recipe import ConfigError


class SinusoidalRelativeAttention(DistanceAttention):
    """Attention with functional relative positions (NEZHA; Wei et al. 2019, section 2.2).

    As ``relative``, but the vector of a distance is fixed and the same in keys and values, in all
    heads and layers: a[2t] = sin((j - i) / 10000^(2t/c)), a[2t+1] = cos(the same). Distances have
    no limit. ``offset = 127`` reads the weights that NEZHA's authors released: their code clips the
    distance to ±127 and adds 127 before it takes sine and cosine; other offsets work alike.

    Where we differ: without an offset no vector of a distance is ever made. sin(j - i) and
    cos(j - i) are products of waves of i and of j: the waves of j become c more channels of keys
    and values, and the query is rotated by i. So ``fused``, torch's one-kernel attention, does all
    of it; plain matmuls give the same numbers. A row without any visible position comes out as
    zeros.
    """

    def __init__(
        self, width: int, *, heads: int = 4, dropout: float = 0.0, offset: int = 0, fused: bool = True
    ) -> None:
        super().__init__(width, heads=heads, dropout=dropout)
        if offset < 0:
            raise ConfigError(f"offset is 0, for the formula, or the largest distance of a table, not {offset}")
        self.waves = SinusoidalPositions(width // heads)
        self.offset, self.fused = offset, fused

    @property
    def supports_packing(self) -> bool:
        """Whether ``mask`` may be a ``PackedMask``; ``x`` and ``context`` are then the same."""
        return self.fused and not self.offset

    def attend(self, x: Tensor, key_values: KeyValues, mask: Tensor | CausalMask | PackedMask) -> Tensor:
        """Attend from ``x`` to keys and values that were computed before."""
        if not isinstance(mask, PackedMask):
            return super().attend(x, key_values, mask)
        # Distances within a text are the same in the row that it is packed into.
        query = self.extend_query(self.project.project_query(x), x.shape[1])
        keys, values = (self.append_waves(states) for states in key_values)
        mixed = attend_packed(query, keys, values, mask, self.dropout if self.training else 0.0)
        return self.project.merge_heads(self.reduce_channels(mixed, x.shape[1]))

    def mix_visible(self, query: Tensor, key_values: KeyValues, mask: Tensor, dropout: float) -> Tensor:
        """Mix the values of visible positions, in one kernel where no table is needed."""
        if not self.fused or self.offset:
            return super().mix_visible(query, key_values, mask, dropout)
        num_context = key_values.keys.shape[-2]
        keys, values = (self.append_waves(states) for states in key_values)
        query = self.extend_query(query, num_context)
        mixed = nn.functional.scaled_dot_product_attention(query, keys, values, attn_mask=mask, dropout_p=dropout)
        return self.reduce_channels(mixed, num_context)

    def compute_scores(self, query: Tensor, keys: Tensor) -> Tensor:
        """Compute q (k + a) / √c, b h n m."""
        num_context, channels = keys.shape[-2:]
        if self.offset:
            products = query @ keys.mT + score_distances(query, self.make_table(query), num_context)
            return products * channels**-0.5
        return self.extend_query(query, num_context) @ self.append_waves(keys).mT * (2 * channels) ** -0.5

    def mix_values(self, weights: Tensor, values: Tensor) -> Tensor:
        """Mix the values and the waves of their distances, b h n c."""
        if self.offset:
            return weights @ values + mix_distances(weights, self.make_table(values))
        return self.reduce_channels(weights @ self.append_waves(values), values.shape[-2])

    def make_table(self, like: Tensor) -> Tensor:
        """Make the vectors of the distances -offset … offset, whose angles start at 0."""
        return self.compute_waves(0, 2 * self.offset + 1, like)

    def extend_query(self, query: Tensor, num_context: int) -> Tensor:
        """Extend queries to 2c channels, whose product with keys and waves knows the distance.

        They are scaled by √2, because attention to 2c channels divides by √(2c) and not by √c.
        """
        waves = self.compute_waves(num_context - query.shape[-2], num_context, query)
        return torch.cat([query, rotate_pairs(query, waves)], -1) * 2**0.5

    def append_waves(self, states: Tensor) -> Tensor:
        """Append its waves to each position of a context, b h m 2c."""
        waves = self.compute_waves(0, states.shape[-2], states)
        return torch.cat([states, waves.expand_as(states)], -1)

    def reduce_channels(self, mixed: Tensor, num_context: int) -> Tensor:
        """Add the mixed waves, as each query sees them, to the mixed values."""
        values, mixed_waves = mixed.chunk(2, -1)
        waves = self.compute_waves(num_context - mixed.shape[-2], num_context, mixed)
        return values + rotate_pairs(mixed_waves, waves, -1)

    def compute_waves(self, start: int, stop: int, like: Tensor) -> Tensor:
        """Compute sine and cosine, in turn, of the positions ``start`` … ``stop`` - 1."""
        positions = torch.arange(start, stop, dtype=torch.float64, device=like.device)  # far ones need it
        return self.waves(positions, positions=positions).to(like.dtype)


def rotate_pairs(x: Tensor, waves: Tensor, direction: int = 1) -> Tensor:
    """Rotate each pair of channels by the angle whose sine and cosine are in ``waves``.

    With ``direction`` -1 it is rotated back.
    """
    (first, second), (sine, cosine) = (pair.unflatten(-1, (-1, 2)).unbind(-1) for pair in (x, waves))
    sine = direction * sine
    return torch.stack([first * cosine + second * sine, second * cosine - first * sine], -1).flatten(-2)
