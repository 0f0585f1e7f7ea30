"""What DMN and DMN+ share: a gate for every fact, and reading the facts in order behind the gates.

Shapes: b batch, m queries, s slots, d width, z features of a gate. A state that all queries or
all rows share has 1 there.
"""

import torch
from torch import Tensor, nn

from mnemic.encode.gated_gru import scan
from mnemic.encode.gru_cell import glorot
from mnemic.memory.append import Slots

HIDDEN = -1e30  # the score of a slot that may not be seen


class Gate(nn.Module):
    """How much a fact matters, from features: ``W₂ tanh(W₁ z + b₁) + b₂``.

    Without ``bias`` there is no b₂, which a softmax over the facts would not feel.
    """

    def __init__(self, features: int, width: int, *, bias: bool) -> None:
        super().__init__()
        self.first = glorot(nn.Linear(features, width))
        self.second = glorot(nn.Linear(width, 1, bias=bias))

    def forward(self, features: Tensor) -> Tensor:
        """b m s z → scores b m s."""
        return self.second(self.first(features).tanh()).squeeze(-1)


def likeness(facts: Tensor, other: Tensor) -> list[Tensor]:
    """Products and distances of every fact and a question or a memory, b m s d each."""
    return [facts * other, (facts - other).abs()]


def read_in_order(given: Tensor, gates: Tensor, back: nn.Linear) -> tuple[Tensor, Tensor]:
    """The states of a gated GRU after each fact (b m s d) and after the last one (b m d).

    ``given`` (b m s g d) is what the facts bring to its parts, ``back`` what the state does; see
    `scan`. ``gates`` (b m s) are 0 at padding, which therefore changes nothing.
    """
    each = given.expand(*gates.shape, -1, -1).flatten(0, 1)  # bm s g d
    start = given.new_zeros(each.shape[0], given.shape[-1])
    states, last = scan(each, gates.flatten(0, 1), back.weight, back.bias, start)
    return states.unflatten(0, gates.shape[:2]), last.unflatten(0, gates.shape[:2])


def facts_of(state: Slots) -> Tensor:
    """The slots' contents for all queries: b s 1 d → b 1 s d."""
    return state.states.transpose(1, 2)


def evidence(passes: list[Tensor]) -> Tensor:
    """One tensor a pass, b m s each, with one head: b k h m s."""
    return torch.stack(passes, 1).unsqueeze(2)


def check_sizes(passes: int, slots: int) -> None:
    if passes < 1 or slots < 1:
        came = f"passes = {passes}, slots = {slots}"
        raise ValueError(f"a dynamic memory takes passes and slots ≥ 1, not {came}")
