"""A Transformer layer that only masked positions go through.

Shapes: b batch, n tokens, m masked positions of the row that has the most, d width.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.encode.attention import MaskedAttention
from mnemic.encode.stacks.block import Activation, AddNorm, FeedForward
from mnemic.recipe import build

DEFAULT_ATTENTION: Mapping[str, Any] = {"kind": "masked"}


class MaskedPositions(NamedTuple):
    """The masked positions of each row; rows with fewer are filled up with -1."""

    columns: Tensor  # b m

    @property
    def is_real(self) -> Tensor:
        """Mask of ``columns``: True at masked positions, False at padding, b m."""
        return self.columns >= 0

    def gather_rows(self, rows: Tensor) -> Tensor:
        """Gather ``rows`` (b n …) at the positions, b m …; zeros at padding."""
        index = self.columns.clamp(min=0).view(*self.columns.shape, *[1] * (rows.dim() - 2))
        values = rows.gather(1, index.expand(*self.columns.shape, *rows.shape[2:]))
        return values * self.is_real.view(index.shape).to(rows.dtype)


def find_masked_positions(is_masked: Tensor) -> MaskedPositions:
    """Find the positions where ``is_masked`` (b n, bool) is True, in order."""
    max_masked = int(is_masked.sum(1).max()) if is_masked.numel() else 0
    order = is_masked.long().argsort(dim=1, descending=True, stable=True)[:, :max_masked]
    return MaskedPositions(torch.where(is_masked.gather(1, order), order, -1))


class MaskedLayer(nn.Module):
    """Masked attention and a feed-forward network, each with residual and layer norm.

    The output is the state of each masked position, and nothing for any other: on 15 % of the
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
        attention: Mapping[str, Any] = DEFAULT_ATTENTION,
    ) -> None:
        super().__init__()
        self.attention = build({"masked": MaskedAttention}, attention, width=width)
        self.feed = FeedForward(width, inner or 4 * width, activation)
        self.around_attention, self.around_feed = (
            AddNorm(width, norm="post", epsilon=epsilon, dropout=dropout) for _ in range(2)
        )

    def forward(self, states: Tensor, mask: Tensor, positions: MaskedPositions) -> Tensor:
        """Compute the states of the masked positions.

        ``states`` b n d, ``mask`` b n (real tokens) → b m d, zeros where a row has fewer positions.
        """
        x = positions.gather_rows(states)
        visible = mask[:, None, None] & positions.is_real[:, None, :, None]  # b 1 m n
        x = self.around_attention.add_and_norm(x, self.attention(x, states, visible, positions.columns))
        x = self.around_feed.add_and_norm(x, self.feed(x))
        return x * positions.is_real.unsqueeze(-1)
