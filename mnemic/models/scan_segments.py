"""Scan the segments of documents, reading and writing a memory in each.

Shapes: b documents, s segments, p items of a segment, m queries of a segment, d width.
"""

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from mnemic.memory import Reading, SegmentMemory, Written


class SegmentStep(NamedTuple):
    """The read and the write of one segment."""

    state_before: Any  # the memory's state, b …
    reading: Reading | None  # of the segment's queries, from ``state_before``
    written: Written
    state: Any  # for the next segment: as written, detached where gradients are truncated


class SegmentInputs(NamedTuple):
    """Items to write and queries to read, for every segment."""

    items: Tensor  # b s p d
    mask: Tensor  # b s p, True = a real item
    writable: Tensor | None = None  # b s p, True = may be written; None: all
    queries: Tensor | None = None  # b s m d, read before their segment is written


def scan_segments(
    memory: SegmentMemory, state: Any, inputs: SegmentInputs, *, truncate: int = 0, carry_memory: bool = True
) -> Iterator[SegmentStep]:
    """Read, then write, segment by segment; yield one step per segment.

    A document that has ended keeps its memory unchanged. Gradients reach the writes of the last
    ``truncate`` segments of each document (0: of all). ``carry_memory=False`` empties the memory
    before every segment. The writes of all segments are planned at once, unless the memory is
    emptied or gradients are truncated between segments.
    """
    last_segment = inputs.mask.any(-1).sum(1) - 1  # b
    plans: Iterator[Any] = repeat(None)
    if carry_memory and not (truncate and torch.is_grad_enabled()):
        plans = memory.plan_writes(state, inputs.items, inputs.mask, inputs.writable)
    for segment in range(inputs.items.shape[1]):
        items, mask = inputs.items[:, segment].unsqueeze(2), inputs.mask[:, segment]  # b p 1 d, b p
        if not carry_memory:
            state = merge_rows(mask.any(1), memory.empty(len(items), items), state)
        reading = None
        if inputs.queries is not None:
            reading = memory.read(state, inputs.queries[:, segment].unsqueeze(2))
        writable = None if inputs.writable is None else inputs.writable[:, segment]
        written = memory.write(state, items, mask, writable, next(plans))
        next_state = written.state
        if truncate:
            segments_to_go = last_segment - segment
            next_state = detach_rows((segments_to_go > 0) & (segments_to_go % truncate == 0), next_state)
        yield SegmentStep(state, reading, written, next_state)
        state = next_state


def detach_rows(rows: Tensor, state: Any) -> Any:
    """Detach a memory state in these rows (b) of the batch."""
    return merge_rows(rows, tree_map(lambda tensor: tensor.detach(), state), state)


def merge_rows(rows: Tensor, selected_state: Any, other_state: Any) -> Any:
    """Take one state in these rows (b) and the other elsewhere, padded to equal slots."""

    def merge_tensors(selected: Tensor, unselected: Tensor) -> Tensor:
        selected, unselected = pad_slots([selected, unselected])
        return torch.where(rows.view(-1, *[1] * (selected.dim() - 1)), selected, unselected)

    return type(other_state)(
        *(merge_tensors(selected, unselected) for selected, unselected in zip(selected_state, other_state))
    )


def pad_slots(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Pad tensors with zeros to the same number of slots (axis 1)."""
    if tensors[0].dim() < 2 or tensors[0].shape[1] == tensors[1].shape[1]:
        return list(tensors)
    num_slots = max(tensor.shape[1] for tensor in tensors)
    return [
        torch.cat([tensor, tensor.new_zeros(len(tensor), num_slots - tensor.shape[1], *tensor.shape[2:])], 1)
        for tensor in tensors
    ]
