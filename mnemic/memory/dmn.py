"""The Dynamic Memory Network (Kumar et al. 2016), and its reading as layers.

Shapes: b batch, n inputs, m queries, s slots, k passes, h heads (1), t tables (1), d width.
"""

import torch
from torch import Tensor, nn

from mnemic.encode.gru_cell import Cell
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


class Score(nn.Module):
    """How much each fact matters, before any gate: ``G(c, m, q)`` of section 2.3 of the paper.

    ``z(c, m, q) = [c, m, q, c∘q, c∘m, |c−q|, |c−m|, cᵀWq, cᵀWm]``, then two layers.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gate = Gate(7 * width + 2, width, bias=True)
        self.pair = nn.Parameter(nn.init.xavier_uniform_(torch.empty(width, width)))

    def forward(self, facts: Tensor, memory: Tensor, query: Tensor, seen: Tensor) -> Tensor:
        """``facts`` b m s d, ``memory``, ``query`` b m d, ``seen`` b 1 s → b m s."""
        return self.gate(self.features(facts, memory, query)).masked_fill(~seen, HIDDEN)

    def features(self, facts: Tensor, memory: Tensor, query: Tensor) -> Tensor:
        """b m s z."""
        both = (query.unsqueeze(2), memory.unsqueeze(2))  # b m 1 d
        vectors = [facts, *both, *(part for other in both for part in likeness(facts, other))]
        pairs = [facts @ (self.pair @ other.mT) for other in both]  # b m s 1
        shape = torch.broadcast_shapes(*(part.shape[:-1] for part in vectors))
        return torch.cat([part.expand(*shape, -1) for part in [*vectors, *pairs]], -1)


class Pass(nn.Module):
    """One pass over the facts: gates g = σ(G(c, m, q)), and a GRU that moves as far as they open.

    ``h_t = g_t GRU(c_t, h_{t−1}) + (1 − g_t) h_{t−1}`` is the paper's equation for episodes.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.score = Score(width)
        self.cell = Cell(width, width)

    def forward(
        self, facts: Tensor, memory: Tensor, query: Tensor, seen: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """As ``Score``; gives scores and gates, and the GRU's states after each fact and at last.

        b m s twice, b m s d, b m d.
        """
        score = self.score(facts, memory, query, seen)
        gates = score.sigmoid()  # exactly 0 where nothing is
        given = self.cell.project(facts)
        return score, gates, *read_in_order(given, gates, self.cell.back)


class DMN(nn.Module):
    """Append facts; read them again and again, each pass knowing what the last one found.

    A pass gives an episode, the last state of its GRU, and ``m^i = GRU(e^i, m^{i−1})`` with
    ``m^0 = q``. The same weights serve all ``passes``.
    Where we differ: passes do not stop by themselves; there are always as many.
    """

    tables, rolls, ties = 1, 0, False

    def __init__(self, width: int, *, passes: int = 3, slots: int = 130) -> None:
        super().__init__()
        check_sizes(passes, slots)
        self.passes, self.slots = passes, slots
        self.attend = Pass(width)
        self.update = Cell(width, width)

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
        """``query``: b m 1 d. ``follow`` is not used: facts teach the gates through the scores."""
        facts, question = facts_of(state), query.squeeze(2)
        memory, scores, gates = question, [], []
        for _ in range(self.passes):
            score, gate, _, last = self.attend(facts, memory, question, state.mask.unsqueeze(1))
            memory = self.update(last, memory)
            scores.append(score)
            gates.append(gate)
        return Reading(memory, evidence(gates), evidence(scores))


class LayeredDMN(nn.Module):
    """As ``DMN``, but a pass reads the states of the pass before: a GRU of ``passes`` layers.

    ``e^i_t = g^i_t GRU(e^{i−1}_t, e^i_{t−1}) + (1 − g^i_t) e^i_{t−1}`` with ``e^0`` the facts,
    ``g^i_t = G(e^{i−1}_t, m^{i−1}, q)`` and ``m^i = e^i_T``: how the paper's figure can be read,
    where its text has episodes and a GRU over them.
    """

    tables, rolls, ties = 1, 0, False

    def __init__(self, width: int, *, passes: int = 3, slots: int = 130) -> None:
        super().__init__()
        check_sizes(passes, slots)
        self.passes, self.slots = passes, slots
        self.attend = Pass(width)

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
        """``query``: b m 1 d; ``follow`` is not used, as in ``DMN``."""
        facts, question = facts_of(state), query.squeeze(2)
        memory, scores, gates = question, [], []
        for _ in range(self.passes):
            seen = state.mask.unsqueeze(1)
            score, gate, facts, memory = self.attend(facts, memory, question, seen)
            scores.append(score)
            gates.append(gate)
        return Reading(memory, evidence(gates), evidence(scores))


class SummedDMN(nn.Module):
    """As ``DMN``, but an episode is a weighted sum: ``e^i = Σ_t softmax(G)_t c_t``.

    The soft attention that Xiong et al. 2016 (section 3.2) set beside a GRU of gates. Scores that
    are taught by one softmax over the facts are then read as they are taught.
    """

    tables, rolls, ties = 1, 0, False

    def __init__(self, width: int, *, passes: int = 3, slots: int = 130) -> None:
        super().__init__()
        check_sizes(passes, slots)
        self.passes, self.slots = passes, slots
        self.score = Score(width)
        self.update = Cell(width, width)

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
        """``query``: b m 1 d; ``follow`` is not used, as in ``DMN``."""
        facts, question, seen = facts_of(state), query.squeeze(2), state.mask.unsqueeze(1)
        memory, scores, shares = question, [], []
        for _ in range(self.passes):
            score = self.score(facts, memory, question, seen)
            share = score.softmax(-1) * seen  # an empty memory gives nothing
            memory = self.update((share.unsqueeze(2) @ facts).squeeze(2), memory)
            scores.append(score)
            shares.append(share)
        return Reading(memory, evidence(shares), evidence(scores))
