"""Query updates between hops: ``update(u, output, hop)`` gives the next query.

Shapes: b batch, m queries, d width.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn


class AddUpdate(nn.Module):
    """Add a hop's output to the query (Sukhbaatar et al. 2015, equation 4)."""

    def forward(self, u: Tensor, output: Tensor, hop: int) -> Tensor:
        """Return ``u + output``."""
        return u + output


class LinearUpdate(nn.Module):
    """Compute ``H u + output`` with one H for all hops.

    With ``relu`` it is the larger variant of the paper.
    """

    def __init__(self, width: int, *, relu: bool = False) -> None:
        super().__init__()
        self.relu = relu
        self.map = nn.Parameter(torch.randn(width, width) * 0.1)

    def forward(self, u: Tensor, output: Tensor, hop: int) -> Tensor:
        """Return ``H u + output``, after a ReLU if set."""
        u = u @ self.map.mT + output
        return u.relu() if self.relu else u


class GatedUpdate(nn.Module):
    """Mix query and output by a gate: ``T ∘ output + (1 - T) ∘ u`` (Liu & Perez 2017).

    ``T = σ(W u + b)``. Each hop has its own gate, or with ``shared`` all hops have one. A gate's
    bias starts near ``open``, so that at first it passes a little more of the output than of the
    query.
    """

    def __init__(self, width: int, hops: int, *, shared: bool = False, open: float = 0.5) -> None:
        super().__init__()
        self.shared = shared
        gates = 1 if shared else hops
        self.maps = nn.Parameter(torch.randn(gates, width, width) * 0.1)
        self.biases = nn.Parameter(torch.randn(gates, width) * 0.1 + open)

    def gate(self, u: Tensor, hop: int) -> Tensor:
        """Compute the gate T of a hop (b m d): 1 = output, 0 = query."""
        index = 0 if self.shared else hop
        return torch.sigmoid(u @ self.maps[index].mT + self.biases[index])

    def forward(self, u: Tensor, output: Tensor, hop: int) -> Tensor:
        """Return ``T ∘ output + (1 - T) ∘ u``."""
        return torch.lerp(u, output, self.gate(u, hop))


class RotateUpdate(nn.Module):
    """Compute ``R_j (u + output)``, one matrix per hop (Miller et al. 2016, equation 4).

    R starts as the identity; the paper does not say how. From the identity a value reaches the
    answer unchanged, so that a value that no question asked for in training can still be given.
    """

    def __init__(self, width: int, hops: int) -> None:
        super().__init__()
        self.maps = nn.Parameter(torch.eye(width).repeat(hops, 1, 1))

    def forward(self, u: Tensor, output: Tensor, hop: int) -> Tensor:
        """Return ``R_hop (u + output)``."""
        return (u + output) @ self.maps[hop].mT


def mean_gate(update: nn.Module, u: Tensor, hop: int) -> Tensor | None:
    """Average a hop's gate over its channels (b m); None if ``update`` has no gate."""
    return update.gate(u, hop).mean(-1) if isinstance(update, GatedUpdate) else None


UPDATES: dict[str, Callable[..., Any]] = {
    "add": AddUpdate,
    "gated": GatedUpdate,
    "linear": LinearUpdate,
    "rotate": RotateUpdate,
}
