"""DMN+, the improved dynamic memory network (Xiong et al. 2016).

Shapes: b batch, n inputs, m queries, s slots, k passes, h heads (1), t tables (1), d width.
"""

import torch
from torch import Tensor, nn

from mnemic.encode.gru_cell import glorot
from mnemic.memory.append import Slots, append, no_slots
from mnemic.memory.contract import Reading, Written
from mnemic.memory.parts.episodes import (
    HIDDEN,
    Gate,
    check_sizes,
    evidence,
    facts_of,
    likeness,
    read_in_order,
)


class AttentionGRU(nn.Module):
    """A GRU whose update gate is the attention: ``h ← g h̃ + (1 − g) h`` (equation 11).

    ``h̃ = tanh(W x + r ∘ U h + b)`` and ``r = σ(W_r x + U_r h + b_r)``.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.given = glorot(nn.Linear(width, 2 * width), parts=2)
        self.back = glorot(nn.Linear(width, 2 * width, bias=False), parts=2)

    def forward(self, facts: Tensor, gates: Tensor) -> Tensor:
        """``facts`` b m s d, ``gates`` b m s → the last state, b m d."""
        given = self.given(facts).unflatten(-1, (2, self.width))  # to r and h̃
        return read_in_order(given, gates, self.back)[1]


class UntiedPass(nn.Module):
    """One pass with weights of its own: softmax gates, an episode, ``m ← relu(W [m; e; q] + b)``.

    The gates' features are ``z = [c∘q, c∘m, |c−q|, |c−m|]`` (equations 8 to 10, 13).
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gate = Gate(4 * width, width, bias=False)
        self.gru = AttentionGRU(width)
        self.update = glorot(nn.Linear(3 * width, width))

    def forward(
        self, facts: Tensor, memory: Tensor, query: Tensor, seen: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """``facts`` b 1 s d, ``memory``, ``query`` b m d, ``seen`` b 1 s.

        Gives scores and gates, b m s, and the new memory, b m d.
        """
        both = (query.unsqueeze(2), memory.unsqueeze(2))  # b m 1 d
        features = [part for other in both for part in likeness(facts, other)]
        score = self.gate(torch.cat(features, -1)).masked_fill(~seen, HIDDEN)
        gates = score.softmax(-1) * seen  # an empty memory gives zeros
        episode = self.gru(facts, gates)
        joined = torch.cat([memory, episode, query], -1)
        return score, gates, self.update(joined).relu()


class DMNPlus(nn.Module):
    """As ``DMN``, but every pass has its own weights, gates share one softmax and m is a ReLU.

    The facts are meant to come from position encoding and a bidirectional GRU over the sentences
    (``model.fuse``), so that a pass can see what stands around a fact.
    """

    tables, rolls, ties = 1, 0, False

    def __init__(self, width: int, *, passes: int = 3, slots: int = 130) -> None:
        super().__init__()
        check_sizes(passes, slots)
        self.slots = slots
        self.passes = nn.ModuleList(UntiedPass(width) for _ in range(passes))

    def empty(self, batch: int, like: Tensor) -> Slots:
        return no_slots(batch, like)

    def write(self, state: Slots, states: Tensor, mask: Tensor) -> Written:
        return append(state, states, mask, most=self.slots)

    def read(
        self,
        state: Slots,
        query: Tensor,
        *,
        follow: Tensor | None = None,
        rolls: Tensor | None = None,
    ) -> Reading:
        """``query``: b m 1 d. ``follow`` (gold slots) is not used: nothing here is supervised."""
        facts, question = facts_of(state), query.squeeze(2)
        memory, scores, gates = question, [], []
        for own in self.passes:
            score, gate, memory = own(facts, memory, question, state.mask.unsqueeze(1))
            scores.append(score)
            gates.append(gate)
        return Reading(memory, evidence(gates), evidence(scores))
