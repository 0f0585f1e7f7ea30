"""How MemNN turns summed features into the vector that is compared: a family of its own.

Shapes: … any axes, d width.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn


class LinearMatch(nn.Module):
    """The features' sum as it is: ``s(x, y) = Φ(x)ᵀ Uᵀ U Φ(y)`` (Weston et al. 2015a, eq. 5)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, features: Tensor) -> Tensor:
        return features


class TanhMatch(nn.Module):
    """``E(x) = tanh(W tanh(U Φ(x)))`` on both sides: NL, two layers (Weston et al. 2015b)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.map = nn.Parameter(torch.randn(width, width) * width**-0.5)

    def forward(self, features: Tensor) -> Tensor:
        return (features.tanh() @ self.map.mT).tanh()  # … d


MATCHES: dict[str, Callable[..., Any]] = {
    "linear": LinearMatch,
    "tanh": TanhMatch,
}
