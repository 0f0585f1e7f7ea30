"""Stacks of reversible layers (Reformer), whose memory does not grow with their depth.

Shapes: b batch, n tokens, d width, h heads, r rounds of hashing.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from mnemic.encode.attention import ATTENTIONS
from mnemic.encode.masks import CausalMask
from mnemic.encode.packed import PackedMask
from mnemic.encode.stacks.block import Activation, AddNorm, FeedForward
from mnemic.encode.stacks.encoder import DEFAULT_ATTENTION, StackContext, min_length, real_token_mask
from mnemic.encode.stacks.rebuild import Streams, run_reversible
from mnemic.encode.stacks.recompute import RecomputingDecoder
from mnemic.recipe import ConfigError, build, check_repeats, require_kinds


class ReversibleBlock(nn.Module):
    """The two sublayers of a reversible layer: each reads one stream and changes the other.

    ``chunk_feed`` positions at a time go through the feed-forward network; 0: all at once.
    """

    def __init__(
        self, attention: Any, feed_forward: nn.Module, make_add_norm: Callable[[], AddNorm], chunk_feed: int
    ) -> None:
        super().__init__()
        self.attention, self.around_attention = attention, make_add_norm()
        self.feed, self.around_feed = feed_forward, make_add_norm()
        self.chunk_feed = chunk_feed

    def forward(
        self, sublayer: str, x: Tensor, mask: Tensor | CausalMask | PackedMask, buckets: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Compute a sublayer's update of the other stream, b n d, and attention's buckets.

        ``buckets`` are those of an earlier call that is repeated.
        """
        if sublayer == "feed":
            return self.around_feed.dropout(self.run_feed(x)), None
        x = normalize(self.around_attention, x)
        if getattr(self.attention, "draws_buckets", False):
            update, buckets = self.attention.attend_with_buckets(x, x, mask, buckets)
        else:
            update = self.attention(x, x, mask)
        return self.around_attention.dropout(update), buckets

    def run_feed(self, x: Tensor) -> Tensor:
        """Run the feed-forward network, on some positions at a time to save memory."""

        def run_piece(piece: Tensor) -> Tensor:
            return self.feed(normalize(self.around_feed, piece))

        if not self.chunk_feed:
            return run_piece(x)
        # Of all texts in turn: each piece is one block of memory, for which the same kernels run.
        pieces = x.flatten(0, 1).split(self.chunk_feed)
        updates = [checkpoint(run_piece, piece, use_reentrant=False, preserve_rng_state=False) for piece in pieces]
        return torch.cat(updates).view_as(x)

    def attention_scores(self, x: Tensor, mask: Tensor) -> Tensor:
        """Return the attention scores of this layer, b h n n; -inf where hidden.

        ``x`` is the second stream, b n d.
        """
        x = normalize(self.around_attention, x)
        return self.attention.attention_scores(x, x, mask)


