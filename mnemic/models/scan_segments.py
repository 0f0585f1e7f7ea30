"""Through the segments of documents, one after another, with a memory that goes along.

Shapes: b documents, s segments, p units of a segment, m queries of a segment, d width.
"""

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from mnemic.memory import Controlled, Reading, Written


class Step(NamedTuple):
    """What happened in one segment."""

    before: Any  # the memory's state, b …
    reading: Reading | None  # what the segment's queries found there
    written: Written
    state: Any  # to go on with: as written, gradients cut off where they end


class Told(NamedTuple):
    """What a walk is told of every segment."""

    units: Tensor  # b s p d
    seen: Tensor  # b s p, which units are real
    only: Tensor | None = None  # b s p, what may be written, if not all
    asking: Tensor | None = None  # b s m d, queries that are read before the segment is written


def walk(
    memory: Controlled, state: Any, told: Told, *, truncate: int = 0, lasts: bool = True
) -> Iterator[Step]:
    """Read, then write, segment by segment. A document that has ended keeps its memory as it is.

    ``truncate``: gradients reach the writes of so many last segments of each document (0: of all).
    ``lasts=False`` empties the memory before every segment. What is worth writing is chosen for all
    segments at once, unless memory begins anew in between, or gradients end there.
    """
    last = told.seen.any(-1).sum(1) - 1  # b
    choices: Iterator[Any] = repeat(None)
    if lasts and not (truncate and torch.is_grad_enabled()):
        choices = memory.ahead(state, told.units, told.seen, told.only)
    for number in range(told.units.shape[1]):
        units, seen = told.units[:, number].unsqueeze(2), told.seen[:, number]  # b p 1 d, b p
        if not lasts:
            state = chosen(seen.any(1), memory.empty(len(units), units), state)
        reading = None
        if told.asking is not None:
            reading = memory.read(state, told.asking[:, number].unsqueeze(2))
        only = None if told.only is None else told.only[:, number]
        written = memory.write(state, units, seen, only, next(choices))
        after = written.state
        if truncate:
            left = last - number
            after = cut((left > 0) & (left % truncate == 0), after)
        yield Step(state, reading, written, after)
        state = after


def cut(rows: Tensor, state: Any) -> Any:
    """The state, from which no gradient goes back in these rows (b)."""
    return chosen(rows, tree_map(lambda part: part.detach(), state), state)


def chosen(rows: Tensor, first: Any, second: Any) -> Any:
    """One state in these rows (b), the other elsewhere; both as wide as the wider one."""

    def pick(one: Tensor, other: Tensor) -> Tensor:
        one, other = same_slots([one, other])
        return torch.where(rows.view(-1, *[1] * (one.dim() - 1)), one, other)

    return type(second)(*(pick(one, other) for one, other in zip(first, second)))


def same_slots(parts: Sequence[Tensor]) -> list[Tensor]:
    """Parts of states with as many slots (axis 1), zeros behind those that had fewer."""
    if parts[0].dim() < 2 or parts[0].shape[1] == parts[1].shape[1]:
        return list(parts)
    most = max(part.shape[1] for part in parts)
    return [
        torch.cat([part, part.new_zeros(len(part), most - part.shape[1], *part.shape[2:])], 1)
        for part in parts
    ]
