"""Keep gradients in bounds. ``runs`` says that every tensor has a leading axis of runs.

Each clipper scales the gradients where they lie and returns their whole norm before that,
one number a run. None of them waits for a GPU, so all of them may be captured in a graph.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from mnemic.recipe import ConfigError

SQUARINGS = 8  # the spectral norm is then at most rank ** (1 / 2 ** 9) too large: 0.8 % at rank 50


class Clip(Protocol):
    def __call__(self, gradients: Sequence[Tensor], *, runs: bool) -> Tensor: ...


@dataclass(frozen=True)
class NoClip:
    """Only measure."""

    def __call__(self, gradients: Sequence[Tensor], *, runs: bool) -> Tensor:
        return whole_norm(gradients, runs=runs)


@dataclass(frozen=True)
class ClipValue:
    """Cut every single number to ± ``most``."""

    most: float = 1.0

    def __post_init__(self) -> None:
        check(self.most)

    def __call__(self, gradients: Sequence[Tensor], *, runs: bool) -> Tensor:
        norm = whole_norm(gradients, runs=runs)
        for gradient in gradients:
            gradient.clamp_(-self.most, self.most)
        return norm


@dataclass(frozen=True)
class ClipNorm:
    """Scale all gradients together to a norm of at most ``most``."""

    most: float = 1.0

    def __post_init__(self) -> None:
        check(self.most)

    def __call__(self, gradients: Sequence[Tensor], *, runs: bool) -> Tensor:
        norm = whole_norm(gradients, runs=runs)
        scale = (self.most / (norm + 1e-6)).clamp(max=1.0)
        for gradient in gradients:
            gradient.mul_(along(scale, gradient))
        return norm


@dataclass(frozen=True)
class ClipSpectral:
    """Scale each matrix by itself to a spectral norm of at most ``most`` (MATLAB's ``norm``)."""

    most: float = 40.0

    def __post_init__(self) -> None:
        check(self.most)

    def __call__(self, gradients: Sequence[Tensor], *, runs: bool) -> Tensor:
        axes = [tuple(range(int(runs), gradient.dim())) for gradient in gradients]
        squares = torch.stack([g.square().sum(axis) for g, axis in zip(gradients, axes)])
        # The spectral norm is never above the Frobenius norm, so most steps need no more than that.
        if squares.is_cuda or (squares > self.most**2).any():
            for group in same_shape(gradients):
                matrices = torch.stack(group)  # g (runs) r c
                if matrices.dim() == 2 + runs:  # vectors
                    matrices = matrices.unsqueeze(-1)
                scales = (self.most / spectral_norm(matrices)).clamp(max=1.0)  # g (runs)
                for gradient, scale in zip(group, scales):
                    gradient.mul_(along(scale, gradient))
        return squares.sum(0).sqrt()


CLIPS: dict[str, Callable[..., Any]] = {
    "none": NoClip,
    "value": ClipValue,
    "norm": ClipNorm,
    "spectral": ClipSpectral,
}


def check(most: float) -> None:
    if not most > 0:
        raise ConfigError(f"clip.most is a number above 0, not {most}")


def same_shape(gradients: Sequence[Tensor]) -> list[list[Tensor]]:
    """Gradients that can be worked on as one."""
    groups: dict[torch.Size, list[Tensor]] = {}
    for gradient in gradients:
        groups.setdefault(gradient.shape, []).append(gradient)
    return list(groups.values())


def whole_norm(gradients: Sequence[Tensor], *, runs: bool) -> Tensor:
    """The norm of all gradients together, one number a run."""
    squares = [g.square().sum(tuple(range(int(runs), g.dim()))) for g in gradients]
    return torch.stack(squares).sum(0).sqrt()


def along(scale: Tensor, gradient: Tensor) -> Tensor:
    """One factor a run, shaped to multiply ``gradient``."""
    return scale.view(*scale.shape, *[1] * (gradient.dim() - scale.dim()))


def spectral_norm(matrix: Tensor) -> Tensor:
    """The largest singular value of each matrix (… r c), by squaring its Gram matrix repeatedly.

    It errs by less than a percent, always upwards, and needs neither an SVD nor a wait.
    """
    power = matrix.mT @ matrix if matrix.shape[-1] <= matrix.shape[-2] else matrix @ matrix.mT
    logarithm = torch.zeros((), device=matrix.device)
    for squaring in range(SQUARINGS + 1):
        if squaring:
            power = power @ power
        if squaring % 2 == 0:  # a trace of 1 is at least rank ** -3 two squarings later
            size = power.diagonal(dim1=-2, dim2=-1).sum(-1).clamp(min=1e-30)  # …
            power = power / size[..., None, None]
            logarithm = logarithm + size.log() / 2 ** (squaring + 1)
    return logarithm.exp()
