"""Transformer stacks: layers over states, with or without looking ahead.

Shapes: b batch, n tokens, m context positions, s source positions, d width, h heads.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.encode.attention import ATTENTIONS, Kept
from mnemic.encode.block import (
    Activation,
    AddNorm,
    DecoderBlock,
    EncoderBlock,
    FeedForward,
    Norm,
)
from mnemic.encode.packed import Packed
from mnemic.recipe import ConfigError, build

FULL: Mapping[str, Any] = {"kind": "full"}


class Context(NamedTuple):
    """What a stack may look at beside its own tokens: states for each layer, before the tokens.

    The cache of an earlier segment has other states in each layer; slots are the same in all.
    """

    layers: tuple[Tensor, ...]  # one a layer: b m d
    mask: Tensor  # b m


class EncoderStack(nn.Module):
    """Layers in which every token sees every token (Vaswani et al. 2017, figure 1, left).

    ``inner`` is the width of the feed-forward network, 0 for four times ``width``. With
    ``norm="pre"`` (Xiong et al. 2020) a last norm follows the layers. ``groups`` is the number of
    different layers: neighbours share their weights where it is smaller than ``depth`` (ALBERT;
    Lan et al. 2020, section 3.1), 0 for none that share. Padding comes out as zeros.
    """

    def __init__(
        self,
        width: int,
        *,
        depth: int = 2,
        groups: int = 0,
        inner: int = 0,
        norm: Norm = "post",
        epsilon: float = 1e-5,
        activation: Activation = "gelu",
        dropout: float = 0.0,
        attention: Mapping[str, Any] = FULL,
    ) -> None:
        super().__init__()
        if not 0 <= groups <= depth:
            raise ConfigError(f"{depth} layers cannot have the weights of {groups} groups")

        def around() -> AddNorm:
            return AddNorm(width, norm=norm, epsilon=epsilon, dropout=dropout)

        different = [
            EncoderBlock(
                build(ATTENTIONS, attention, width=width),
                FeedForward(width, inner or 4 * width, activation),
                around,
            )
            for _ in range(groups or depth)
        ]
        self.blocks = nn.ModuleList(different[i * len(different) // depth] for i in range(depth))
        self.norm = nn.LayerNorm(width, eps=epsilon) if norm == "pre" else nn.Identity()

    @property
    def packs(self) -> bool:
        """Whether ``mask`` may be ``Packed``."""
        blocks: list[Any] = list(self.blocks)
        return all(block.attention.packs for block in blocks)

    @property
    def drops(self) -> float:
        """The largest share of attention weights that is dropped now."""
        blocks: list[Any] = list(self.blocks)
        return max(block.attention.dropout for block in blocks) if self.training else 0.0

    def forward(self, x: Tensor, mask: Tensor | Packed, context: Context | None = None) -> Tensor:
        """``x`` b n d → b n d; ``mask`` b n, or b n n: which query (row) may see which token.

        Or ``Packed``: ``x`` is one row of texts, each of which sees itself.
        """
        *_, x = self.each(x, mask, context)
        return self.norm(x) * real(mask).unsqueeze(-1)

    def each(
        self, x: Tensor, mask: Tensor | Packed, context: Context | None = None
    ) -> Iterator[Tensor]:
        """What goes into the first layer and what comes out of each: depth + 1 times b n d.

        Before the last norm, and with whatever stands at padding.
        """
        visible = see(mask, context, self.packs)
        yield x
        for number, block in enumerate(self.blocks):
            x = block(x, visible, None if context is None else context.layers[number])
            yield x


class Cache(NamedTuple):
    """What a decoder has read so far: keys and values, so that no token is read twice."""

    past: tuple[Kept, ...]  # one a layer, of the tokens so far
    mask: Tensor  # b m, which of those tokens are real
    source: tuple[Kept, ...]  # one a layer, of the source; none without cross-attention
    source_mask: Tensor  # b s


class Decoded(NamedTuple):
    """States of the new tokens, and the cache to go on with."""

    states: Tensor  # b n d, zeros at padding
    cache: Cache


class DecoderStack(nn.Module):
    """Layers in which a token sees itself and the past, and a source (figure 1, right).

    ``cross=False`` leaves the source out: a language model. Token by token, each time with the
    cache of the time before, gives the same states as all at once. Other options: EncoderStack.
    """

    def __init__(
        self,
        width: int,
        *,
        cross: bool = True,
        depth: int = 2,
        inner: int = 0,
        norm: Norm = "post",
        epsilon: float = 1e-5,
        activation: Activation = "gelu",
        dropout: float = 0.0,
        attention: Mapping[str, Any] = FULL,
    ) -> None:
        super().__init__()
        self.width = width
        self.cross = cross

        def around() -> AddNorm:
            return AddNorm(width, norm=norm, epsilon=epsilon, dropout=dropout)

        self.blocks = nn.ModuleList(
            DecoderBlock(
                build(ATTENTIONS, attention, width=width),
                build(ATTENTIONS, attention, width=width) if cross else None,
                FeedForward(width, inner or 4 * width, activation),
                around,
            )
            for _ in range(depth)
        )
        self.norm = nn.LayerNorm(width, eps=epsilon) if norm == "pre" else nn.Identity()

    def empty(
        self, like: Tensor, source: Tensor | None = None, source_mask: Tensor | None = None
    ) -> Cache:
        """A cache before the first token, for ``like`` (b … d) and a source (b s d, mask b s)."""
        if self.cross != (source is not None and source_mask is not None):
            raise ValueError(
                "this decoder looks at a source: begin with empty(x, source, source_mask)"
                if self.cross
                else "a source came, but this decoder was built with cross=False"
            )
        nothing = like.new_zeros(like.shape[0], 0, self.width)  # b 0 d
        unmasked = nothing.new_zeros(nothing.shape[:2], dtype=torch.bool)  # b 0
        blocks: list[Any] = list(self.blocks)
        return Cache(
            past=tuple(block.attention.keep(nothing) for block in blocks),
            mask=unmasked,
            source=tuple(block.cross.keep(source) for block in blocks if self.cross),
            source_mask=unmasked if source_mask is None else source_mask,
        )

    def forward(self, x: Tensor, mask: Tensor, cache: Cache | None = None) -> Decoded:
        """``x`` b n d, the tokens after those in ``cache``; ``mask`` b n."""
        cache = self.empty(x) if cache is None else cache
        seen = torch.cat([cache.mask, mask], 1)  # b m+n
        visible = seen[:, None, None] & causal(mask.shape[1], seen.shape[1], x.device)
        source_visible = cache.source_mask[:, None, None]  # b 1 1 s
        past = []
        for number, block in enumerate(self.blocks):
            source = cache.source[number] if self.cross else None
            x, kept = block(x, visible, cache.past[number], source, source_visible)
            past.append(kept)
        states = self.norm(x) * mask.unsqueeze(-1)
        return Decoded(states, cache._replace(past=tuple(past), mask=seen))


def causal(queries: int, context: int, device: torch.device) -> Tensor:
    """Query i, the i-th of the context's end, sees itself and what is before it, n m."""
    places = torch.arange(context, device=device)
    return places <= places[context - queries :, None]


def see(mask: Tensor | Packed, context: Context | None, packs: bool) -> Tensor | Packed:
    """What each query may see of the context and the tokens, b 1 n|1 m+n."""
    if isinstance(mask, Packed):
        if packs and context is None:
            return mask
        mask = mask.dense()
    visible = mask.unsqueeze(1) if mask.dim() == 3 else mask[:, None, None]  # b 1 n|1 n
    if context is None:
        return visible
    beside = context.mask[:, None, None].expand(-1, -1, visible.shape[2], -1)
    return torch.cat([beside, visible], -1)


def real(mask: Tensor | Packed) -> Tensor:
    """Which tokens are no padding, b n; by a mask b n n, those that see or are seen."""
    if isinstance(mask, Packed):
        return torch.ones(1, mask.total, dtype=torch.bool, device=mask.edges.device)
    return mask if mask.dim() == 2 else mask.any(-1) | mask.any(-2)


STACKS: dict[str, Callable[..., nn.Module]] = {"encoder": EncoderStack}
DECODERS: dict[str, Callable[..., nn.Module]] = {"transformer": DecoderStack}
