"""Cached states that a text model carries from segment to segment of running text.

Shapes: b rows of text, n tokens of a segment, m cached states, k layers, h heads, d width.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from mnemic.encode.stacks import StackContext
from mnemic.memory.append import slot_ages
from mnemic.memory.contract import MASKED_SCORE, Reading

LAYER_PREFIX = "memory.layers."  # of the names of a memory's tensors


class StreamMemory(NamedTuple):
    """The last states of each layer, of texts read segment by segment."""

    states: StackContext  # k times b m d, with their mask b m
    next_starts: Tensor  # b, the number of the token that each row goes on with

    @property
    def token_numbers(self) -> Tensor:
        """The number in its text of the token of each state, b m; -1 = none."""
        mask = self.states.mask
        return torch.where(mask, self.next_starts.unsqueeze(1) - 1 - slot_ages(mask), -1)

    def select_continued(self, starts: Tensor) -> StackContext:
        """Return the states for rows whose segments begin at ``starts`` (b).

        A row that does not go on where it ended sees none of them: its text starts anew.
        """
        goes_on = self.next_starts == starts
        return self.states._replace(mask=self.states.mask & goes_on.unsqueeze(1))

    def to_tensors(self) -> dict[str, Tensor]:
        """Return all tensors by name, to be carried from step to step and saved."""
        layers = {f"{LAYER_PREFIX}{number}": layer for number, layer in enumerate(self.states.layers)}
        return {"memory.mask": self.states.mask, "memory.next_starts": self.next_starts, **layers}

    @classmethod
    def from_tensors(cls, tensors: dict[str, Tensor]) -> "StreamMemory":
        """Restore a memory from its tensors by name."""
        num_layers = sum(name.startswith(LAYER_PREFIX) for name in tensors)
        layers = tuple(tensors[f"{LAYER_PREFIX}{number}"] for number in range(num_layers))
        return cls(StackContext(layers, tensors["memory.mask"]), tensors["memory.next_starts"])


@torch.no_grad()
def read_stream_memory(encode: Any, tokens: Tensor, mask: Tensor, context: StackContext) -> Reading:
    """Return each layer's attention to cached states: the evidence.

    ``tokens`` and ``mask`` are b n; ``weights`` and ``scores`` b k h n m: layers are hops, and
    cached states are slots, oldest first. The rest of each attention, which is on the segment
    itself, has the score ``nothing``; ``found`` are the states of the tokens.
    """
    num_cached = context.mask.shape[1]
    scores = torch.stack(list(encode.iterate_scores(tokens, mask, context)), 1).float()  # b k h n m+n
    weights = scores.softmax(-1).nan_to_num(0)[..., :num_cached]  # a row that sees nothing is zeros
    states = encode.encode_segment(tokens, mask, context)[0]
    own_scores = scores[..., num_cached:].logsumexp(-1).clamp(min=MASKED_SCORE)
    return Reading(states, weights, scores[..., :num_cached].clamp(min=MASKED_SCORE), nothing=own_scores)
