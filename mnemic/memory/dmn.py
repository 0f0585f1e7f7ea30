"""DMN, the dynamic memory network (Kumar et al. 2016), and two variants.

Shapes: b batch, n inputs, m queries, s slots, k passes, h heads (1), t tables (1), d width.
"""

import torch
from torch import Tensor, nn

from mnemic.encode.gru_cell import GRUCell
from mnemic.memory.append import Slots, append_inputs, empty_slots
from mnemic.memory.contract import Reading, Written
from mnemic.memory.parts.episodes import (
    MASKED_SCORE,
    FactGate,
    check_dmn_sizes,
    facts_of,
    scan_facts,
    similarity_features,
    stack_passes,
)


class FactScorer(nn.Module):
    """Score each fact before the gate: ``G(c, m, q)`` of section 2.3 of the paper.

    ``z(c, m, q) = [c, m, q, c∘q, c∘m, |c−q|, |c−m|, cᵀWq, cᵀWm]``, then two layers.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gate = FactGate(7 * width + 2, width, bias=True)
        self.pair = nn.Parameter(nn.init.xavier_uniform_(torch.empty(width, width)))

    def forward(self, facts: Tensor, memory: Tensor, query: Tensor, mask: Tensor) -> Tensor:
        """Score the facts: b m s d → b m s.

        ``memory`` and ``query`` b m d, ``mask`` b 1 s.
        """
        return self.gate(self.gate_features(facts, memory, query)).masked_fill(~mask, MASKED_SCORE)

    def gate_features(self, facts: Tensor, memory: Tensor, query: Tensor) -> Tensor:
        """Build the features z of every fact, b m s z."""
        references = (query.unsqueeze(2), memory.unsqueeze(2))  # b m 1 d
        vectors = [
            facts,
            *references,
            *(feature for vector in references for feature in similarity_features(facts, vector)),
        ]
        pairs = [facts @ (self.pair @ vector.mT) for vector in references]  # b m s 1
        shape = torch.broadcast_shapes(*(feature.shape[:-1] for feature in vectors))
        return torch.cat([feature.expand(*shape, -1) for feature in [*vectors, *pairs]], -1)


class EpisodePass(nn.Module):
    """One pass over the facts: gates g = σ(G(c, m, q)) and a gated GRU.

    ``h_t = g_t GRU(c_t, h_{t−1}) + (1 − g_t) h_{t−1}`` is the paper's equation for episodes.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.score = FactScorer(width)
        self.cell = GRUCell(width, width)

    def forward(
        self, facts: Tensor, memory: Tensor, query: Tensor, mask: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Read all facts once; arguments as for ``FactScorer``.

        Returns scores and gates (b m s), and the GRU's states after each fact (b m s d) and after
        the last one (b m d).
        """
        scores = self.score(facts, memory, query, mask)
        gates = scores.sigmoid()  # exactly 0 at padding
        projections = self.cell.project_input(facts)
        return scores, gates, *scan_facts(projections, gates, self.cell.back)


class DMN(nn.Module):
    """Append facts; read them in several passes, each given the last pass's memory.

    The last state of a pass's GRU is an episode e, and ``m^i = GRU(e^i, m^{i−1})`` with
    ``m^0 = q``. All ``passes`` share their weights.
    Where we differ: the number of passes is fixed; no pass decides to stop.
    """

    num_tables, num_uniforms, ties_answers = 1, 0, False

    def __init__(self, width: int, *, passes: int = 3, slots: int = 130) -> None:
        super().__init__()
        check_dmn_sizes(passes, slots)
        self.passes, self.num_slots = passes, slots
        self.attend = EpisodePass(width)
        self.update = GRUCell(width, width)

    def empty(self, batch: int, like: Tensor) -> Slots:
        """Make a state with no slots."""
        return empty_slots(batch, like)

    def write(self, state: Slots, states: Tensor, mask: Tensor) -> Written:
        """Append the inputs as new slots."""
        return append_inputs(state, states, mask, max_slots=self.num_slots)

    def read(
        self, state: Slots, query: Tensor, *, teacher_slots: Tensor | None = None, uniforms: Tensor | None = None
    ) -> Reading:
        """Read with ``query`` (b m 1 d); ``teacher_slots`` is unused.

        Supporting facts supervise the gates through the scores.
        """
        facts, question = facts_of(state), query.squeeze(2)
        memory, scores, gates = question, [], []
        for _ in range(self.passes):
            score, gate, _, episode = self.attend(facts, memory, question, state.mask.unsqueeze(1))
            memory = self.update(episode, memory)
            scores.append(score)
            gates.append(gate)
        return Reading(memory, stack_passes(gates), stack_passes(scores))


class LayeredDMN(nn.Module):
    """A DMN whose passes are the layers of one gated GRU.

    ``e^i_t = g^i_t GRU(e^{i−1}_t, e^i_{t−1}) + (1 − g^i_t) e^i_{t−1}`` with ``e^0`` the facts,
    ``g^i_t = G(e^{i−1}_t, m^{i−1}, q)`` and ``m^i = e^i_T``: one interpretation of the paper's
    figure; its text has episodes and a GRU over them.
    """

    num_tables, num_uniforms, ties_answers = 1, 0, False

    def __init__(self, width: int, *, passes: int = 3, slots: int = 130) -> None:
        super().__init__()
        check_dmn_sizes(passes, slots)
        self.passes, self.num_slots = passes, slots
        self.attend = EpisodePass(width)

    def empty(self, batch: int, like: Tensor) -> Slots:
        """Make a state with no slots."""
        return empty_slots(batch, like)

    def write(self, state: Slots, states: Tensor, mask: Tensor) -> Written:
        """Append the inputs as new slots."""
        return append_inputs(state, states, mask, max_slots=self.num_slots)

    def read(
        self, state: Slots, query: Tensor, *, teacher_slots: Tensor | None = None, uniforms: Tensor | None = None
    ) -> Reading:
        """Read with ``query`` (b m 1 d); ``teacher_slots`` is unused, as in ``DMN``."""
        facts, question = facts_of(state), query.squeeze(2)
        memory, scores, gates = question, [], []
        for _ in range(self.passes):
            mask = state.mask.unsqueeze(1)
            score, gate, facts, memory = self.attend(facts, memory, question, mask)
            scores.append(score)
            gates.append(gate)
        return Reading(memory, stack_passes(gates), stack_passes(scores))


class SummedDMN(nn.Module):
    """A DMN whose episode is a weighted sum: ``e^i = Σ_t softmax(G)_t c_t``.

    The soft attention that Xiong et al. 2016 (section 3.2) compare with a gated GRU. Scores that
    are supervised through one softmax over the facts are then used in the same way.
    """

    num_tables, num_uniforms, ties_answers = 1, 0, False

    def __init__(self, width: int, *, passes: int = 3, slots: int = 130) -> None:
        super().__init__()
        check_dmn_sizes(passes, slots)
        self.passes, self.num_slots = passes, slots
        self.score = FactScorer(width)
        self.update = GRUCell(width, width)

    def empty(self, batch: int, like: Tensor) -> Slots:
        """Make a state with no slots."""
        return empty_slots(batch, like)

    def write(self, state: Slots, states: Tensor, mask: Tensor) -> Written:
        """Append the inputs as new slots."""
        return append_inputs(state, states, mask, max_slots=self.num_slots)

    def read(
        self, state: Slots, query: Tensor, *, teacher_slots: Tensor | None = None, uniforms: Tensor | None = None
    ) -> Reading:
        """Read with ``query`` (b m 1 d); ``teacher_slots`` is unused, as in ``DMN``."""
        facts, question, mask = facts_of(state), query.squeeze(2), state.mask.unsqueeze(1)
        memory, scores, shares = question, [], []
        for _ in range(self.passes):
            score = self.score(facts, memory, question, mask)
            share = score.softmax(-1) * mask  # an empty memory gives zeros
            memory = self.update((share.unsqueeze(2) @ facts).squeeze(2), memory)
            scores.append(score)
            shares.append(share)
        return Reading(memory, stack_passes(shares), stack_passes(scores))