class ReversibleStack(nn.Module):
    """Layers y₁ = x₁ + attention(x₂), y₂ = x₂ + feed(y₁) (Kitaev et al. 2020, section 3).

    Each sublayer normalizes its input. Both streams begin with the embeddings. The backward pass
    computes each layer's inputs from its outputs, so that the memory for activations does not grow
    with ``depth``; that takes a third more time. ``chunk_feed`` positions at a time go through the
    feed-forward network, of width ``inner`` (0: four times ``width``), whose activations are then
    never there for the whole text; 0: all at once. Any kind of attention fits.

    Where we differ: after the last norm, over both streams, a linear layer maps them to the width
    of one, which responses expect; in the paper they read both. Streams of 16-bit networks are in
    float32, as rebuilding them adds up rounding errors. Layers take no context of earlier states.
    """

    supports_context = False

    def __init__(
        self,
        width: int,
        *,
        depth: int = 2,
        inner: int = 0,
        epsilon: float = 1e-5,
        activation: Activation = "gelu",
        dropout: float = 0.0,
        chunk_feed: int = 0,
        attention: Mapping[str, Any] = DEFAULT_ATTENTION,
    ) -> None:
        super().__init__()
        check_repeats(depth=depth)
        if chunk_feed < 0:
            raise ConfigError(f"chunk_feed is a number of positions, or 0 for all at once, not {chunk_feed}")
        make_add_norm = partial(AddNorm, width, norm="pre", epsilon=epsilon, dropout=dropout)
        self.blocks: Any = nn.ModuleList(
            ReversibleBlock(
                build(ATTENTIONS, attention, width=width, layer=layer, depth=depth),
                FeedForward(width, inner or 4 * width, activation),
                make_add_norm,
                chunk_feed,
            )
            for layer in range(depth)
        )
        self.norm = nn.LayerNorm(2 * width, eps=epsilon)
        self.out = nn.Linear(2 * width, width)

    @property
    def supports_packing(self) -> bool:
        """Whether ``mask`` may be a ``PackedMask``."""
        return all(getattr(block.attention, "supports_packing", False) for block in self.blocks)

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

        ``mask`` is b n, or b n n where it depends on the query (row), or a ``PackedMask``.
        """
        if context is not None:
            raise ConfigError("reversible layers take no context of earlier states; use the stack 'encoder'")
        return self.run_layers(x, self.expand_mask(mask)) * real_token_mask(mask).unsqueeze(-1)

    def run_layers(self, x: Tensor, mask: Tensor | CausalMask | PackedMask) -> Tensor:
        """Run all layers with attention's own mask, b n d → b n d."""
        streams = run_reversible(self.blocks, widen_precision(x), mask)
        return self.out(self.norm(torch.cat(streams, -1).to(self.norm.weight.dtype))).to(x.dtype)

    def expand_mask(self, mask: Tensor | PackedMask) -> Tensor | PackedMask:
        """Expand a mask of tokens to b 1 1 n or b 1 n n."""
        if isinstance(mask, PackedMask):
            if self.supports_packing:
                return mask
            mask = mask.to_dense_mask()
        return mask.unsqueeze(1) if mask.dim() == 3 else mask[:, None, None]

    def iterate_layers(
        self, x: Tensor, mask: Tensor | PackedMask, context: StackContext | None = None
    ) -> Iterator[Tensor]:
        """Yield the second stream before the first layer, then after each: what attention reads.

        These are depth + 1 times b n d, all of which are stored for the backward pass.
        """
        if context is not None:
            raise ConfigError("reversible layers take no context of earlier states; use the stack 'encoder'")
        visible, streams = self.expand_mask(mask), Streams(x, x)
        yield x
        for block in self.blocks:
            first = streams.first + block("attention", streams.second, visible)[0]
            streams = Streams(first, streams.second + block("feed", first, visible)[0])
            yield streams.second


class ReversibleDecoder(RecomputingDecoder):
    """Reversible layers in which each token sees itself and the tokens before it.

    Options: ReversibleStack.
    """

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
        chunk_feed: int = 0,
        attention: Mapping[str, Any] = DEFAULT_ATTENTION,
    ) -> None:
        super().__init__(width, cross)
        require_kinds(ATTENTIONS, attention, "in a decoder", supports_causal=True)
        self.stack = ReversibleStack(
            width,
            depth=depth,
            inner=inner,
            epsilon=epsilon,
            activation=activation,
            dropout=dropout,
            chunk_feed=chunk_feed,
            attention=attention,
        )

    @property
    def max_length(self) -> int | None:
        """The maximum number of tokens; None if unlimited."""
        return self.stack.max_length

    def run_layers(self, x: Tensor, mask: CausalMask) -> Tensor:
        """Run all layers over whole texts, b n d → b n d."""
        return self.stack.run_layers(x, mask)


def normalize(add_norm: AddNorm, x: Tensor) -> Tensor:
    """Normalize the input of a sublayer, in the precision of its weights."""
    return add_norm.pre_norm(x.to(add_norm.norm.weight.dtype))


def widen_precision(x: Tensor) -> Tensor:
    """Convert 16-bit states to float32; leave others as they are."""
    return x.to(torch.promote_types(x.dtype, torch.float32))
