"""DMN, the dynamic memory network (Kumar et al. 2016), and two variants.

Shapes: b batch, n inputs, m queries, s slots, k passes, h heads (1), t tables (1), d width.
"""

import torch
from torch import Tensor, nn

from mnemic.encode.gru_cell import GRUCell
from mnemic.memory.contract import ATTENTION_CAPTION, MASKED_SCORE, ReadLabels
from mnemic.memory.parts.episodes import DynamicMemory, FactGate, scan_facts, similarity_features


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
        references = (query.unsqueeze(2), memory.unsqueeze(2))  # b m 1 d
        similarities = [feature for vector in references for feature in similarity_features(facts, vector)]
        pairs = [facts @ (self.pair @ vector.mT) for vector in references]  # b m s 1
        features = [facts, *references, *similarities, *pairs]
        shape = torch.broadcast_shapes(*(feature.shape[:-1] for feature in features))
        z = torch.cat([feature.expand(*shape, -1) for feature in features], -1)  # b m s z
        return self.gate(z).masked_fill(~mask, MASKED_SCORE)


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


class DMN(DynamicMemory):
    """Append facts; read them in several passes, each given the last pass's memory.

    The last state of a pass's GRU is an episode e, and ``m^i = GRU(e^i, m^{i−1})`` with
    ``m^0 = q``. All ``passes`` share their weights.
    Where we differ: the number of passes is fixed; no pass decides to stop.
    """

    def add_parts(self, width: int) -> None:
        """Build the pass over the facts and the memory update."""
        self.attend = EpisodePass(width)
        self.update = GRUCell(width, width)

    def read_pass(
        self, number: int, facts: Tensor, memory: Tensor, question: Tensor, mask: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Read an episode and update the memory with it."""
        scores, gates, _, episode = self.attend(facts, memory, question, mask)
        return scores, gates, facts, self.update(episode, memory)


class LayeredDMN(DynamicMemory):
    """A DMN whose passes are the layers of one gated GRU.

    ``e^i_t = g^i_t GRU(e^{i−1}_t, e^i_{t−1}) + (1 − g^i_t) e^i_{t−1}`` with ``e^0`` the facts,
    ``g^i_t = G(e^{i−1}_t, m^{i−1}, q)`` and ``m^i = e^i_T``: one interpretation of the paper's
    figure; its text has episodes and a GRU over them.
    """

    def add_parts(self, width: int) -> None:
        """Build the pass over the facts."""
        self.attend = EpisodePass(width)

    def read_pass(
        self, number: int, facts: Tensor, memory: Tensor, question: Tensor, mask: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Read one layer; its states are the facts of the next."""
        return self.attend(facts, memory, question, mask)


class SummedDMN(DynamicMemory):
    """A DMN whose episode is a weighted sum: ``e^i = Σ_t softmax(G)_t c_t``.

    The soft attention that Xiong et al. 2016 (section 3.2) compare with a gated GRU. Scores that
    are supervised through one softmax over the facts are then used in the same way.
    """

    labels = ReadLabels("pass {}", ATTENTION_CAPTION.replace("at each hop", "in each pass"))

    def add_parts(self, width: int) -> None:
        """Build the scores of the facts and the memory update."""
        self.score = FactScorer(width)
        self.update = GRUCell(width, width)

    def read_pass(
        self, number: int, facts: Tensor, memory: Tensor, question: Tensor, mask: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Read the weighted sum of the facts and update the memory with it."""
        scores = self.score(facts, memory, question, mask)
        shares = scores.softmax(-1) * mask  # an empty memory gives zeros
        return scores, shares, facts, self.update((shares.unsqueeze(2) @ facts).squeeze(2), memory)
