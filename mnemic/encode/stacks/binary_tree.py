"""The BP-Transformer: tokens see near tokens in detail and far ones as spans.

Shapes: b batch, n tokens, t tokens of the tree (n and filler), s spans of a level, u all nodes, d
width, h heads, c channels of one head, k neighbors, g tokens of a block, w nodes of a window,
o blocks.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.encode.masks import CausalMask
from mnemic.encode.stacks.block import AddNorm, EncoderBlock, FeedForward
from mnemic.encode.stacks.recompute import RecomputingDecoder
from mnemic.encode.stacks.tree_layout import NeighborWindow, TreeLayout, make_layout
from mnemic.encode.stacks.whole_text import check_whole_texts, gather_tokens, order_real_first, scatter_tokens
from mnemic.recipe import ConfigError, check_repeats


class TreeMask(NamedTuple):
    """The tree over a batch of texts, in place of a mask."""

    layout: TreeLayout
    lengths: Tensor  # b, the number of real tokens of each text; they come first


class TreeAttention(nn.Module):
    """Attention over the edges of a binary tree (Ye et al. 2019, section 3).

    Score of node j for token i: q_i·(k_j + r)/√c, with one vector r per level, side and rank of a
    neighbor, and one for the token itself. Nothing has a bias. A span has the same edge to all its
    tokens, so it needs no vector. Heads share the vectors, and so do levels from ``max_level`` on.
    """

    def __init__(
        self, width: int, *, heads: int, neighbors: int, max_level: int, is_causal: bool, dropout: float
    ) -> None:
        super().__init__()
        if heads < 1 or width % heads:
            raise ConfigError(f"width {width} does not divide into {heads} heads")
        self.heads, self.neighbors, self.max_level = heads, neighbors, max_level
        self.query, self.key, self.value, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))
        num_sides, channels = 1 if is_causal else 2, width // heads
        self.itself = nn.Parameter(torch.empty(channels))
        self.edges = nn.Parameter(torch.empty(num_sides, max_level + 1, neighbors, channels))
        for linear in (self.query, self.key, self.value, self.out):
            nn.init.xavier_uniform_(linear.weight)
        bound = (6 / (channels + self.edges.numel() // channels + 1)) ** 0.5  # Xavier's, of all vectors
        nn.init.uniform_(self.itself, -bound, bound)
        nn.init.uniform_(self.edges, -bound, bound)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, context: Tensor, tree: TreeMask) -> Tensor:
        """Attend from all nodes to their neighbors or tokens.

        ``x`` b u d, and ``context`` the same → b u d.
        """
        layout = tree.layout
        query = self.split_heads(self.query(x)) * (x.shape[-1] // self.heads) ** -0.5  # b h u c
        keys, values = self.split_heads(self.key(x)), self.split_heads(self.value(x))
        outputs = [self.mix_neighbors(query[:, :, : layout.num_tokens], keys, values, tree)]
        spans = query[:, :, layout.num_tokens :].split(count_spans(layout, x.shape[1]), 2)
        keys, values = (states[:, :, : layout.num_tokens].contiguous() for states in (keys, values))
        is_real = torch.arange(layout.num_tokens, device=x.device) < tree.lengths.unsqueeze(1)  # b t
        outputs += [self.mix_tokens(span, keys, values, is_real) for span in spans]
        return self.out(torch.cat(outputs, 2).transpose(1, 2).flatten(2))

    def split_heads(self, x: Tensor) -> Tensor:
        """Split the channels into heads."""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # b u d -> b h u c

    def mix_neighbors(self, query: Tensor, keys: Tensor, values: Tensor, tree: TreeMask) -> Tensor:
        """Mix the values of each token and its neighbors at all levels.

        ``query`` b h t c, ``keys`` and ``values`` b h u c → b h t c.
        """
        num_tokens, windows = tree.layout.num_tokens, tree.layout.windows
        scores = [(query * keys[:, :, :num_tokens]).sum(-1, keepdim=True) + (query @ self.itself).unsqueeze(-1)]
        scores += [self.score_window(query, keys, window, tree.lengths) for window in windows]  # b h t w
        weights = self.dropout(torch.cat(scores, -1).softmax(-1))
        weight, *window_weights = weights.split([score.shape[-1] for score in scores], -1)
        mixed = weight * values[:, :, :num_tokens]
        for window, window_weight in zip(windows, window_weights):
            blocks = split_blocks(window_weight, window) @ gather_window(values, window)  # b h o g c
            mixed = mixed + join_blocks(blocks, window, num_tokens)
        return mixed

    def score_window(self, query: Tensor, keys: Tensor, window: NeighborWindow, lengths: Tensor) -> Tensor:
        """Score the nodes of a window, -inf where unseen: b h t w."""
        blocks = split_blocks(query, window)  # b h o g c
        edges = self.edges[0 if window.is_past else 1]
        edges = torch.cat([self.edge_vectors(edges, window.level), self.edge_vectors(edges, window.level + 1)[:1]])
        rank_scores = blocks @ edges.mT  # b h o g k+1
        ranks = window.ranks.expand(*rank_scores.shape[:-2], -1, -1)
        scores = blocks @ gather_window(keys, window).mT + rank_scores.gather(-1, ranks)  # b h o g w
        has_tokens = window.starts < lengths[:, None, None]  # b o w
        visible = window.is_edge & has_tokens[:, None, :, None]  # b 1 o g w
        return join_blocks(scores.masked_fill(~visible, float("-inf")), window, query.shape[2])

    def edge_vectors(self, edges: Tensor, level: int) -> Tensor:
        """Select the vectors of a level, k c."""
        return edges[min(level, self.max_level)]

    def mix_tokens(self, query: Tensor, keys: Tensor, values: Tensor, is_real: Tensor) -> Tensor:
        """Mix the values of the tokens that each span covers.

        ``query`` b h s c, ``keys`` and ``values`` b h t c, ``is_real`` b t → b h s c. Spans without
        a real token are of no use to anyone: they see their filler.
        """
        shape = (query.shape[2], keys.shape[2] // query.shape[2])
        visible = is_real.unflatten(1, shape)  # b s t/s
        visible = (visible | ~visible.any(-1, keepdim=True)).unsqueeze(1)
        scores = (keys.unflatten(2, shape) @ query.unsqueeze(-1)).squeeze(-1)  # b h s t/s
        weights = self.dropout(scores.masked_fill(~visible, float("-inf")).softmax(-1))
        return (weights.unsqueeze(-2) @ values.unflatten(2, shape)).squeeze(-2)


class BinaryTreeStack(nn.Module):
    """The BP-Transformer over a binary tree of spans (Ye et al. 2019).

    A token sees itself, at each level its next ``neighbors`` nodes to either side, from fine to
    coarse, and where such a node is half covered, its uncovered child: every token of the text
    exactly once. A span sees all tokens that it covers. Spans start at zero; layers are post-norm,
    with weights that tokens and spans share, and a feed-forward network with ReLU. Edges say how
    far off a node is: no positions are needed. ``output="root"`` gives every token the state of the
    root, a span of the whole text, from which the paper reads a text's class.

    Where we differ: levels that no token sees are not computed, and the root of a text with one
    token is a span, too. A span that reaches beyond the end of its text covers what is real, so
    padding changes nothing. The published code drops out inside the feed-forward network as well,
    and classifies with causal edges; here an encoder sees both sides.
    """

    supports_packing = supports_context = False
    max_length = None

    def __init__(
        self,
        width: int,
        *,
        depth: int = 2,
        heads: int = 4,
        neighbors: int = 4,
        max_level: int = 5,
        inner: int = 0,
        epsilon: float = 1e-5,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        output: Literal["tokens", "root"] = "tokens",
    ) -> None:
        super().__init__()
        self.blocks: Any = make_tree_blocks(
            width, depth=depth, heads=heads, neighbors=neighbors, max_level=max_level, inner=inner,
            epsilon=epsilon, dropout=dropout, attention_dropout=attention_dropout, is_causal=False,
        )  # fmt: skip
        self.neighbors, self.has_root = neighbors, output == "root"

    def forward(self, x: Tensor, mask: Tensor, context: None = None) -> Tensor:
        """Run all layers: ``x`` b n d, ``mask`` b n → b n d."""
        *_, states = self.iterate_layers(x, mask, context)
        return states * mask.unsqueeze(-1)

    def iterate_layers(self, x: Tensor, mask: Tensor, context: None = None) -> Iterator[Tensor]:
        """Yield the input, then the output of each layer; padding is not zeroed."""
        check_whole_texts("binary-tree", mask, context)
        layout = make_layout(x.shape[1], self.neighbors, False, x.device)
        order = order_real_first(mask)
        nodes = iterate_nodes(self.blocks, gather_tokens(x, order), TreeMask(layout, mask.sum(1)), self.has_root)
        for number, states in enumerate(nodes):
            if self.has_root and number:  # the root's input is zero
                yield states[:, -1:].expand_as(x)
            else:
                yield scatter_tokens(states[:, : x.shape[1]], order)


class BinaryTreeDecoder(RecomputingDecoder):
    """The causal BP-Transformer: neighbors are before the token alone (Ye et al. 2019).

    A span that a token sees is wholly before it. Options: BinaryTreeStack.
    """

    def __init__(
        self,
        width: int,
        *,
        cross: bool = True,
        depth: int = 2,
        heads: int = 4,
        neighbors: int = 4,
        max_level: int = 5,
        inner: int = 0,
        epsilon: float = 1e-5,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
    ) -> None:
        super().__init__(width, cross)
        self.blocks: Any = make_tree_blocks(
            width, depth=depth, heads=heads, neighbors=neighbors, max_level=max_level, inner=inner,
            epsilon=epsilon, dropout=dropout, attention_dropout=attention_dropout, is_causal=True,
        )  # fmt: skip
        self.neighbors = neighbors

    def run_layers(self, x: Tensor, mask: CausalMask) -> Tensor:
        """Run all layers over whole texts, b n d → b n d."""
        layout = make_layout(x.shape[1], self.neighbors, True, x.device)
        order = order_real_first(mask.keys)
        *_, states = iterate_nodes(self.blocks, gather_tokens(x, order), TreeMask(layout, mask.keys.sum(1)))
        return scatter_tokens(states[:, : x.shape[1]], order)


def make_tree_blocks(
    width: int,
    *,
    depth: int,
    heads: int,
    neighbors: int,
    max_level: int,
    inner: int,
    epsilon: float,
    dropout: float,
    attention_dropout: float,
    is_causal: bool,
) -> nn.ModuleList:
    """Make the layers of an encoder or a decoder."""
    check_repeats(depth=depth)
    if neighbors < 1 or max_level < 0:
        raise ConfigError(
            f"a token of a tree has at least 1 neighbor per level, and levels count from 0, not {neighbors} "
            f"neighbors and a max_level of {max_level}"
        )
    return nn.ModuleList(
        EncoderBlock(
            TreeAttention(
                width, heads=heads, neighbors=neighbors, max_level=max_level,
                is_causal=is_causal, dropout=attention_dropout,
            ),
            FeedForward(width, inner or 4 * width, "relu"),
            partial(AddNorm, width, norm="post", epsilon=epsilon, dropout=dropout),
        )
        for _ in range(depth)
    )  # fmt: skip


def iterate_nodes(blocks: Any, x: Tensor, tree: TreeMask, has_root: bool = False) -> Iterator[Tensor]:
    """Yield all nodes, tokens first and root last, before and after each layer.

    ``x`` b n d holds the tokens, padding last.
    """
    num_spans = sum(tree.layout.spans_per_level) + has_root
    x = nn.functional.pad(x, (0, 0, 0, tree.layout.num_tokens - x.shape[1] + num_spans))  # b u d
    yield x
    for block in blocks:
        x = block(x, tree)
        yield x


def count_spans(layout: TreeLayout, num_nodes: int) -> list[int]:
    """Count the spans of each level, and the root where there is one."""
    spans = layout.spans_per_level
    has_root = num_nodes > layout.num_tokens + sum(spans)
    return [*spans, 1] if has_root else spans


def split_blocks(x: Tensor, window: NeighborWindow) -> Tensor:
    """Split tokens (b h t …) into the blocks of a window (b h o g …)."""
    block, num_blocks = len(window.ranks), len(window.nodes)
    back = num_blocks * block - window.front - x.shape[2]
    return nn.functional.pad(x, (0, 0, window.front, back)).unflatten(2, (num_blocks, block))


def join_blocks(blocks: Tensor, window: NeighborWindow, num_tokens: int) -> Tensor:
    """Undo ``split_blocks``."""
    return blocks.flatten(2, 3)[:, :, window.front : window.front + num_tokens]


def gather_window(x: Tensor, window: NeighborWindow) -> Tensor:
    """Gather the nodes of all windows, b h u c → b h o w c."""
    return x.index_select(2, window.nodes.flatten()).unflatten(2, window.nodes.shape)
