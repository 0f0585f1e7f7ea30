"""The sources of blended slots: numbers of inputs, and their shares of each slot.

Shapes: b batch, s slots, r sources listed per slot, c new inputs.
"""

from typing import NamedTuple

import torch
from torch import Tensor

NO_NUMBER = 2**62  # lower end of an empty range: above all input numbers


class Sources(NamedTuple):
    """The largest sources of every slot, and the range of all others."""

    sources: Tensor  # b s r, input numbers; -1 = none
    shares: Tensor  # b s r
    lost: Tensor  # b s 2, smallest and largest number of the sources that are not listed

    def may_hold(self, start: int, end: int) -> Tensor:
        """Mark slots (b s) that inputs ``start`` to ``end`` (exclusive) may be in.

        No such slot is missed.
        """
        is_listed = ((self.sources >= start) & (self.sources < end)).any(-1)
        low, high = self.lost.unbind(-1)
        return is_listed | ((low < end) & (high >= start))


def empty_sources(batch: int, num_slots: int, num_sources: int, like: Tensor) -> Sources:
    """Make sources of empty slots; shares have the dtype of ``like``."""
    numbers = like.new_full((batch, num_slots, num_sources), -1, dtype=torch.long)
    no_range = like.new_full((batch, num_slots, 2), -1, dtype=torch.long)
    empty_range = torch.stack([no_range[..., 0] + NO_NUMBER + 1, no_range[..., 1]], -1)
    return Sources(numbers, like.new_zeros(batch, num_slots, num_sources), empty_range)


def add_sources(sources: Sources, input_numbers: Tensor, shares: Tensor, old_share: Tensor) -> Sources:
    """Add new inputs (``input_numbers`` b c, ``shares`` b c s) to the sources.

    Old shares are multiplied by ``old_share`` (b s). The largest shares are listed; of the other
    sources only the range of numbers is kept.
    """
    num_sources = sources.sources.shape[-1]
    new_numbers = input_numbers.unsqueeze(1).expand(-1, sources.sources.shape[1], -1)  # b s c
    all_sources = torch.cat([sources.sources, torch.where(shares.mT > 0, new_numbers, -1)], -1)
    weight = torch.cat([sources.shares * old_share.unsqueeze(-1), shares.mT.to(sources.shares.dtype)], -1)
    weight = weight.masked_fill(all_sources < 0, -1.0)
    order = weight.argsort(dim=-1, descending=True, stable=True)
    all_sources, weight = all_sources.gather(-1, order), weight.gather(-1, order)
    unlisted = all_sources[..., num_sources:]
    low = torch.where(unlisted >= 0, unlisted, NO_NUMBER)
    no_range = (torch.full_like(sources.lost[..., :1], NO_NUMBER), torch.full_like(sources.lost[..., :1], -1))
    low, high = (torch.cat([low, no_range[0]], -1).amin(-1), torch.cat([unlisted, no_range[1]], -1).amax(-1))
    unlisted_range = torch.stack([sources.lost[..., 0].minimum(low), sources.lost[..., 1].maximum(high)], -1)
    return Sources(all_sources[..., :num_sources], weight[..., :num_sources].clamp(min=0.0), unlisted_range)


def clear_sources(sources: Sources, slot_mask: Tensor) -> Sources:
    """Remove the sources of the slots in ``slot_mask`` (b s)."""
    batch, num_slots, num_sources = sources.sources.shape
    blank = empty_sources(batch, num_slots, num_sources, sources.shares)
    wide_mask = slot_mask.unsqueeze(-1)
    return Sources(*(torch.where(wide_mask, empty, tensor) for empty, tensor in zip(blank, sources)))
