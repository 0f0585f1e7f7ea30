"""Heads for a class or a number of a text, for one task or several.

Shapes: b windows, n tokens, d width, c classes (1 for a number).
"""

from collections.abc import Callable
from copy import deepcopy
from typing import Literal

import torch
from torch import Tensor, nn

from mnemic.encode.gru_cell import init_glorot
from mnemic.memory import Reading
from mnemic.respond.contract import Response

ClassPool = Literal["first", "mean", "max", "last"]


class ClassHead(Response):
    """Score every class: ``W₂ dropout(tanh(W₁ pooled))`` (Devlin et al. 2019, section 4.1).

    ``pool``: the first token's state, which BERT's pre-training prepares for this; the mean of the
    text's tokens, from which a network without pre-training learns faster; the maximum of each
    channel over them (Star-Transformer); or the last token's state, which alone has read all of a
    text in a causal network (Radford et al. 2018, section 3.2). Without ``hidden`` the
    pooled state is scored as it is, by W₂ alone.
    """

    source = "text"
    reads_segments = pools_text = True
    methods = ("classify", "rate")

    def __init__(
        self, width: int, classes: int, *, pool: ClassPool = "mean", dropout: float = 0.1, hidden: bool = True
    ) -> None:
        super().__init__()
        self.pool = pool
        self.inner = init_glorot(nn.Linear(width, width)) if hidden else None
        self.dropout = nn.Dropout(dropout)
        self.out = init_glorot(nn.Linear(width, classes))

    def forward(self, query: Tensor | None, reading: Reading | None, states: Tensor, mask: Tensor) -> Tensor:
        """Score the classes of each window, b c."""
        pooled = POOLS[self.pool](states, mask)  # b d
        if self.inner is not None:
            pooled = self.inner(pooled).tanh()
        return self.out(self.dropout(pooled))  # b c


class MultiTaskHeads(Response):
    """Score the outputs of all tasks: classes, or a number each (MT-DNN).

    Liu et al. 2019, arXiv:1901.11504, section 3: tasks share the encoder and the pooled state, and
    each has a linear layer of its own, whose rows are stacked here. Where we differ: pairs have the
    head of single texts, not a stochastic answer network.
    """

    source = "text"
    pools_text = True
    methods = ("select_task",)

    def __init__(self, width: int, classes: int, *, pool: ClassPool = "mean", dropout: float = 0.1) -> None:
        super().__init__()
        self.head = ClassHead(width, classes, pool=pool, dropout=dropout)

    def forward(self, query: Tensor | None, reading: Reading | None, states: Tensor, mask: Tensor) -> Tensor:
        """Score all outputs of each window, b c."""
        return self.head(query, reading, states, mask)

    def select_outputs(self, first: int, count: int) -> ClassHead:
        """Return a head of ``count`` outputs from ``first`` on, with copies of their weights."""
        head = deepcopy(self.head)
        head.out.weight, head.out.bias = (
            nn.Parameter(weight.detach()[first : first + count].clone()) for weight in (head.out.weight, head.out.bias)
        )
        head.out.out_features = count
        return head


def masked_mean(states: Tensor, mask: Tensor) -> Tensor:
    """Average the states (b n d) of unmasked tokens (b n); zeros without any."""
    weights = mask.unsqueeze(-1).to(states.dtype)
    return (states * weights).sum(1) / weights.sum(1).clamp(min=1)


def masked_max(states: Tensor, mask: Tensor) -> Tensor:
    """Take the maximum over unmasked tokens (b n d → b d); zeros without any."""
    lowest = torch.finfo(states.dtype).min
    return states.masked_fill(~mask.unsqueeze(-1), lowest).amax(1) * mask.any(1, keepdim=True)


def select_first(states: Tensor, mask: Tensor) -> Tensor:
    """Select the state of the first token, whatever it is: b n d → b d."""
    return states[:, 0]


def select_last(states: Tensor, mask: Tensor) -> Tensor:
    """Select the state of the last unmasked token: b n d → b d."""
    columns = torch.arange(mask.shape[1], device=mask.device)
    last = torch.where(mask, columns, 0).amax(1)  # b
    return states.gather(1, last[:, None, None].expand(-1, 1, states.shape[-1])).squeeze(1)


POOLS: dict[ClassPool, Callable[[Tensor, Tensor], Tensor]] = {
    "first": select_first,
    "mean": masked_mean,
    "max": masked_max,
    "last": select_last,
}
