"""Forgetting policies of MemNN: which sentences a full memory drops (its H(x)).

``score_salience(contents)`` scores the slots that are to stay, None to keep the newest.

Shapes: b batch, s slots, t tables, d width.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn


class ForgetOldest(nn.Module):
    """Drop the oldest sentences of a full memory."""

    def score_salience(self, contents: Tensor) -> Tensor | None:
        """Return None: this policy scores nothing."""
        return None


class ForgetUseless(nn.Module):
    """Drop the least useful sentences of a full memory, old or new.

    Weston et al. 2015a, section 2: H may score the utility of each memory and overwrite the least
    useful; the paper did not try it and leaves the score open. Here it is ``u·tanh(m)`` with m a
    candidate's features (its ``table``), trained by the objective ``ranking``: supporting facts
    score higher than all others. No gradient goes through the selection.
    """

    def __init__(self, width: int, *, table: int = 2) -> None:
        super().__init__()
        self.table = table
        self.vector = nn.Parameter(torch.randn(width) * 0.1)

    def score_salience(self, contents: Tensor) -> Tensor:
        """Score the usefulness of slots: b s t d → b s."""
        return contents[:, :, self.table].tanh() @ self.vector


FORGETS: dict[str, Callable[..., Any]] = {"oldest": ForgetOldest, "useless": ForgetUseless}
