"""A Transformer layer that only masked positions go through.

Shapes: b batch, n tokens, m masked positions of the row that has most, d width.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.encode.attention import MaskedAttention
from mnemic.encode.block import Activation, AddNorm, FeedForward
from mnemic.recipe import build

MASKED: Mapping[str, Any] = {"kind": "masked"}


class Places(NamedTuple):
    """Where masked positions stand, row by row; rows with fewer are filled up with -1."""

    columns: Tensor  # b m

    @property
    def real(self) -> Tensor:
        return self.columns >= 0

    def take(self, rows: Tensor) -> Tensor:
        """``rows`` b n … at the places, b m …; zeros where there is none."""
        index = self.columns.clamp(min=0).view(*self.columns.shape, *[1] * (rows.dim() - 2))
        taken = rows.gather(1, index.expand(*self.columns.shape, *rows.shape[2:]))
        return taken * self.real.view(index.shape).to(rows.dtype)


def places_of(hidden: Tensor) -> Places:
    """The places where ``hidden`` (b n, bool) is True, in order."""
    most = int(hidden.sum(1).max()) if hidden.numel() else 0
    order = hidden.long().argsort(dim=1, descending=True, stable=True)[:, :most]
    return Places(torch.where(hidden.gather(1, order), order, -1))


class MaskedLayer(nn.Module):
    """Masked attention and a feed-forward network, each inside its add-and-norm.

    What comes out is the state of each masked position, and nothing for any other: on 15 % of the
    positions, the whole layer is 15 % of a full one's work but for the keys and values.
    """

    def __init__(
        self,
        width: int,
        *,
        inner: int = 0,
        epsilon: float = 1e-5,
        activation: Activation = "gelu",
        dropout: float = 0.0,
        attention: Mapping[str, Any] = MASKED,
    ) -> None:
        super().__init__()
        self.attention = build({"masked": MaskedAttention}, attention, width=width)
        self.feed = FeedForward(width, inner or 4 * width, activation)
        self.around_attention, self.around_feed = (
            AddNorm(width, norm="post", epsilon=epsilon, dropout=dropout) for _ in range(2)
        )

    def forward(self, states: Tensor, mask: Tensor, places: Places) -> Tensor:
        """``states`` b n d, ``mask`` b n: real tokens → b m d, zeros where a row has fewer."""
        x = places.take(states)
        visible = mask[:, None, None] & places.real[:, None, :, None]  # b 1 m n
        x = self.around_attention.after(x, self.attention(x, states, visible, places.columns))
        x = self.around_feed.after(x, self.feed(x))
        return x * places.real.unsqueeze(-1)
