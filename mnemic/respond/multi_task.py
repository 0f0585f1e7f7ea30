"""Heads of several tasks over one pooled state.

Shapes: b windows, n tokens, d width, c outputs of all tasks.
"""

from torch import Tensor

from mnemic.memory import Reading
from mnemic.respond.classes import ClassHead, ClassPool
from mnemic.respond.contract import Response


class MultiTaskHeads(Response):
    """Score the outputs of all tasks: the classes of each, or a number (MT-DNN).

    Liu et al. 2019, arXiv:1901.11504, section 3: tasks share the encoder and the pooled state, and
    each has a linear layer of its own, whose rows are stacked here. Where we differ: pairs have the
    head of single texts, not a stochastic answer network.
    """

    source = "text"
    pools_text = True

    def __init__(self, width: int, classes: int, *, pool: ClassPool = "mean", dropout: float = 0.1) -> None:
        super().__init__()
        self.head = ClassHead(width, classes, pool=pool, dropout=dropout)

    def forward(self, query: Tensor | None, reading: Reading | None, states: Tensor, mask: Tensor) -> Tensor:
        """Score all outputs of each window, b c."""
        return self.head(query, reading, states, mask)
