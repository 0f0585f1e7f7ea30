"""Normalization of states in Transformer layers: the table of its kinds.

Shapes: b batch, n tokens, d width.
"""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

NormKind = Literal["layer", "rms", "batch", "none"]


class MaskedBatchNorm(nn.Module):
    """Normalize each feature over the real tokens of a batch (Ioffe and Szegedy 2015).

    arXiv:1502.03167. Outside training, mean and variance are averages of those of training, into
    which each batch goes with a share of ``momentum``; a text is then independent of the others.

    Where we differ: padding has no part in mean and variance.
    """

    uses_mask = True
    supports_causal = False  # mean and variance are of later tokens, too

    def __init__(self, width: int, eps: float = 1e-5, momentum: float = 0.1) -> None:
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))
        self.mean: Tensor
        self.variance: Tensor
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("variance", torch.ones(width))

    def forward(self, x: Tensor, is_real: Tensor) -> Tensor:
        """Normalize ``x`` b n d; ``is_real`` (b n) says which tokens are no padding."""
        mean, variance = self.measure(x.float(), is_real) if self.training else (self.mean, self.variance)
        scale = self.weight * (variance + self.eps).rsqrt()
        return ((x.float() - mean) * scale + self.bias).to(x.dtype)

    def measure(self, x: Tensor, is_real: Tensor) -> tuple[Tensor, Tensor]:
        """Compute mean and variance over real tokens, and update the averages of them."""
        shares = is_real.unsqueeze(-1).to(x.dtype).expand(x.shape[0], -1, -1)  # b n 1
        count = shares.sum()
        mean = (x * shares).sum((0, 1)) / count.clamp(min=1)
        variance = ((x - mean).square() * shares).sum((0, 1)) / count.clamp(min=1)
        with torch.no_grad():
            share = self.momentum * (count > 0)  # nothing changes without tokens
            unbiased = variance * count / (count - 1).clamp(min=1)
            self.mean.lerp_(mean.to(self.mean.dtype), share)
            self.variance.lerp_(unbiased.to(self.variance.dtype), share)
        return mean, variance


class NoNorm(nn.Identity):
    """Leave states as they are."""

    def __init__(self, width: int, eps: float = 0.0) -> None:
        super().__init__()
        self.eps = eps


# ``layer`` (Ba et al. 2016) subtracts the mean and has a bias; ``rms`` (Zhang and Sennrich 2019,
# arXiv:1910.07467) only divides by the root of the mean square.
NORMS: dict[NormKind, Callable[..., nn.Module]] = {
    "layer": nn.LayerNorm,
    "rms": nn.RMSNorm,
    "batch": MaskedBatchNorm,
    "none": NoNorm,
}


def make_norm(kind: NormKind, width: int, epsilon: float) -> nn.Module:
    """Make the norm of a kind for states of a width."""
    return NORMS[kind](width, eps=epsilon)


def normalize(norm: nn.Module, x: Tensor, is_real: Tensor | None) -> Tensor:
    """Normalize states, b n d; ``is_real`` b n is for norms over real tokens."""
    result: Tensor = norm(x, is_real) if getattr(norm, "uses_mask", False) else norm(x)
    return result
