"""Append-only memories: one slot per input; the oldest leave a full memory.

Shapes: b batch, n inputs, s slots; a slot's content may have any shape (here: …).
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
from torch import Tensor

from mnemic.memory.contract import MemoryModule, Written

SalienceFunction = Callable[[Tensor], Tensor | None]  # contents b s … → b s


class Slots(NamedTuple):
    """The state of an append-only memory: one input per slot, oldest first."""

    states: Tensor  # b s …
    mask: Tensor  # b s, True = a filled slot
    sources: Tensor  # b s, the number of the slot's input, counted from the first ever written
    num_written: Tensor  # b, how many inputs were ever written


class AppendMemory(MemoryModule):
    """Append each input as a slot; subclasses hold ``num_slots`` and define ``read``."""

    State = Slots
    num_slots: int

    def empty(self, batch: int, like: Tensor) -> Slots:
        """Make a state with no slots, for contents like ``like`` (b n …)."""
        return empty_slots(batch, like)

    def write(self, state: Slots, states: Tensor, mask: Tensor) -> Written:
        """Append the inputs as new slots; the oldest leave a full memory."""
        return append_inputs(state, states, mask, max_slots=self.num_slots)


def empty_slots(batch: int, like: Tensor) -> Slots:
    """Make a memory with no slots, for contents like ``like`` (b n …)."""
    return Slots(
        like.new_zeros(batch, 0, *like.shape[2:]),
        like.new_zeros(batch, 0, dtype=torch.bool),
        like.new_zeros(batch, 0, dtype=torch.long),
        like.new_zeros(batch, dtype=torch.long),
    )


def append_inputs(
    state: Slots, states: Tensor, mask: Tensor, *, max_slots: int, salience: SalienceFunction | None = None
) -> Written:
    """Append every real input; keep the newest ``max_slots``, unchanged.

    With a ``salience`` the most salient are kept instead; of equals, the
    newer. Shapes never depend on the data, so this runs under ``vmap`` and in a CUDA graph.
    """
    input_numbers = state.num_written.unsqueeze(1) + mask.long().cumsum(1) - 1  # b n
    slots = Slots(states, mask, torch.where(mask, input_numbers, -1), state.num_written + mask.sum(1))
    if state.mask.shape[1]:
        slots = Slots._make([*(torch.cat(pair, 1) for pair in zip(state[:3], slots[:3])), slots.num_written])
    if slots.mask.shape[1] > max_slots:
        order = find_kept_slots(slots.mask, max_slots, salience and salience(slots.states))
        slots = Slots._make([*gather_slots(slots[:3], order), slots.num_written])
    is_stored = (input_numbers.unsqueeze(2) == slots.sources.unsqueeze(1)) & mask.unsqueeze(2)  # b n s
    return Written(slots, is_stored.to(states.dtype))


def find_kept_slots(mask: Tensor, max_slots: int, salience: Tensor | None) -> Tensor:
    """Find the slots that a full memory keeps: indices b max_slots, in order.

    These are the last filled slots of every row, after padding; with ``salience`` (b s) the filled
    slots where it is highest.
    """
    if salience is None:
        return mask.long().argsort(dim=1, stable=True)[:, -max_slots:]
    ascending = salience.argsort(dim=1, stable=True)  # b s
    order = mask.gather(1, ascending).long().argsort(dim=1, stable=True)[:, -max_slots:]
    return ascending.gather(1, order).sort(dim=1).values


def gather_slots(tensors: Iterable[Tensor], order: Tensor) -> list[Tensor]:
    """Gather slots by index (``order`` b max_slots) in all tensors (b s …)."""
    return [
        tensor.gather(1, order.view(*order.shape, *[1] * (tensor.dim() - 2)).expand(-1, -1, *tensor.shape[2:]))
        for tensor in tensors
    ]


def find_slots(input_numbers: Tensor, weights: Tensor) -> Tensor:
    """Find the slot of each input number (b m f) from ``Written.weights``.

    ``weights`` b n s; the result is b m f, with -1 for a number below 0 and for an input that is in
    no slot.
    """
    if not weights.shape[1] or not weights.shape[2]:
        return torch.full_like(input_numbers, -1)
    slots = torch.where(weights.sum(2) > 0, weights.argmax(2), -1)  # b n
    input_slots = slots.gather(1, input_numbers.clamp(min=0).flatten(1)).view_as(input_numbers)
    return torch.where(input_numbers >= 0, input_slots, -1)


def slot_ages(mask: Tensor) -> Tensor:
    """Count the filled slots after each slot (b s): 0 for the newest."""
    return mask.flip(1).long().cumsum(1).flip(1) - 1
