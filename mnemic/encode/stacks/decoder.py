"""The stack of causal Transformer layers, a decoder.

Shapes: b batch, n tokens, m earlier tokens, s source positions, d width, h heads.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.encode.attention import ATTENTIONS
from mnemic.encode.masks import CausalMask
from mnemic.encode.norms import NORMS, NormKind, make_norm
from mnemic.encode.stacks.block import (
    DEFAULT_FEED,
    FEED_FORWARDS,
    Activation,
    AddNorm,
    DecoderBlock,
    Norm,
    share_across_layers,
)
from mnemic.encode.stacks.context import StackContext
from mnemic.encode.stacks.encoder import DEFAULT_ATTENTION, min_length, require_ability
from mnemic.recipe import ConfigError, build, check_repeats, join_words, require_kinds


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
    layer_inputs: tuple[Tensor, ...] = ()  # one per layer: b n d, if the stack supports a context


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
        norm_kind: NormKind = "layer",
        epsilon: float = 1e-5,
        activation: Activation = "gelu",
        dropout: float = 0.0,
        feed: Mapping[str, Any] = DEFAULT_FEED,
        attention: Mapping[str, Any] = DEFAULT_ATTENTION,
        cross_attention: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        check_repeats(depth=depth)
        if not getattr(NORMS[norm_kind], "supports_causal", True):
            known = join_words(kind for kind, norm in NORMS.items() if getattr(norm, "supports_causal", True))
            raise ConfigError(f"a norm of kind {norm_kind!r} sees later tokens; in a decoder norm_kind is {known}")
        self.width = width
        self.cross = cross
        causal_kinds = require_kinds(ATTENTIONS, attention, "in a decoder", supports_causal=True)
        if cross:
            cross_attention = attention if cross_attention is None else cross_attention
            require_kinds(causal_kinds, cross_attention, "over a source: set cross_attention", supports_cross=True)
        make_add_norm = partial(AddNorm, width, norm=norm, epsilon=epsilon, dropout=dropout, norm_kind=norm_kind)
        facts: dict[str, Any] = {"width": width, "depth": depth}
        self.blocks: Any = nn.ModuleList(
            DecoderBlock(
                build(ATTENTIONS, attention, layer=layer, is_causal=True, **facts),
                build(ATTENTIONS, cross_attention, layer=layer, is_cross=True, **facts) if cross_attention else None,
                build(FEED_FORWARDS, feed, width=width, inner=inner or 4 * width, activation=activation),
                make_add_norm,
            )
            for layer in range(depth)
        )
        share_across_layers(self.blocks)
        self.norm = make_norm(norm_kind, width, epsilon) if norm == "pre" else nn.Identity()

    @property
    def max_length(self) -> int | None:
        """The maximum number of tokens; None if unlimited."""
        return min_length(getattr(block.attention, "max_length", None) for block in self.blocks)

    @property
    def supports_context(self) -> bool:
        """Whether the layers can attend to states of earlier segments."""
        return all(getattr(block.attention, "supports_context", False) for block in self.blocks)

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

    def project_context(self, context: StackContext) -> KeyValueCache:
        """Compute the key/value cache of a context: keys and values of today's weights."""
        if self.cross:
            raise ConfigError("layers that attend to a source do not support a context: build them with cross=False")
        require_ability(self.blocks, "supports_context", "support a context of earlier states")
        past = tuple(block.project_context(layer) for block, layer in zip(self.blocks, context.layers, strict=True))
        return KeyValueCache(past, context.mask, (), context.mask[:, :0])

    def forward(
        self, x: Tensor, mask: Tensor, cache: KeyValueCache | None = None, *, context: StackContext | None = None
    ) -> DecoderOutput:
        """Run all layers on tokens that follow those in the cache, or in a context.

        ``x`` b n d, ``mask`` b n.
        """
        if context is not None:
            cache = self.project_context(context)
        cache = self.empty_cache(x) if cache is None else cache
        full_mask = torch.cat([cache.mask, mask], 1)  # b m+n
        visible = CausalMask(full_mask)
        source_visible = cache.source_mask[:, None, None]  # b 1 1 s
        new_past, layer_inputs = [], []
        for number, block in enumerate(self.blocks):
            source = cache.source[number] if self.cross else None
            layer_inputs.append(x)
            x, key_values = block(x, visible, cache.past[number], source, source_visible)
            new_past.append(key_values)
        states = self.norm(x) * mask.unsqueeze(-1)
        cache = cache._replace(past=tuple(new_past), mask=full_mask)
        return DecoderOutput(states, cache, tuple(layer_inputs))

    def iterate_scores(self, x: Tensor, mask: Tensor, context: StackContext) -> Iterator[Tensor]:
        """Yield each layer's attention scores, b h n m+n; -inf where hidden.

        ``x`` b n d and ``mask`` b n follow the context of m states.
        """
        require_ability(self.blocks, "supports_scores", "return its scores")
        visible = CausalMask(torch.cat([context.mask, mask], 1))
        layer_inputs = self(x, mask, context=context).layer_inputs
        for block, layer_input, prefix in zip(self.blocks, layer_inputs, context.layers):
            yield block.attention_scores(layer_input, prefix, visible)
