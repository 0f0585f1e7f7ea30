"""Masked self-attention (MASS): only masked positions ask, so n² becomes masked · n.

Shapes: b batch, n queries, m context positions, d width, h heads.
"""

from typing import Literal

import torch
from torch import Tensor, nn

from mnemic.encode.attention.full import FullAttention, four_axes

Keys = Literal["others", "masked", "all"]


class MaskedAttention(nn.Module):
    """Attention of masked positions (``x``) to the whole text (``context``).

    ``keys`` says what a masked position sees: all ``others`` but itself; the other ``masked`` ones
    alone, where one that has no other keeps its own value; or ``all``, which gives the rows of full
    attention. ``places`` are where the queries stand in the context; without them ``x`` is its end.
    Descriptions of MASS have both "others" and "masked"; the speed comes from the choice of
    queries in either, so "others", which sees the words, is the default.
    """

    packs = False  # ``mask`` is never ``Packed``

    def __init__(
        self,
        width: int,
        *,
        heads: int = 4,
        dropout: float = 0.0,
        fused: bool = True,
        keys: Keys = "others",
    ) -> None:
        super().__init__()
        self.full = FullAttention(width, heads=heads, dropout=dropout, fused=fused)
        self.keys = keys

    def forward(
        self, x: Tensor, context: Tensor, mask: Tensor, places: Tensor | None = None
    ) -> Tensor:
        """``x`` b n d, ``context`` b m d, ``mask`` to b h n m, ``places`` b n → b n d.

        A place below 0 is padding: its row of ``mask`` lets it see nothing.
        """
        if places is None:
            end = torch.arange(context.shape[1] - x.shape[1], context.shape[1], device=x.device)
            places = end.expand(x.shape[0], -1)
        mask = four_axes(mask)
        if self.keys == "masked":
            context, mask = self.masked_only(x, context, mask, places)
            places = torch.arange(x.shape[1], device=x.device).expand_as(places)
        if self.keys != "all":
            columns = torch.arange(context.shape[1], device=x.device)
            own = (places.unsqueeze(-1) == columns).unsqueeze(1)  # b 1 n m
            others = mask & ~own
            if self.keys == "masked":
                others = others | (own & mask & ~others.any(-1, keepdim=True))
            mask = others
        return self.full(x, context, mask)

    def masked_only(
        self, x: Tensor, context: Tensor, mask: Tensor, places: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The context at the masked places alone, and who may see what of it."""
        real, safe, length = places >= 0, places.clamp(min=0), context.shape[1]
        context = context.gather(1, safe.unsqueeze(-1).expand(-1, -1, context.shape[-1]))
        whole = mask.expand(places.shape[0], -1, places.shape[1], length)  # b h n m
        columns = safe[:, None, None].expand(-1, *whole.shape[1:3], -1)  # b h n n
        return context, whole.gather(-1, columns) & real[:, None, None]
