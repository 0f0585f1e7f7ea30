"""Shared parts of DMN and DMN+: gates of facts and a gated GRU.

Shapes: b batch, m queries, s slots, d width, z features of a gate. A tensor that all queries or
all rows share has size 1 there.
"""

import torch
from torch import Tensor, nn

from mnemic.encode.gated_gru import scan_gru
from mnemic.encode.gru_cell import init_glorot
from mnemic.memory.append import AppendMemory, Slots
from mnemic.memory.contract import Reading, ReadLabels
from mnemic.recipe import check_repeats

GATE_CAPTION = "How far the gate of each sentence opened in each pass, from 0 to 1."


class DynamicMemory(AppendMemory):
    """Append facts; read them in several passes, each given the last pass's memory.

    Subclasses build their parts in ``add_parts`` and define ``read_pass``. Supporting facts
    supervise the gates through the scores, so ``teacher_slots`` are not used.
    """

    labels = ReadLabels("pass {}", GATE_CAPTION)

    def __init__(self, width: int, *, passes: int = 3, slots: int = 130) -> None:
        super().__init__()
        check_repeats(passes=passes)
        if passes < 1 or slots < 1:
            raise ValueError(f"a dynamic memory takes passes and slots ≥ 1, not {passes = }, {slots = }")
        self.num_passes, self.num_slots = passes, slots
        self.add_parts(width)

    def add_parts(self, width: int) -> None:
        """Build the modules of the passes."""
        raise NotImplementedError

    def read_pass(
        self, number: int, facts: Tensor, memory: Tensor, question: Tensor, mask: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Read all facts once; return scores, weights, facts for the next pass and memory.

        ``facts`` b m s d, ``memory`` and ``question`` b m d, ``mask`` b 1 s. Scores and weights
        are b m s.
        """
        raise NotImplementedError

    def read(
        self, state: Slots, query: Tensor, *, teacher_slots: Tensor | None = None, uniforms: Tensor | None = None
    ) -> Reading:
        """Read with ``query`` (b m 1 d) in all passes."""
        facts, question = state.states.transpose(1, 2), query.squeeze(2)  # b 1 s d, b m d
        memory, mask, scores, weights = question, state.mask.unsqueeze(1), [], []
        for number in range(self.num_passes):
            score, weight, facts, memory = self.read_pass(number, facts, memory, question, mask)
            scores.append(score)
            weights.append(weight)
        return Reading(memory, *(torch.stack(passes, 1).unsqueeze(2) for passes in (weights, scores)))


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
