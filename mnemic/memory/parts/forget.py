"""Forgetting policies of MemNN: which sentences a full memory drops (its H(x)).

Shapes: b batch, s slots, t tables, d width.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.memory.append import Slots, append_inputs
from mnemic.memory.contract import Written


class ForgetOldest(nn.Module):
    """Append new sentences; a full memory drops the oldest."""

    def write(self, state: Slots, states: Tensor, mask: Tensor, *, max_slots: int) -> Written:
        """Append the inputs; keep the newest ``max_slots``."""
        return append_inputs(state, states, mask, max_slots=max_slots)

    def score_salience(self, contents: Tensor) -> Tensor | None:
        """Return None: this policy scores nothing."""
        return None


class ForgetUseless(nn.Module):
    """Append new sentences; a full memory drops the least useful, old or new.

    Weston et al. 2015a, section 2: H may score the utility of each memory and overwrite the least
    useful; the paper did not try it and leaves the score open. Here it is ``u·tanh(m)`` with m a
    candidate's features (its ``table``), trained by the objective ``ranking``: supporting facts
    score higher than all others. No gradient goes through the selection.
    """

    def __init__(self, width: int, *, table: int = 2) -> None:
        super().__init__()
        self.table = table
        self.vector = nn.Parameter(torch.randn(width) * 0.1)

    def write(self, state: Slots, states: Tensor, mask: Tensor, *, max_slots: int) -> Written:
        """Append the inputs; keep the ``max_slots`` of highest score."""
        return append_inputs(state, states, mask, max_slots=max_slots, salience=self.score_salience)

    def score_salience(self, contents: Tensor) -> Tensor:
        """Score the usefulness of slots: b s t d → b s."""
        return contents[:, :, self.table].tanh() @ self.vector


FORGETS: dict[str, Callable[..., Any]] = {"oldest": ForgetOldest, "useless": ForgetUseless}
