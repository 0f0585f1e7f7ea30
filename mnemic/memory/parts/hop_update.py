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


class Gated(nn.Module):
    """``T ∘ found + (1 - T) ∘ u`` with ``T = σ(W u + b)`` (Liu & Perez 2017).

    Each hop has a gate of its own, or with ``shared`` all have one. A gate's bias begins near
    ``open``, so that at first it passes on a little more of what was found than of the query.
    """

    def __init__(self, width: int, hops: int, *, shared: bool = False, open: float = 0.5) -> None:
        super().__init__()
        self.shared = shared
        gates = 1 if shared else hops
        self.maps = nn.Parameter(torch.randn(gates, width, width) * 0.1)
        self.biases = nn.Parameter(torch.randn(gates, width) * 0.1 + open)

    def gate(self, u: Tensor, hop: int) -> Tensor:
        """T of a hop (b m d): 1 takes what was found, 0 keeps the query."""
        own = 0 if self.shared else hop
        return torch.sigmoid(u @ self.maps[own].mT + self.biases[own])

    def forward(self, u: Tensor, found: Tensor, hop: int) -> Tensor:
        return torch.lerp(u, found, self.gate(u, hop))


class Rotate(nn.Module):
    """``R_j (u + found)``, a matrix a hop (Miller et al. 2016, equation 4); R begins as identity.

    The paper does not say how R begins. From the identity what was found reaches the answer as it
    is, so that a value no one ever asked for can still be given.
    """

    def __init__(self, width: int, hops: int) -> None:
        super().__init__()
        self.maps = nn.Parameter(torch.eye(width).repeat(hops, 1, 1))

    def forward(self, u: Tensor, found: Tensor, hop: int) -> Tensor:
        return (u + found) @ self.maps[hop].mT


def opened(update: nn.Module, u: Tensor, hop: int) -> Tensor | None:
    """How much of what a hop finds will be taken, the mean of all channels (b m); None: no gate."""
    return update.gate(u, hop).mean(-1) if isinstance(update, Gated) else None


UPDATES: dict[str, Callable[..., Any]] = {
    "add": Add,
    "gated": Gated,
    "linear": Linear,
    "rotate": Rotate,
}
