"""The state of append-only memories: one slot an input; when it is full, the oldest leave.

Shapes: b batch, n inputs, s slots; a slot's content may have any shape (here: …).
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from mnemic.memory.contract import Written


class Slots(NamedTuple):
    """One input a slot, oldest first; slots that are not real are masked."""

    states: Tensor  # b s …
    mask: Tensor  # b s
    sources: Tensor  # b s, which input (counted from the first ever written) is in the slot
    told: Tensor  # b, how many inputs were ever written


def no_slots(batch: int, like: Tensor) -> Slots:
    """No slots yet, for contents shaped like ``like``'s last axes (b n …)."""
    return Slots(
        like.new_zeros(batch, 0, *like.shape[2:]),
        like.new_zeros(batch, 0, dtype=torch.bool),
        like.new_zeros(batch, 0, dtype=torch.long),
        like.new_zeros(batch, dtype=torch.long),
    )


def append(
    state: Slots,
    states: Tensor,
    mask: Tensor,
    *,
    most: int,
    worth: Callable[[Tensor], Tensor] | None = None,
) -> Written:
    """Add every real input behind the others; keep the newest ``most`` and leave them as they were.

    With ``worth`` (contents b s … → b s) those of most worth are kept instead, of equals the newer.
    Shapes never depend on the data, so this runs under ``vmap`` and in a CUDA graph.
    """
    number = state.told.unsqueeze(1) + mask.long().cumsum(1) - 1  # b n
    slots = Slots(states, mask, torch.where(mask, number, -1), state.told + mask.sum(1))
    if state.mask.shape[1]:
        parts = [torch.cat(pair, 1) for pair in zip(state[:3], slots[:3])]
        slots = Slots(parts[0], parts[1], parts[2], slots.told)
    if slots.mask.shape[1] > most:
        slots = newest(slots, most) if worth is None else best(slots, most, worth(slots.states))
    same = (number.unsqueeze(2) == slots.sources.unsqueeze(1)) & mask.unsqueeze(2)  # b n s
    return Written(slots, same.to(states.dtype))


def newest(slots: Slots, most: int) -> Slots:
    """The last ``most`` real slots of every row, in order, behind padding where there are fewer."""
    return rows_of(slots, slots.mask.long().argsort(dim=1, stable=True)[:, -most:])  # padding first


def best(slots: Slots, most: int, worth: Tensor) -> Slots:
    """The ``most`` real slots of highest ``worth`` (b s) of every row, in the order of writing."""
    rising = worth.argsort(dim=1, stable=True)  # b s
    real = slots.mask.gather(1, rising).long().argsort(dim=1, stable=True)[:, -most:]
    return rows_of(slots, rising.gather(1, real).sort(dim=1).values)


def rows_of(slots: Slots, order: Tensor) -> Slots:
    """Some slots of every row (b most), all that was told staying told."""
    wide = order.view(*order.shape, *[1] * (slots.states.dim() - 2))
    return Slots(
        slots.states.gather(1, wide.expand(*order.shape, *slots.states.shape[2:])),
        slots.mask.gather(1, order),
        slots.sources.gather(1, order),
        slots.told,
    )


def slots_of(inputs: Tensor, put: Tensor) -> Tensor:
    """The slot of every input (b m f, numbers of inputs) from ``Written.weights`` (b n s): b m f.

    -1 for a number below 0, and for an input that is in no slot.
    """
    if not put.shape[1] or not put.shape[2]:
        return torch.full_like(inputs, -1)
    slot = torch.where(put.sum(2) > 0, put.argmax(2), -1)  # b n
    found = slot.gather(1, inputs.clamp(min=0).flatten(1)).view_as(inputs)
    return torch.where(inputs >= 0, found, -1)


def age(mask: Tensor) -> Tensor:
    """How many real slots lie behind each one: 0 for the newest (b s)."""
    return mask.flip(1).long().cumsum(1).flip(1) - 1
