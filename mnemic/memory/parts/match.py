"""Match functions of MemNN: embeddings E of summed features, compared by dot product.

Shapes: … any axes, d width.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn


class LinearMatch(nn.Module):
    """Use the features unchanged: ``s(x, y) = Φ(x)ᵀ Uᵀ U Φ(y)``.

    Weston et al. 2015a, equation 5.
    """

    def forward(self, features: Tensor) -> Tensor:
        """Return the features (… d)."""
        return features


class TanhMatch(nn.Module):
    """Embed by two layers: ``E(x) = tanh(W tanh(U Φ(x)))`` (NL, Weston et al. 2015b)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.map = nn.Parameter(torch.randn(width, width) * width**-0.5)

    def forward(self, features: Tensor) -> Tensor:
        """Embed features (… d)."""
        return (features.tanh() @ self.map.mT).tanh()  # … d


MATCHES: dict[str, Callable[..., Any]] = {"linear": LinearMatch, "tanh": TanhMatch}
