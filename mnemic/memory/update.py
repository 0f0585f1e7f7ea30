"""How a hop's query becomes the next one's: ``update(u, found, hop)``.

Shapes: b batch, m queries, d width.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn


class Add(nn.Module):
    """``u + found`` (Sukhbaatar et al. 2015, equation 4)."""

    def forward(self, u: Tensor, found: Tensor, hop: int) -> Tensor:
        return u + found


class Linear(nn.Module):
    """``H u + found``, the same H at every hop; with ``relu`` the larger variant of the paper."""

    def __init__(self, width: int, *, relu: bool = False) -> None:
        super().__init__()
        self.relu = relu
        self.map = nn.Parameter(torch.randn(width, width) * 0.1)

    def forward(self, u: Tensor, found: Tensor, hop: int) -> Tensor:
        u = u @ self.map.mT + found
        return u.relu() if self.relu else u


UPDATES: dict[str, Callable[..., Any]] = {
    "add": Add,
    "linear": Linear,
}
