"""Masks of attention: which context positions each query may see.

Shapes: b batch, n queries, m context positions, h heads.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class CausalMask(NamedTuple):
    """Queries that see themselves and what is before them, in place of a dense mask.

    The queries are the last of the context positions. A kind whose cost is below n² never makes
    the dense mask.
    """

    keys: Tensor  # b m, True at real tokens

    def to_dense_mask(self, num_queries: int) -> Tensor:
        """Convert to a dense mask of queries by context positions, b 1 n m."""
        positions = torch.arange(self.keys.shape[1], device=self.keys.device)
        is_causal = positions <= positions[len(positions) - num_queries :, None]  # n m
        return self.keys[:, None, None] & is_causal


def to_dense_mask(mask: Tensor | CausalMask, num_queries: int) -> Tensor:
    """Convert a mask to a dense one, broadcastable to b h n m."""
    return mask.to_dense_mask(num_queries) if isinstance(mask, CausalMask) else expand_to_four_axes(mask)


def expand_to_four_axes(mask: Tensor) -> Tensor:
    """Add leading axes to a mask until it has four."""
    return mask[(None,) * (4 - mask.dim())]


def find_visible_keys(mask: Tensor, num_keys: int) -> Tensor:
    """Return the context positions that any query sees, b m.

    b is 1 if all texts have the same mask.
    """
    return expand_to_four_axes(mask).any(-2).any(1).expand(-1, num_keys)
