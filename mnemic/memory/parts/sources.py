"""Where the content of blended slots came from: source numbers and their shares.

Shapes: b batch, s slots, r sources a slot has room for, c new inputs.
"""

from typing import NamedTuple

import torch
from torch import Tensor

NEVER = 2**62  # a first number after all others: nothing was lost yet


class Sources(NamedTuple):
    """The largest sources of every slot, and between which numbers all others lie."""

    sources: Tensor  # b s r, -1 = none
    shares: Tensor  # b s r
    lost: Tensor  # b s 2, first and last number of those that are not listed

    def hold(self, first: int, end: int) -> Tensor:
        """Slots that an input from ``first`` to below ``end`` may be in, b s; none is missed."""
        listed = ((self.sources >= first) & (self.sources < end)).any(-1)
        low, high = self.lost.unbind(-1)
        return listed | ((low < end) & (high >= first))


def no_sources(batch: int, slots: int, room: int, like: Tensor) -> Sources:
    numbers = like.new_full((batch, slots, room), -1, dtype=torch.long)
    lost = like.new_full((batch, slots, 2), -1, dtype=torch.long)
    nothing = torch.stack([lost[..., 0] + NEVER + 1, lost[..., 1]], -1)
    return Sources(numbers, like.new_zeros(batch, slots, room), nothing)


def added(kept: Sources, numbers: Tensor, shares: Tensor, left: Tensor) -> Sources:
    """With new inputs: their ``numbers`` b c and ``shares`` b c s; ``left`` b s of the old is left.

    Those of largest share are listed; of the others only the range of their numbers is known.
    """
    room = kept.sources.shape[-1]
    new = numbers.unsqueeze(1).expand(-1, kept.sources.shape[1], -1)  # b s c
    every = torch.cat([kept.sources, torch.where(shares.mT > 0, new, -1)], -1)
    weight = torch.cat([kept.shares * left.unsqueeze(-1), shares.mT.to(kept.shares.dtype)], -1)
    weight = weight.masked_fill(every < 0, -1.0)
    order = weight.argsort(dim=-1, descending=True, stable=True)
    every, weight = every.gather(-1, order), weight.gather(-1, order)
    rest = every[..., room:]
    low = torch.where(rest >= 0, rest, NEVER)
    outer = torch.full_like(kept.lost[..., :1], NEVER), torch.full_like(kept.lost[..., :1], -1)
    low, high = torch.cat([low, outer[0]], -1).amin(-1), torch.cat([rest, outer[1]], -1).amax(-1)
    lost = torch.stack([kept.lost[..., 0].minimum(low), kept.lost[..., 1].maximum(high)], -1)
    return Sources(every[..., :room], weight[..., :room].clamp(min=0.0), lost)


def cleared(kept: Sources, gone: Tensor) -> Sources:
    """Without the sources of these slots (b s)."""
    batch, slots, room = kept.sources.shape
    blank = no_sources(batch, slots, room, kept.shares)
    chosen = gone.unsqueeze(-1)
    return Sources(*(torch.where(chosen, none, own) for none, own in zip(blank, kept)))
