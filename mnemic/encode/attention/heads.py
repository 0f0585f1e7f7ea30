"""The half of attention that every kind shares: project to heads and back.

Shapes: b batch, n queries, m context positions, d width, h heads, c channels of one head.
"""

from typing import NamedTuple

from torch import Tensor, nn

from mnemic.recipe import ConfigError


class Kept(NamedTuple):
    """What attention keeps of a context: made once, then read by any number of queries."""

    keys: Tensor  # b h m c
    values: Tensor  # b h m c


class Heads(nn.Module):
    """Queries, keys and values of each head, and the way back (Vaswani et al. 2017, 3.2.2)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        if heads < 1 or width % heads:
            raise ConfigError(f"width {width} does not divide into {heads} heads")
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def ask(self, x: Tensor) -> Tensor:
        return self.split(self.query(x))  # b n d -> b h n c

    def keep(self, context: Tensor) -> Kept:
        return Kept(self.split(self.key(context)), self.split(self.value(context)))

    def split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # b n d -> b h n c

    def join(self, x: Tensor) -> Tensor:
        return self.out(x.transpose(1, 2).flatten(2))  # b h n c -> b n d
