"""Which sentences a full memory keeps: H(x) of the first memory network, a family of its own.

Shapes: b batch, s slots, t tables, d width.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.memory.append import Slots, append
from mnemic.memory.contract import Written


class Oldest(nn.Module):
    """A new sentence takes the next free slot; when there is none, the place of the oldest."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def write(self, state: Slots, states: Tensor, mask: Tensor, *, most: int) -> Written:
        return append(state, states, mask, most=most)

    def worth(self, contents: Tensor) -> Tensor | None:
        """Nothing is said of what a sentence is worth."""
        return None


class Useless(nn.Module):
    """A new sentence takes the place of the one that is least worth keeping, maybe its own.

    Weston et al. 2015a, section 2, where H may score the utility of each memory and write over
    the least useful; the paper did not try it and leaves the score open. Here it is ``u·tanh(m)``
    with m a candidate's features (its ``table``), which ``ranking`` teaches: facts that proved an
    answer are worth more than all others. No gradient goes through the choice.
    """

    def __init__(self, width: int, *, table: int = 2) -> None:
        super().__init__()
        self.table = table
        self.vector = nn.Parameter(torch.randn(width) * 0.1)

    def write(self, state: Slots, states: Tensor, mask: Tensor, *, most: int) -> Written:
        return append(state, states, mask, most=most, worth=self.worth)

    def worth(self, contents: Tensor) -> Tensor:
        """``contents``: b s t d → b s."""
        return contents[:, :, self.table].tanh() @ self.vector


FORGETS: dict[str, Callable[..., Any]] = {
    "oldest": Oldest,
    "useless": Useless,
}
