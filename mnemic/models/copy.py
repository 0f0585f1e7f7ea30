"""What hidden tokens found in memory: states, and the words that could be copied from there.

Shapes: b documents, s segments, n tokens of a segment, m places asked for, a sources, d width.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.memory import Reading
from mnemic.models.inputs import Segments


class Copied(NamedTuple):
    """Tokens that were read in memory, and how much."""

    shares: Tensor  # b m a
    numbers: Tensor  # b a, which token of the document; -1 = none

    def padded(self, most: int) -> "Copied":
        """With ``most`` sources; those that are none were not read."""
        spare = (0, most - self.numbers.shape[1])
        wide = nn.functional.pad(self.numbers, spare, value=-1)
        return Copied(nn.functional.pad(self.shares, spare), wide)


class Found(NamedTuple):
    """Of one segment, or with s behind b of all."""

    states: Tensor  # b m d
    copied: Copied | None  # None: nobody copies


def found_by(reading: Reading, before: Any, *, copies: bool) -> Found:
    """What the tokens of a segment read in the memory ``before`` it."""
    if not copies:
        return Found(reading.found, None)
    sources, parts = before.origins  # b a r
    shares = reading.weights.mean((1, 2)).unsqueeze(-1) * parts.unsqueeze(1)  # b m a r
    return Found(reading.found, Copied(shares.flatten(2), sources.flatten(1)))


def together(found: Sequence[Found]) -> Found:
    """All segments of the documents."""
    states = torch.stack([own.states for own in found], 1)
    each = [own.copied for own in found if own.copied is not None]
    if len(each) < len(found):
        return Found(states, None)
    most = max(own.numbers.shape[1] for own in each)
    return Found(states, Copied(*(torch.stack(p, 1) for p in zip(*(o.padded(most) for o in each)))))


def words_of(inputs: Segments, numbers: Tensor) -> Tensor:
    """The tokens of these numbers (b s a), counted through the document; of none, any."""
    inside = inputs.inside.flatten(1)  # b (s n)
    order = torch.where(inside, inside.long().cumsum(1) - 1, inside.shape[1])
    room = order.new_zeros(len(order), inside.shape[1] + 1)
    by_number = room.scatter(1, order, inputs.tokens.flatten(1))
    return by_number.gather(1, numbers.flatten(1).clamp(min=0)).view_as(numbers)
