"""DMN+, the improved dynamic memory network (Xiong et al. 2016).

Shapes: b batch, n inputs, m queries, s slots, k passes, h heads (1), t tables (1), d width.
"""

import torch
from torch import Tensor, nn

from mnemic.encode.gru_cell import init_glorot
from mnemic.memory.contract import MASKED_SCORE, ReadLabels
from mnemic.memory.parts.episodes import DynamicMemory, FactGate, scan_facts, similarity_features


class AttentionGRU(nn.Module):
    """A GRU with attention as its update gate (equation 11).

    ``h ← g h̃ + (1 − g) h``, ``h̃ = tanh(W x + r ∘ U h + b)`` and ``r = σ(W_r x + U_r h + b_r)``.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.given = init_glorot(nn.Linear(width, 2 * width), num_blocks=2)
        self.back = init_glorot(nn.Linear(width, 2 * width, bias=False), num_blocks=2)

    def forward(self, facts: Tensor, gates: Tensor) -> Tensor:
        """Read ``facts`` (b m s d) with ``gates`` (b m s); return the last state."""
        projections = self.given(facts).unflatten(-1, (2, self.width))  # to r and h̃
        return scan_facts(projections, gates, self.back)[1]


class UntiedPass(nn.Module):
    """One pass with its own weights: softmax gates, an episode and a memory update.

    ``m ← relu(W [m; e; q] + b)``. The gates' features are ``z = [c∘q, c∘m, |c−q|, |c−m|]``
    (equations 8 to 10, 13).
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gate = FactGate(4 * width, width, bias=False)
        self.gru = AttentionGRU(width)
        self.update = init_glorot(nn.Linear(3 * width, width))

    def forward(self, facts: Tensor, memory: Tensor, query: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Read all facts once; return scores, gates and the new memory.

        ``facts`` b 1 s d, ``memory`` and ``query`` b m d, ``mask`` b 1 s. Scores and gates are
        b m s, the new memory b m d.
        """
        references = (query.unsqueeze(2), memory.unsqueeze(2))  # b m 1 d
        features = [feature for vector in references for feature in similarity_features(facts, vector)]
        scores = self.gate(torch.cat(features, -1)).masked_fill(~mask, MASKED_SCORE)
        gates = scores.softmax(-1) * mask  # an empty memory gives zeros
        episode = self.gru(facts, gates)
        joined = torch.cat([memory, episode, query], -1)
        return scores, gates, self.update(joined).relu()


class DMNPlus(DynamicMemory):
    """DMN with untied passes, softmax gates and a ReLU memory update.

    The facts should come from position encoding and a bidirectional GRU over the sentences
    (``model.fuse``), so that a pass can see the context of a fact.
    """

    labels = ReadLabels("pass {}", "How far the gate of each sentence opened in each pass; a column adds up to 1.")

    def add_parts(self, width: int) -> None:
        """Build every pass with its own weights."""
        self.passes = nn.ModuleList(UntiedPass(width) for _ in range(self.num_passes))

    def read_pass(
        self, number: int, facts: Tensor, memory: Tensor, question: Tensor, mask: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Read all facts with the weights of this pass."""
        scores, gates, memory = self.passes[number](facts, memory, question, mask)
        return scores, gates, facts, memory
