"""Masked self-attention (MASS): only masked positions are queries, so n² becomes masked · n.

Shapes: b batch, n queries, m context positions, d width, h heads.
"""

from typing import Literal

import torch
from torch import Tensor, nn

from mnemic.encode.attention.full import FullAttention
from mnemic.encode.masks import expand_to_four_axes

VisibleKeys = Literal["others", "masked", "all"]


class MaskedAttention(nn.Module):
    """Attend from masked positions (``x``) to the whole text (``context``).

    ``keys`` is what a masked position sees: all ``others`` but itself; only the other ``masked``
    ones, where a position without any other keeps its own value; or ``all``, which gives the rows
    of full attention. ``positions`` are the queries' positions in the context; without them ``x``
    is its end. Descriptions of MASS have both "others" and "masked"; the speed comes from the
    choice of queries in either, so "others", which sees the words, is the default.
    """

    supports_context = supports_rows = supports_scores = True
    supports_packing = False  # ``mask`` is never a ``PackedMask``

    def __init__(
        self, width: int, *, heads: int = 4, dropout: float = 0.0, fused: bool = True, keys: VisibleKeys = "others"
    ) -> None:
        super().__init__()
        self.full = FullAttention(width, heads=heads, dropout=dropout, fused=fused)
        self.keys = keys

    @property
    def heads(self) -> int:
        """The number of heads."""
        return self.full.heads

    def forward(self, x: Tensor, context: Tensor, mask: Tensor, positions: Tensor | None = None) -> Tensor:
        """Attend from the masked positions to the context.

        ``x`` b n d, ``context`` b m d, ``mask`` to b h n m, ``positions`` b n → b n d. A position
        below 0 is padding: its row of ``mask`` lets it see nothing.
        """
        return self.full(x, *self.select_visible(x, context, mask, positions))

    def attention_scores(self, x: Tensor, context: Tensor, mask: Tensor, positions: Tensor | None = None) -> Tensor:
        """Return the scores before the softmax, b h n m; -inf at hidden positions.

        With ``keys="masked"`` the columns are the masked positions alone.
        """
        return self.full.attention_scores(x, *self.select_visible(x, context, mask, positions))

    def select_visible(
        self, x: Tensor, context: Tensor, mask: Tensor, positions: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Select what each masked position may attend to: a context, and the mask over it."""
        if positions is None:
            end = torch.arange(context.shape[1] - x.shape[1], context.shape[1], device=x.device)
            positions = end.expand(x.shape[0], -1)
        mask = expand_to_four_axes(mask)
        if self.keys == "masked":
            context, mask = self.select_masked_context(x, context, mask, positions)
            positions = torch.arange(x.shape[1], device=x.device).expand_as(positions)
        if self.keys != "all":
            columns = torch.arange(context.shape[1], device=x.device)
            is_self = (positions.unsqueeze(-1) == columns).unsqueeze(1)  # b 1 n m
            visible = mask & ~is_self
            if self.keys == "masked":
                visible = visible | (is_self & mask & ~visible.any(-1, keepdim=True))
            mask = visible
        return context, mask

    def select_masked_context(
        self, x: Tensor, context: Tensor, mask: Tensor, positions: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Select the context at the masked positions, and the mask over it."""
        is_real, safe_positions, length = positions >= 0, positions.clamp(min=0), context.shape[1]
        context = context.gather(1, safe_positions.unsqueeze(-1).expand(-1, -1, context.shape[-1]))
        full_mask = mask.expand(positions.shape[0], -1, positions.shape[1], length)  # b h n m
        columns = safe_positions[:, None, None].expand(-1, *full_mask.shape[1:3], -1)  # b h n n
        return context, full_mask.gather(-1, columns) & is_real[:, None, None]
