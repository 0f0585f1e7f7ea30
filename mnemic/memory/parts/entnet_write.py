"""EntNet's write: slots that are rewritten sentence by sentence, each on its own.

Shapes: b batch, n inputs, s slots, d width.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from mnemic.encode.gated_gru import has_triton
from mnemic.kernels import TINY


class Rewriting(NamedTuple):
    """What the loop over the sentences needs; nothing but the slots changes on the way."""

    slots: Tensor  # b s d, h before the first sentence
    told: Tensor  # b n d, the sentences s
    drive: Tensor  # b n d, W s
    lean: Tensor  # b n s, s·w and the gates' biases
    seen: Tensor  # b n, False = padding
    place: Tensor  # s d, V w and U's bias
    old: Tensor  # d d, U
    slope: Tensor  # d, of φ


def rewrite(given: Rewriting, *, fused: bool = True) -> tuple[Tensor, Tensor]:
    """The slots after the last sentence (b s d) and all gates (b n s), which padding leaves shut.

    A padded sentence leaves the slots as they were, bit for bit.
    """
    slots, inputs = given.slots, given.told.shape[1]
    if fused and inputs and slots.is_cuda and slots.dtype == torch.float32 and has_triton():
        from mnemic.kernels.entnet_write import Rewrite

        found = Rewrite.apply(torch.is_grad_enabled(), *(part.unsqueeze(0) for part in given))
        return found[0].squeeze(0), found[1].squeeze(0)
    return rewrite_plainly(given)


def rewrite_plainly(given: Rewriting) -> tuple[Tensor, Tensor]:
    """The same, sentence by sentence in torch's own operations."""
    slots, gates = given.slots, []
    for told, drive, lean, seen in zip(*(part.unbind(1) for part in given[1:5])):
        gate = torch.sigmoid(lean + (slots @ told.unsqueeze(-1)).squeeze(-1))  # b s
        thought = slots @ given.old.mT + (given.place + drive.unsqueeze(1))  # b s d
        written = slots + gate.unsqueeze(-1) * prelu(thought, given.slope)
        size = written.square().sum(-1, keepdim=True).clamp(min=TINY)
        slots = torch.where(seen[:, None, None], written * size.rsqrt(), slots)
        gates.append(gate)
    return slots, torch.stack(gates, 1) * given.seen.unsqueeze(-1) if gates else given.lean


def left(gates: Tensor) -> Tensor:
    """How much of each input is left in each slot: its gate times all later ones' 1 − gate, b n s.

    As if a slot moved as far as its gate opens, so that an open gate wipes out what was there. With
    what a slot held before the first input, its shares add up to one. EntNet's own arithmetic,
    which adds and takes the norm, can be undone exactly, but for no other sentence in the end: see
    docs/memory-networks.md.
    """
    kept = 1 - gates
    later = kept.flip(1).cumprod(1).flip(1)  # of this one and all behind it
    return gates * torch.cat([later[:, 1:], torch.ones_like(gates[:, :1])], 1)


def prelu(x: Tensor, slope: Tensor) -> Tensor:
    """PReLU with a slope for each channel of the last axis."""
    return nn.functional.prelu(x.flatten(0, -2), slope).view_as(x)
