"""Multi-head projections, shared by all kinds of attention.

Shapes: b batch, n queries, m context positions, d width, h heads, c channels of one head.
"""

from typing import NamedTuple

from torch import Tensor, nn

from mnemic.recipe import ConfigError


class KeyValues(NamedTuple):
    """The keys and values of a context, computed once for any number of queries."""

    keys: Tensor  # b h m c
    values: Tensor  # b h m c


class HeadProjection(nn.Module):
    """Linear projections to queries, keys and values, and back (Vaswani et al. 2017, 3.2.2)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        if heads < 1 or width % heads:
            raise ConfigError(f"width {width} does not divide into {heads} heads")
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

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
