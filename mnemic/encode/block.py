"""One layer of a Transformer, as the paper draws it (Vaswani et al. 2017, figure 1).

Shapes: b batch, n tokens, m context positions, d width, h heads.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from mnemic.encode.attention import Kept
from mnemic.encode.packed import Packed

Norm = Literal["pre", "post"]
Activation = Literal["gelu", "gelu_tanh", "relu"]

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": nn.functional.gelu,
    "gelu_tanh": partial(nn.functional.gelu, approximate="tanh"),  # ALBERT and GPT-2
    "relu": nn.functional.relu,
}


class AddNorm(nn.Module):
    """The way around a sub-layer: norm(x + change) ("post"), or x + change(norm x) ("pre")."""

    def __init__(self, width: int, *, norm: Norm, epsilon: float, dropout: float) -> None:
        super().__init__()
        self.pre = norm == "pre"
        self.norm = nn.LayerNorm(width, eps=epsilon)
        self.dropout = nn.Dropout(dropout)

    def before(self, x: Tensor) -> Tensor:
        return self.norm(x) if self.pre else x

    def after(self, x: Tensor, change: Tensor) -> Tensor:
        x = x + self.dropout(change)
        return x if self.pre else self.norm(x)


class FeedForward(nn.Module):
    """W₂ activation(W₁ x), at every position alike (equation 2)."""

    def __init__(self, width: int, inner: int, activation: Activation) -> None:
        super().__init__()
        self.widen = nn.Linear(width, inner)
        self.narrow = nn.Linear(inner, width)
        self.activation = ACTIVATIONS[activation]

    def forward(self, x: Tensor) -> Tensor:
        return self.narrow(self.activation(self.widen(x)))


class EncoderBlock(nn.Module):
    """Self-attention, then a feed-forward network, each inside its add-and-norm."""

    def __init__(
        self, attention: nn.Module, feed: nn.Module, around: Callable[[], AddNorm]
    ) -> None:
        super().__init__()
        self.attention, self.around_attention = attention, around()
        self.feed, self.around_feed = feed, around()

    def forward(self, x: Tensor, mask: Tensor | Packed, before: Tensor | None = None) -> Tensor:
        """``x`` b n d; ``before`` b m d are states to look at beside it; ``mask`` to b h n m+n."""
        context = x if before is None else torch.cat([before, x], 1)  # b m+n d
        context = self.around_attention.before(context)
        x = self.around_attention.after(x, self.attention(context[:, -x.shape[1] :], context, mask))
        return self.around_feed.after(x, self.feed(self.around_feed.before(x)))


class DecoderBlock(nn.Module):
    """Self-attention, attention over a source (if ``cross`` is there), feed-forward network."""

    def __init__(
        self, attention: Any, cross: Any, feed: nn.Module, around: Callable[[], AddNorm]
    ) -> None:
        super().__init__()
        self.attention, self.around_attention = attention, around()
        self.cross, self.around_cross = cross, None if cross is None else around()
        self.feed, self.around_feed = feed, around()

    def forward(
        self, x: Tensor, mask: Tensor, past: Kept, source: Kept | None, source_mask: Tensor
    ) -> tuple[Tensor, Kept]:
        """``x`` b n d after ``past``; masks to b h n m → b n d and the past with ``x`` in it."""
        query = self.around_attention.before(x)
        kept = extend(past, self.attention.keep(query))
        x = self.around_attention.after(x, self.attention.mix(query, kept, mask))
        if self.around_cross is not None:
            query = self.around_cross.before(x)
            x = self.around_cross.after(x, self.cross.mix(query, source, source_mask))
        return self.around_feed.after(x, self.feed(self.around_feed.before(x))), kept


def extend(past: Kept, new: Kept) -> Kept:
    return Kept(*(torch.cat(pair, -2) for pair in zip(past, new)))  # b h m+n c
