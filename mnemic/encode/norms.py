"""Normalization of states in Transformer layers: the table of its kinds."""

from collections.abc import Callable
from typing import Literal

from torch import nn

NormKind = Literal["layer", "rms"]

# ``layer`` (Ba et al. 2016) subtracts the mean and has a bias; ``rms`` (Zhang and Sennrich 2019,
# arXiv:1910.07467) only divides by the root of the mean square.
NORMS: dict[NormKind, Callable[..., nn.Module]] = {"layer": nn.LayerNorm, "rms": nn.RMSNorm}


def make_norm(kind: NormKind, width: int, epsilon: float) -> nn.Module:
    """Make the norm of a kind for states of a width."""
    return NORMS[kind](width, eps=epsilon)
