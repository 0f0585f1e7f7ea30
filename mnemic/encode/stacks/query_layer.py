"""Causal layers with a query layer on top, as in PanGu-α.

Shapes: b batch, n tokens, m earlier tokens, d width.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.encode.attention import ATTENTIONS
from mnemic.encode.masks import CausalMask
from mnemic.encode.positions import LearnedPositions
from mnemic.encode.stacks.block import Activation, AddNorm, FeedForward
from mnemic.encode.stacks.decoder import DecoderOutput, DecoderStack, KeyValueCache
from mnemic.encode.stacks.encoder import DEFAULT_ATTENTION, min_length
from mnemic.recipe import ConfigError, build


class QueryLayerCache(NamedTuple):
    """The keys and values of all layers, so that no token is computed twice."""

    layers: KeyValueCache
    query_layer: Any  # what the attention of the query layer has projected, of the tokens so far

    @property
    def mask(self) -> Tensor:
        """The mask of the tokens so far, b m."""
        return self.layers.mask


class QueryLayerDecoder(nn.Module):
    """Causal layers, and one whose queries are positions (PanGu-α; Zeng et al. 2021).

    ``depth - 1`` pre-norm layers with their last norm give states H. The query of the top layer is
    a vector of the token's position, of a second table of ``length``; keys and values are norm(H),
    and the residual goes on from H. A feed-forward network follows, and no norm. The network asks
    "what comes at the next position?" instead of changing the token's own state into the next one.
    """

    supports_context = False

    def __init__(
        self,
        width: int,
        *,
        cross: bool = True,
        depth: int = 2,
        inner: int = 0,
        epsilon: float = 1e-5,
        activation: Activation = "gelu",
        dropout: float = 0.0,
        length: int = 512,
        attention: Mapping[str, Any] = DEFAULT_ATTENTION,
    ) -> None:
        super().__init__()
        if cross:
            raise ConfigError("a query layer has no attention over a source; use kind 'transformer'")
        if depth < 1:
            raise ConfigError(f"the query layer is one of the layers: depth is at least 1, not {depth}")
        options: dict[str, Any] = {"epsilon": epsilon, "activation": activation, "dropout": dropout}
        self.stack = DecoderStack(
            width, cross=False, depth=depth - 1, inner=inner, norm="pre", attention=attention, **options
        )
        self.positions = LearnedPositions(width, length=length)
        make_add_norm = partial(AddNorm, width, norm="pre", epsilon=epsilon, dropout=dropout)
        self.attention: Any = build(ATTENTIONS, attention, width=width, layer=depth - 1, depth=depth, is_causal=True)
        self.around_attention, self.around_feed = make_add_norm(), make_add_norm()
        self.feed = FeedForward(width, inner or 4 * width, activation)

    @property
    def max_length(self) -> int | None:
        """The maximum number of tokens."""
        return min_length((self.positions.max_length, self.stack.max_length))

    def empty_cache(self, like: Tensor) -> QueryLayerCache:
        """Return an empty key/value cache; ``like`` (b … d) gives batch size, type and device."""
        layers = self.stack.empty_cache(like)
        no_states = like.new_zeros(like.shape[0], 0, self.stack.width)
        return QueryLayerCache(layers, self.attention.project_key_values(no_states))

    def forward(self, x: Tensor, mask: Tensor, cache: QueryLayerCache | None = None) -> DecoderOutput:
        """Run all layers on tokens that follow those in the cache.

        ``x`` b n d, ``mask`` b n.
        """
        cache = self.empty_cache(x) if cache is None else cache
        output = self.stack(x, mask, cache.layers)
        states, layers = output.states, output.cache  # b n d
        query = self.positions(mask, start=cache.mask.shape[1]).to(states.dtype).expand_as(states)
        new = self.attention.project_key_values(self.around_attention.pre_norm(states))
        key_values = type(new)(*(torch.cat(pair, -2) for pair in zip(cache.query_layer, new)))
        attended = self.attention.attend(query, key_values, CausalMask(layers.mask))
        states = self.around_attention.add_and_norm(states, attended)
        states = self.around_feed.add_and_norm(states, self.feed(self.around_feed.pre_norm(states)))
        return DecoderOutput(states * mask.unsqueeze(-1), QueryLayerCache(layers, key_values))
