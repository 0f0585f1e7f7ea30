"""Stacks of Transformer layers: encoders and causal decoders.

Shapes: b batch, n tokens, m context positions, s source positions, d width, h heads.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.encode.attention import ATTENTIONS
from mnemic.encode.block import Activation, AddNorm, DecoderBlock, EncoderBlock, FeedForward, Norm
from mnemic.encode.masks import CausalMask
from mnemic.encode.packed import PackedMask
from mnemic.recipe import ConfigError, build, check_repeats, require_kinds

DEFAULT_ATTENTION: Mapping[str, Any] = {"kind": "full"}


class StackContext(NamedTuple):
    """States before the tokens that each layer may attend to.

    The cache of an earlier segment has different states per layer; memory slots are the same in
    all.
    """

    layers: tuple[Tensor, ...]  # one per layer: b m d
    mask: Tensor  # b m


class EncoderStack(nn.Module):
    """Transformer layers in which every token sees every token (Vaswani et al. 2017, figure 1).

    ``inner`` is the width of the feed-forward network, 0 for four times ``width``. With
    ``norm="pre"`` (Xiong et al. 2020) a last norm follows the layers. ``groups`` is the number of
    different layers: neighbors share their weights where it is smaller than ``depth`` (ALBERT; Lan
    et al. 2020, section 3.1); 0 means that no layers share. Padding comes out as zeros.
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
        attention: Mapping[str, Any] = DEFAULT_ATTENTION,
    ) -> None:
        super().__init__()
        check_repeats(depth=depth)
        if not 0 <= groups <= depth:
            raise ConfigError(f"{depth} layers cannot have the weights of {groups} groups")
        make_add_norm = partial(AddNorm, width, norm=norm, epsilon=epsilon, dropout=dropout)
        unique_blocks = [
            EncoderBlock(
                build(ATTENTIONS, attention, width=width, layer=layer, depth=depth),
                FeedForward(width, inner or 4 * width, activation),
                make_add_norm,
            )
            for layer in range(groups or depth)
        ]
        self.blocks: Any = nn.ModuleList(unique_blocks[i * len(unique_blocks) // depth] for i in range(depth))
        self.norm = nn.LayerNorm(width, eps=epsilon) if norm == "pre" else nn.Identity()

    @property
    def supports_packing(self) -> bool:
        """Whether ``mask`` may be a ``PackedMask``."""
        return all(getattr(block.attention, "supports_packing", False) for block in self.blocks)

    @property
    def supports_context(self) -> bool:
        """Whether the layers can attend to states before the tokens."""
        return all(getattr(block.attention, "supports_context", False) for block in self.blocks)

    @property
    def max_length(self) -> int | None:
        """The maximum number of tokens; None if unlimited."""
        return min_length(getattr(block.attention, "max_length", None) for block in self.blocks)

    @property
    def max_attention_dropout(self) -> float:
        """The largest attention dropout of the layers; 0 outside training."""
        dropouts = (block.attention.dropout for block in self.blocks)
        return max(dropouts, default=0.0) if self.training else 0.0

    def forward(self, x: Tensor, mask: Tensor | PackedMask, context: StackContext | None = None) -> Tensor:
        """Run all layers: ``x`` b n d → b n d.

        ``mask`` is b n, or b n n where it depends on the query (row). With a ``PackedMask``, ``x``
        is one row of packed texts, each of which attends only to itself.
        """
        *_, x = self.iterate_layers(x, mask, context)
        return self.norm(x) * real_token_mask(mask).unsqueeze(-1)

    def iterate_layers(
        self, x: Tensor, mask: Tensor | PackedMask, context: StackContext | None = None
    ) -> Iterator[Tensor]:
        """Yield the input of the first layer, then the output of each layer.

        These are depth + 1 times b n d, before the last norm; padding is not zeroed.
        """
        if isinstance(mask, PackedMask) and (context is not None or not self.supports_packing):
            mask = mask.to_dense_mask()
        if context is not None and not self.supports_context:
            raise ConfigError("the attention of these layers does not support a context of earlier states")
        visible = mask
        if isinstance(mask, Tensor):
            visible = mask.unsqueeze(1) if mask.dim() == 3 else mask[:, None, None]  # b 1 n|1 n
            if context is not None:
                context_visible = context.mask[:, None, None].expand(-1, -1, visible.shape[2], -1)
                visible = torch.cat([context_visible, visible], -1)  # b 1 n|1 m+n
        yield x
        for number, block in enumerate(self.blocks):
            x = block(x, visible, None if context is None else context.layers[number])
            yield x


class KeyValueCache(NamedTuple):
    """The key/value cache of a decoder, so that no token is computed twice."""

    past: tuple[Any, ...]  # what the attention of each layer has projected, of the tokens so far
    mask: Tensor  # b m, True at real tokens
    source: tuple[Any, ...]  # one per layer, of the source; empty without cross-attention
    source_mask: Tensor  # b s


class DecoderOutput(NamedTuple):
    """The states of the new tokens, and the extended key/value cache."""

    states: Tensor  # b n d, zeros at padding
    cache: Any  # with the ``mask`` of all tokens so far; of a ``DecoderStack`` a ``KeyValueCache``


class DecoderStack(nn.Module):
    """Causal Transformer layers with optional cross-attention over a source (figure 1, right).

    ``cross=False`` leaves the source out: a language model. ``cross_attention`` is another kind of
    attention over the source. Token by token, each time with the last cache, gives the same states
    as all at once. Other options: EncoderStack.
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
        attention: Mapping[str, Any] = DEFAULT_ATTENTION,
        cross_attention: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        check_repeats(depth=depth)
        self.width = width
        self.cross = cross
        causal_kinds = require_kinds(ATTENTIONS, attention, "in a decoder", supports_causal=True)
        if cross:
            cross_attention = attention if cross_attention is None else cross_attention
            require_kinds(causal_kinds, cross_attention, "over a source: set cross_attention", supports_cross=True)
        make_add_norm = partial(AddNorm, width, norm=norm, epsilon=epsilon, dropout=dropout)
        self.blocks: Any = nn.ModuleList(
            DecoderBlock(
                build(ATTENTIONS, attention, width=width, layer=layer, depth=depth),
                build(ATTENTIONS, cross_attention, width=width, layer=layer, depth=depth) if cross_attention else None,
                FeedForward(width, inner or 4 * width, activation),
                make_add_norm,
            )
            for layer in range(depth)
        )
        self.norm = nn.LayerNorm(width, eps=epsilon) if norm == "pre" else nn.Identity()

    @property
    def max_length(self) -> int | None:
        """The maximum number of tokens; None if unlimited."""
        return min_length(getattr(block.attention, "max_length", None) for block in self.blocks)

    def empty_cache(
        self, like: Tensor, source: Tensor | None = None, source_mask: Tensor | None = None
    ) -> KeyValueCache:
        """Return an empty key/value cache, with the keys and values of the source.

        ``like`` (b … d) gives batch size, type and device; the source is b s d, its mask b s.
        """
        if self.cross != (source is not None and source_mask is not None):
            raise ValueError(
                "this decoder attends to a source: start with empty_cache(x, source, source_mask)"
                if self.cross
                else "a source came, but this decoder was built with cross=False"
            )
        no_states = like.new_zeros(like.shape[0], 0, self.width)  # b 0 d
        empty_mask = no_states.new_zeros(no_states.shape[:2], dtype=torch.bool)  # b 0
        return KeyValueCache(
            past=tuple(block.attention.project_key_values(no_states) for block in self.blocks),
            mask=empty_mask,
            source=tuple(block.cross.project_key_values(source) for block in self.blocks if self.cross),
            source_mask=empty_mask if source_mask is None else source_mask,
        )

    def forward(self, x: Tensor, mask: Tensor, cache: KeyValueCache | None = None) -> DecoderOutput:
        """Run all layers on tokens that follow those in the cache.

        ``x`` b n d, ``mask`` b n.
        """
        cache = self.empty_cache(x) if cache is None else cache
        full_mask = torch.cat([cache.mask, mask], 1)  # b m+n
        visible = CausalMask(full_mask)
        source_visible = cache.source_mask[:, None, None]  # b 1 1 s
        new_past = []
        for number, block in enumerate(self.blocks):
            source = cache.source[number] if self.cross else None
            x, key_values = block(x, visible, cache.past[number], source, source_visible)
            new_past.append(key_values)
        states = self.norm(x) * mask.unsqueeze(-1)
        return DecoderOutput(states, cache._replace(past=tuple(new_past), mask=full_mask))


def min_length(lengths: Iterable[int | None]) -> int | None:
    """Return the smallest of several maximum lengths; None if all are unlimited."""
    return min((length for length in lengths if length is not None), default=None)


def real_token_mask(mask: Tensor | PackedMask) -> Tensor:
    """Return which tokens are not padding, b n.

    With a mask b n n those are the tokens that see any token or are seen.
    """
    if isinstance(mask, PackedMask):
        return torch.ones(1, mask.num_tokens, dtype=torch.bool, device=mask.cu_seqlens.device)
    return mask if mask.dim() == 2 else mask.any(-1) | mask.any(-2)


STACKS: dict[str, Callable[..., nn.Module]] = {"encoder": EncoderStack}
DECODERS: dict[str, Callable[..., nn.Module]] = {"transformer": DecoderStack}
