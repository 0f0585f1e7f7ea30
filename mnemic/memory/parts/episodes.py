"""Shared parts of DMN and DMN+: gates of facts and a gated GRU.

Shapes: b batch, m queries, s slots, d width, z features of a gate. A tensor that all queries or
all rows share has size 1 there.
"""

import torch
from torch import Tensor, nn

from mnemic.encode.gated_gru import scan_gru
from mnemic.encode.gru_cell import init_glorot
from mnemic.memory.append import Slots

MASKED_SCORE = -1e30  # the score of a masked slot


class FactGate(nn.Module):
    """Score a fact from its features: ``W₂ tanh(W₁ z + b₁) + b₂``.

    Without ``bias`` there is no b₂, since a softmax over the facts ignores it.
    """

    def __init__(self, num_features: int, width: int, *, bias: bool) -> None:
        super().__init__()
        self.first = init_glorot(nn.Linear(num_features, width))
        self.second = init_glorot(nn.Linear(width, 1, bias=bias))

    def forward(self, features: Tensor) -> Tensor:
        """Score facts by their features: b m s z → b m s."""
        return self.second(self.first(features).tanh()).squeeze(-1)


def similarity_features(facts: Tensor, vector: Tensor) -> list[Tensor]:
    """Compute products with and distances from a question or memory, b m s d each."""
    return [facts * vector, (facts - vector).abs()]


def scan_facts(projections: Tensor, gates: Tensor, recurrent: nn.Linear) -> tuple[Tensor, Tensor]:
    """Run a gated GRU over the facts; return all states and the last one.

    The states are b m s d and b m d. ``projections`` (b m s g d) are the projected facts,
    ``recurrent`` projects the state; see `scan_gru`. ``gates`` (b m s) are 0 at padding, which
    therefore changes nothing.
    """
    inputs = projections.expand(*gates.shape, -1, -1).flatten(0, 1)  # bm s g d
    start = projections.new_zeros(inputs.shape[0], projections.shape[-1])
    states, last_state = scan_gru(inputs, gates.flatten(0, 1), recurrent.weight, recurrent.bias, start)
    return states.unflatten(0, gates.shape[:2]), last_state.unflatten(0, gates.shape[:2])


def facts_of(state: Slots) -> Tensor:
    """Return the contents of the slots: b s 1 d → b 1 s d."""
    return state.states.transpose(1, 2)


def stack_passes(passes: list[Tensor]) -> Tensor:
    """Stack one tensor per pass (b m s) as evidence: b k h m s."""
    return torch.stack(passes, 1).unsqueeze(2)


def check_dmn_sizes(passes: int, slots: int) -> None:
    """Check that a DMN has at least one pass and one slot."""
    if passes < 1 or slots < 1:
        received = f"passes = {passes}, slots = {slots}"
        raise ValueError(f"a dynamic memory takes passes and slots ≥ 1, not {received}")
