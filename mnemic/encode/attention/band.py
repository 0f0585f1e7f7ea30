"""Banded attention: queries see keys within a reach, by unfolding keys into overlapping blocks.

The scores of n queries with a reach of r are n times 2r and a block, never n².
``compute_band_mask`` is the same band as a dense mask.

Shapes: b batch, h heads, n queries, m context positions, c channels of one head; of a block: g its
number, q its queries, w its window of keys.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from mnemic.encode.attention.full import KeyValues
from mnemic.encode.masks import CausalMask, expand_to_four_axes, to_dense_mask

# Queries per block: more of them copy fewer keys, fewer of them score fewer keys in vain.
MIN_BLOCK, MAX_BLOCK = 16, 256


class BandOutput(NamedTuple):
    """The values mixed within the band, and which queries see any position there."""

    mixed: Tensor  # b h n c, zeros where a query sees nothing
    has_visible: Tensor  # broadcastable to b h n 1


class BandBlocks(NamedTuple):
    """The blocks of queries, and how far the window of a block goes beyond it.

    The queries are the last of the context positions.
    """

    num_queries: int
    num_keys: int
    size: int  # queries per block
    before: int
    after: int

    @classmethod
    def from_reach(cls, num_queries: int, num_keys: int, reach: int, is_causal: bool) -> "BandBlocks":
        """Choose the blocks for a reach; causal queries need no keys after their block."""
        reach = min(reach, num_keys)
        size = min(max(reach // 2, MIN_BLOCK), MAX_BLOCK, max(num_queries, 1))
        return cls(num_queries, num_keys, size, reach, 0 if is_causal else reach)

    @property
    def num_blocks(self) -> int:
        """The number of blocks; the last may be filled up."""
        return max(-(-self.num_queries // self.size), 1)

    @property
    def window(self) -> int:
        """The number of keys that a block's queries are scored with."""
        return self.before + self.size + self.after

    @property
    def key_padding(self) -> tuple[int, int]:
        """The positions to add before and after the keys; negative ones are cut off."""
        first_query = self.num_keys - self.num_queries
        return self.before - first_query, self.num_blocks * self.size - self.num_queries + self.after

    def split_queries(self, x: Tensor) -> Tensor:
        """Split queries into blocks, … n c → … g q c."""
        x = nn.functional.pad(x, (0, 0, 0, self.num_blocks * self.size - self.num_queries))
        return x.unflatten(-2, (self.num_blocks, self.size))

    def join_queries(self, x: Tensor) -> Tensor:
        """Join blocks of queries, … g q c → … n c."""
        return x.flatten(-3, -2)[..., : self.num_queries, :]

    def unfold_keys(self, x: Tensor) -> Tensor:
        """Unfold keys or values into the windows of the blocks, … m c → … g c w."""
        return nn.functional.pad(x, (0, 0, *self.key_padding)).unfold(-2, self.window, self.size)

    def unfold_mask(self, mask: Tensor) -> Tensor:
        """Unfold a dense mask, b h n|1 m → b h g q|1 w.

        Beyond the ends it is False.
        """
        if mask.shape[-2] == 1:
            keys = mask.expand(*mask.shape[:-1], self.num_keys).mT  # b h m 1
            return self.unfold_keys(keys)
        rows = self.split_queries(mask.expand(*mask.shape[:-1], self.num_keys))  # b h g q m
        rows = nn.functional.pad(rows, self.key_padding)
        starts = torch.arange(self.num_blocks, device=mask.device) * self.size
        columns = starts[:, None, None] + torch.arange(self.window, device=mask.device)  # g 1 w
        return rows.take_along_dim(columns[None, None].expand(*rows.shape[:-1], -1), -1)

    def key_offsets(self, device: torch.device) -> Tensor:
        """Return each key's position in a window minus that of each query, q w."""
        keys = torch.arange(self.window, device=device) - self.before
        return keys - torch.arange(self.size, device=device).unsqueeze(1)


def attend_band(
    query: Tensor,
    key_values: KeyValues,
    mask: Tensor | CausalMask,
    max_reach: int,
    *,
    reaches: Tensor | None = None,
    dropout: float = 0.0,
) -> BandOutput:
    """Attend from each query to the visible keys at most ``max_reach`` positions away.

    ``query`` b h n c, keys and values b h m c, ``mask`` to b h n m. ``reaches`` narrows the reach
    of single queries, broadcastable to b h n. The cost is that of n times the reach.
    """
    keys, values = key_values
    blocks = BandBlocks.from_reach(query.shape[-2], keys.shape[-2], max_reach, isinstance(mask, CausalMask))
    visible = select_block_visible(blocks, mask, reaches)  # b h g q w
    has_visible = visible.any(-1, keepdim=True)  # b h g q 1
    scores = blocks.split_queries(query * query.shape[-1] ** -0.5) @ blocks.unfold_keys(keys)  # b h g q w
    scores = scores.masked_fill(~(visible | ~has_visible), float("-inf"))
    weights = scores.softmax(-1, dtype=torch.promote_types(scores.dtype, torch.float32)).to(values.dtype)
    weights = nn.functional.dropout(weights, dropout, training=dropout > 0)
    mixed = blocks.join_queries(weights @ blocks.unfold_keys(values).mT)  # b h n c
    has_visible = blocks.join_queries(has_visible)  # b h n 1
    return BandOutput(mixed * has_visible, has_visible)


def select_block_visible(blocks: BandBlocks, mask: Tensor | CausalMask, reaches: Tensor | None) -> Tensor:
    """Return which keys of its window each query sees, to b h g q w."""
    is_causal = isinstance(mask, CausalMask)
    dense = mask.keys[:, None, None] if isinstance(mask, CausalMask) else expand_to_four_axes(mask)
    offsets = blocks.key_offsets(dense.device)
    is_near = (offsets <= 0) & (offsets >= -blocks.before) if is_causal else offsets.abs() <= blocks.before
    if reaches is not None:
        reaches = reaches.expand(*reaches.shape[:-1], blocks.num_queries)
        is_near = is_near & (offsets.abs() <= blocks.split_queries(reaches.unsqueeze(-1)))  # b h g q w
    return blocks.unfold_mask(dense) & is_near


def compute_band_mask(mask: Tensor | CausalMask, num_queries: int, num_keys: int, reaches: Tensor | int) -> Tensor:
    """Return the band as a dense mask: visible keys within each query's reach.

    ``reaches`` is broadcastable to b h n 1; the queries are the last of the context positions. It
    is broadcastable to b h n m.
    """
    dense = to_dense_mask(mask, num_queries)
    columns = torch.arange(num_keys, device=dense.device)
    rows = columns[num_keys - num_queries :].unsqueeze(1)
    return dense & ((rows - columns).abs() <= reaches)
