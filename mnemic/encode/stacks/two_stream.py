"""Transformer layers with two streams of states: with a token's content, and without it.

Shapes: b batch, n tokens, m context positions, t asked tokens of a text, d width, h heads, c
channels of one head.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.encode.attention.transformer_xl import BIAS_SCALE, TransformerXLAttention
from mnemic.encode.packed import PackedMask
from mnemic.encode.stacks.block import Activation, AddNorm, FeedForward, Norm
from mnemic.encode.stacks.context import StackContext
from mnemic.encode.stacks.encoder import real_token_mask
from mnemic.recipe import check_repeats

SEEN_BY_ALL = -1  # the rank of a token that is not predicted


class FactorizationOrder(NamedTuple):
    """The order in which tokens of texts are predicted, and which of them are asked."""

    ranks: Tensor  # b n, in the order; SEEN_BY_ALL: before all others
    queries: Tensor  # b t, positions of the asked tokens; n = none


class Stream(NamedTuple):
    """States at some tokens, and what each of them may see of the context."""

    states: Tensor  # b n d
    visible: Tensor  # b n|1 m
    is_other: Tensor  # b n m, True where the context is in another segment
    positions: Tensor | None = None  # b n, of the tokens in the context; None: they are its end


class RelativeSegments(nn.Module):
    """Score whether two tokens are in one segment (Yang et al. 2019, section 2.5)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.randn(heads, 1, width // heads) * BIAS_SCALE)  # h 1 c
        self.vectors = nn.Parameter(torch.randn(2, heads, width // heads) * BIAS_SCALE)  # same, other

    def forward(self, query: Tensor, is_other: Tensor) -> Tensor:
        """Score all pairs.

        ``query`` b h n c, ``is_other`` b n m → b h n m.
        """
        scores = (query + self.bias) @ self.vectors.permute(1, 2, 0) * query.shape[-1] ** -0.5  # b h n 2
        same_scores, other_scores = scores.unsqueeze(-2).unbind(-1)  # b h n 1
        return torch.where(is_other.unsqueeze(1), other_scores, same_scores)


class TwoStreamBlock(nn.Module):
    """One layer that both streams share; keys and values are those of the content stream."""

    def __init__(self, attention: TransformerXLAttention, width: int, feed: nn.Module, make_add_norm: Any) -> None:
        super().__init__()
        self.attention, self.segments = attention, RelativeSegments(width, attention.heads)
        self.around_attention: AddNorm = make_add_norm()
        self.feed, self.around_feed = feed, make_add_norm()

    def forward(self, streams: list[Stream], prefix: Tensor | None = None) -> list[Stream]:
        """Run the layer on the content stream, the first, and on a query stream.

        ``prefix`` b m d are inputs of this layer before the tokens.
        """
        content = streams[0].states
        context = content if prefix is None else torch.cat([prefix, content], 1)
        key_values = self.attention.project_key_values(self.around_attention.pre_norm(context))
        return [stream._replace(states=self.run_stream(stream, key_values)) for stream in streams]

    def attention_scores(self, stream: Stream, prefix: Tensor) -> Tensor:
        """Return the scores of the content stream, b h n m; -inf where hidden."""
        context = self.around_attention.pre_norm(torch.cat([prefix, stream.states], 1))
        x = context[:, -stream.states.shape[1] :]
        segment_scores = self.segments(self.attention.project.project_query(x), stream.is_other)
        return self.attention.attention_scores(x, context, stream.visible.unsqueeze(1)) + segment_scores

    def run_stream(self, stream: Stream, key_values: Any) -> Tensor:
        """Compute the new states of one stream."""
        query = self.attention.project.project_query(self.around_attention.pre_norm(stream.states))
        update = self.attention.attend_heads(
            query,
            key_values,
            stream.visible.unsqueeze(1),
            positions=stream.positions,
            extra_scores=self.segments(query, stream.is_other),
        )
        x = self.around_attention.add_and_norm(stream.states, update)
        return self.around_feed.add_and_norm(x, self.feed(self.around_feed.pre_norm(x)))


class TwoStreamStack(nn.Module):
    """Two-stream self-attention over relative distances and segments (XLNet; Yang et al. 2019).

    Section 2.3, arXiv:1906.08237. The content stream is an encoder's, and the only one that
    ``forward`` computes: what later tasks use. ``predict`` gets an order of the tokens, too. Then
    the content of a token sees its own rank and those before it; the query stream, which starts as
    one learned vector at each asked token, only those before it. Attention is of the kind
    ``transformer-xl``, with ``heads``, ``attention_dropout``, ``clamp`` and ``fused``; the other
    options are those of ``encoder``. Segments are relative, so the embeddings need neither segments
    nor positions. A context counts as segment 0.

    Where we differ: a query that may see nothing gets zeros; in the published code it sees all.
    """

    takes_segments = reads_in_order = True
    num_segments = 2
    supports_context = supports_rows = True
    supports_packing = False
    max_length: int | None = None

    def __init__(
        self,
        width: int,
        *,
        depth: int = 2,
        inner: int = 0,
        norm: Norm = "post",
        epsilon: float = 1e-12,
        activation: Activation = "gelu",
        dropout: float = 0.0,
        heads: int = 4,
        attention_dropout: float = 0.0,
        clamp: int = 0,
        fused: bool = True,
    ) -> None:
        super().__init__()
        check_repeats(depth=depth)
        make_add_norm = partial(AddNorm, width, norm=norm, epsilon=epsilon, dropout=dropout)
        self.blocks: Any = nn.ModuleList(
            TwoStreamBlock(
                TransformerXLAttention(width, heads=heads, dropout=attention_dropout, fused=fused, clamp=clamp),
                width,
                FeedForward(width, inner or 4 * width, activation),
                make_add_norm,
            )
            for _ in range(depth)
        )
        self.query_start = nn.Parameter(torch.randn(width) * width**-0.5)
        self.dropout = nn.Dropout(dropout)
        self.norm = nn.LayerNorm(width, eps=epsilon) if norm == "pre" else nn.Identity()

    @property
    def max_attention_dropout(self) -> float:
        """The largest attention dropout of the layers; 0 outside training."""
        return max((block.attention.dropout for block in self.blocks), default=0.0) if self.training else 0.0

    def forward(
        self,
        x: Tensor,
        mask: Tensor | PackedMask,
        context: StackContext | None = None,
        *,
        segments: Tensor | None = None,
    ) -> Tensor:
        """Run the content stream alone: ``x`` b n d → b n d.

        ``mask`` is b n, or b n n where it depends on the query; ``segments`` b n.
        """
        *_, x = self.iterate_layers(x, mask, context, segments=segments)
        return self.norm(x) * real_token_mask(mask).unsqueeze(-1)

    def iterate_layers(
        self,
        x: Tensor,
        mask: Tensor | PackedMask,
        context: StackContext | None = None,
        *,
        segments: Tensor | None = None,
    ) -> Iterator[Tensor]:
        """Yield the input of the first layer, then the content states of each."""
        x = x + 0 * self.query_start  # it gets a gradient, of 0: processes that train together wait for it
        streams = [start_content_stream(x, mask, context, segments)]
        yield x
        for number, block in enumerate(self.blocks):
            streams = block(streams, None if context is None else context.layers[number])
            yield streams[0].states

    def iterate_scores(self, x: Tensor, mask: Tensor, context: StackContext) -> Iterator[Tensor]:
        """Yield each layer's scores of the content stream, b h n m+n; -inf where hidden.

        ``x`` b n d and ``mask`` b n follow the context of m states.
        """
        stream = start_content_stream(x, mask, context)
        for block, states, prefix in zip(self.blocks, self.iterate_layers(x, mask, context), context.layers):
            yield block.attention_scores(stream._replace(states=states), prefix)

    def predict(
        self,
        x: Tensor,
        mask: Tensor,
        order: FactorizationOrder,
        context: StackContext | None = None,
        *,
        segments: Tensor | None = None,
    ) -> tuple[Tensor, list[Tensor]]:
        """Run both streams; return the query states of asked tokens, and all layers' contents.

        ``x`` b n d, ``mask`` b n → b n d, zeros at tokens that are not asked; and depth + 1 times
        b n d, the content states from the first layer's input on.
        """
        is_asked = order.queries < x.shape[1]  # b t
        positions = order.queries.clamp(max=x.shape[1] - 1)
        start = self.dropout(self.query_start.expand(*positions.shape, -1)).to(x.dtype)
        content_visible, query_visible = order_visible(order.ranks, mask, positions, is_asked)
        is_other = find_other_segments(x, segments, context)
        num_earlier = 0 if context is None else context.mask.shape[1]
        streams = [
            Stream(x, prepend_visible(content_visible, context), is_other),
            Stream(
                start,
                prepend_visible(query_visible, context),
                is_other.gather(1, positions.unsqueeze(-1).expand(-1, -1, is_other.shape[2])),
                positions + num_earlier,
            ),
        ]
        contents = [x]
        for number, block in enumerate(self.blocks):
            streams = block(streams, None if context is None else context.layers[number])
            contents.append(streams[0].states)
        states = self.norm(streams[1].states) * is_asked.unsqueeze(-1)  # b t d
        # The last row takes queries that ask nothing.
        blank = states.new_zeros(x.shape[0], x.shape[1] + 1, x.shape[2])
        scattered = blank.scatter(1, order.queries.unsqueeze(-1).expand_as(states), states)
        return scattered[:, :-1], contents


def start_content_stream(
    x: Tensor, mask: Tensor | PackedMask, context: StackContext | None, segments: Tensor | None = None
) -> Stream:
    """Make the content stream of embeddings (b n d), which sees all real tokens."""
    mask = mask.to_dense_mask() if isinstance(mask, PackedMask) else mask
    mask = mask.unsqueeze(1) if mask.dim() == 2 else mask  # b n|1 n
    return Stream(x, prepend_visible(mask, context), find_other_segments(x, segments, context))


def order_visible(ranks: Tensor, mask: Tensor, positions: Tensor, is_asked: Tensor) -> tuple[Tensor, Tensor]:
    """Say what contents see and what asked tokens see.

    ``ranks``, ``mask`` b n; ``positions``, ``is_asked`` b t → b n n and b t n.
    """
    always = (ranks == SEEN_BY_ALL).unsqueeze(1)  # b 1 n
    is_self = torch.eye(ranks.shape[1], dtype=torch.bool, device=ranks.device)
    content = always | (ranks.unsqueeze(1) < ranks.unsqueeze(2)) | is_self
    query_ranks = ranks.gather(1, positions).unsqueeze(2)  # b t 1
    query = (always | (ranks.unsqueeze(1) < query_ranks)) & is_asked.unsqueeze(2)
    return content & mask.unsqueeze(1), query & mask.unsqueeze(1)


def prepend_visible(visible: Tensor, context: StackContext | None) -> Tensor:
    """Prepend the columns of a context, seen by all: b n n → b n m."""
    if context is None:
        return visible
    return torch.cat([context.mask.unsqueeze(1).expand(-1, visible.shape[1], -1), visible], -1)


def find_other_segments(x: Tensor, segments: Tensor | None, context: StackContext | None) -> Tensor:
    """Say which context positions are in another segment than each token, b n m."""
    if segments is None:
        segments = torch.zeros(x.shape[:2], dtype=torch.long, device=x.device)
    columns = segments
    if context is not None:
        columns = torch.cat([torch.zeros_like(context.mask, dtype=segments.dtype), segments], 1)
    return segments.unsqueeze(2) != columns.unsqueeze(1)
