"""Memory reads of masked tokens, with weights to copy tokens from memory.

Shapes: b documents, s segments, n tokens of a segment, m masked tokens, a sources, r sources of a
slot, d width.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mnemic.memory import Reading
from mnemic.models.inputs import SegmentBatch


class CopyWeights(NamedTuple):
    """Attention weights over the tokens that a memory's slots came from."""

    weights: Tensor  # b m a
    token_numbers: Tensor  # b a, index of the token in its document; -1 = none

    def pad_sources(self, num_sources: int) -> "CopyWeights":
        """Pad to ``num_sources`` sources; padding has weight 0 and number -1."""
        padding = (0, num_sources - self.token_numbers.shape[1])
        token_numbers = nn.functional.pad(self.token_numbers, padding, value=-1)
        return CopyWeights(nn.functional.pad(self.weights, padding), token_numbers)


class MaskedReads(NamedTuple):
    """Memory reads of masked tokens, of one segment or stacked over all (b s …)."""

    states: Tensor  # b m d
    copy_weights: CopyWeights | None  # None: the response copies nothing


def collect_reads(reading: Reading, memory_state: Any, *, copies: bool) -> MaskedReads:
    """Turn a segment's reading of ``memory_state`` into masked reads.

    With ``copies`` each slot's attention weight is divided among the slot's source tokens.
    """
    if not copies:
        return MaskedReads(reading.found, None)
    sources, shares = memory_state.origins  # b a r
    weights = reading.weights.mean((1, 2)).unsqueeze(-1) * shares.unsqueeze(1)  # b m a r
    return MaskedReads(reading.found, CopyWeights(weights.flatten(2), sources.flatten(1)))


def stack_reads(reads: Sequence[MaskedReads]) -> MaskedReads:
    """Stack the reads of all segments along a new axis after the batch."""
    states = torch.stack([read.states for read in reads], 1)
    copy_weights = [read.copy_weights for read in reads if read.copy_weights is not None]
    if len(copy_weights) < len(reads):
        return MaskedReads(states, None)
    num_sources = max(read.token_numbers.shape[1] for read in copy_weights)
    padded = (weights.pad_sources(num_sources) for weights in copy_weights)
    return MaskedReads(states, CopyWeights(*(torch.stack(tensors, 1) for tensors in zip(*padded))))


def token_ids_at(inputs: SegmentBatch, token_numbers: Tensor) -> Tensor:
    """Look up token ids by their numbers in the document (b s a).

    A number of -1 gives any id.
    """
    text_mask = inputs.text_mask.flatten(1)  # b (s n)
    positions = torch.where(text_mask, text_mask.long().cumsum(1) - 1, text_mask.shape[1])
    blank = positions.new_zeros(len(positions), text_mask.shape[1] + 1)
    ids_by_number = blank.scatter(1, positions, inputs.tokens.flatten(1))
    return ids_by_number.gather(1, token_numbers.flatten(1).clamp(min=0)).view_as(token_numbers)
