"""Index tables of a binary tree: the nodes that each token may attend to.

Node j of level l covers the tokens from j·2^l to (j+1)·2^l − 1; level 0 are the tokens. All nodes
stand in one sequence, the tokens first and then level by level.

Shapes: n tokens, g tokens of a block, w nodes of a window, o blocks.
"""

from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

MIN_BLOCK = 16  # tokens: fewer make the matrix products too small, more compute what is hidden
MAX_LAYOUTS = 64


class NeighborWindow(NamedTuple):
    """The neighbors of all tokens at one level, to one side.

    Tokens of a block share a window of nodes, of which each may see some. Neighbors have a rank
    from 0, the next one, to k − 1; rank k is the first neighbor of the next level.
    """

    level: int
    is_past: bool  # the nodes are before the token, not after it
    front: int  # filler queries before the first token, so that blocks begin where nodes do
    nodes: Tensor  # o w, indices of nodes; any index where there is none
    starts: Tensor  # o w, the first token of each node; beyond all tokens where there is none
    ranks: Tensor  # g w, 0 where the token does not see the node
    is_edge: Tensor  # g w, whether the token sees the node, if that exists


class TreeLayout(NamedTuple):
    """The nodes of a tree and the windows of its tokens."""

    num_tokens: int  # a multiple of the tokens that the coarsest span covers
    num_levels: int  # of spans
    windows: tuple[NeighborWindow, ...]

    @property
    def spans_per_level(self) -> list[int]:
        """The number of spans at each level, from fine to coarse."""
        return [self.num_tokens >> level for level in range(1, self.num_levels + 1)]


def make_layout(num_tokens: int, neighbors: int, is_causal: bool, device: torch.device) -> TreeLayout:
    """Return the layout of a tree over at least ``num_tokens`` tokens.

    Layouts are built once per number of tokens, rounded up.
    """
    last_level = -1
    while has_neighbors(num_tokens, neighbors, last_level + 1):
        last_level += 1
    num_levels = max(last_level, 0)
    num_tokens += -num_tokens % (1 << num_levels)
    arguments = (num_tokens, last_level + 1, neighbors, is_causal, device)
    if device.type == "cuda" and torch.cuda.is_current_stream_capturing():
        return build_layout.__wrapped__(*arguments)  # a recording outlives what the cache keeps
    return build_layout(*arguments)


def has_neighbors(num_tokens: int, neighbors: int, level: int) -> bool:
    """Check whether any token has a neighbor at this level."""
    return ((1 - neighbors) >> level) + neighbors <= (num_tokens - 1) >> level


@lru_cache(maxsize=MAX_LAYOUTS)
def build_layout(
    num_tokens: int, num_window_levels: int, neighbors: int, is_causal: bool, device: torch.device
) -> TreeLayout:
    """Build the layout of a tree with windows at this number of levels."""
    num_levels = max(num_window_levels - 1, 0)
    offsets = [0]  # of the first node of each level
    for level in range(num_levels):
        offsets.append(offsets[-1] + (num_tokens >> level))
    with torch.inference_mode(False):  # training may need the tables, too
        windows = [
            build_window(num_tokens, level, offsets[level], neighbors, is_past, device)
            for level in range(num_window_levels)
            for is_past in ((True,) if is_causal else (True, False))
        ]
    return TreeLayout(num_tokens, num_levels, tuple(windows))


def build_window(
    num_tokens: int, level: int, offset: int, neighbors: int, is_past: bool, device: torch.device
) -> NeighborWindow:
    """Build the tables of one level and side.

    With k neighbors, the first uncovered node before token i at level l is ((i−1+k) >> l) − k, and
    after it ((i+1−k) >> l) + k, whatever finer levels did: tokens whose shifted index is the same
    have the same neighbors. Where that node is half covered, its uncovered child takes its place;
    the child is the node next to the last neighbor of the finer level, the one of rank k.
    """
    block = max(2 << level, MIN_BLOCK)
    shift = neighbors - 1 if is_past else 1 - neighbors  # of token i's index, before >> level
    front, blocks_before = shift % block, shift // block
    num_blocks = -(-(front + num_tokens) // block)
    rows = torch.arange(block, device=device).unsqueeze(1)  # g 1
    columns = torch.arange((block >> level) + neighbors, device=device)  # w
    first = (torch.arange(num_blocks, device=device) + blocks_before) * (block >> level)  # o
    indices = first.unsqueeze(1) + columns + (-2 * neighbors if is_past else neighbors)  # o w, within the level
    exists = (indices >= 0) & (indices < num_tokens >> level)
    ranks = (rows >> level) + neighbors - columns if is_past else columns - (rows >> level)  # g w
    half_bit = 0 if is_past else 1  # the last bit of a node whose sibling is covered
    is_edge = (ranks >= 0) & (ranks < neighbors)
    is_edge |= (ranks == neighbors) & ((rows >> level) & 1 == half_bit)
    if level:  # rank 0 is half covered: the window of the finer level has its child
        is_edge &= (ranks > 0) | ((rows >> level - 1) & 1 != half_bit)
    return NeighborWindow(
        level=level,
        is_past=is_past,
        front=front,
        nodes=torch.where(exists, indices + offset, 0),
        starts=torch.where(exists, indices << level, num_tokens),
        ranks=torch.where(is_edge, ranks, 0),
        is_edge=is_edge,
    )
