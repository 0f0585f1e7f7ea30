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
        if not runs:
            norm = whole_norm(gradients, runs=False)
            torch._foreach_mul_(list(gradients), self.scale(norm))
            return norm
        flat = in_a_row(gradients)  # so that a few kernels do for all of them
        norm = torch.linalg.vector_norm(flat, dim=-1)
        flat *= self.scale(norm).unsqueeze(-1)
        parts = flat.split([gradient[0].numel() for gradient in gradients], -1)
        scaled = [part.view_as(gradient) for part, gradient in zip(parts, gradients)]
        torch._foreach_copy_(list(gradients), scaled)
        return norm

    def scale(self, norm: Tensor) -> Tensor:
        return (self.most / (norm + 1e-6)).clamp(max=1.0)


@dataclass(frozen=True)
class ClipSpectral:
    """Scale each matrix by itself to a spectral norm of at most ``most`` (MATLAB's ``norm``)."""

    most: float = 40.0

    def __post_init__(self) -> None:
        check(self.most)

    def __call__(self, gradients: Sequence[Tensor], *, runs: bool) -> Tensor:
        norm = whole_norm(gradients, runs=runs)
        # The spectral norm is never above the Frobenius norm, so most steps need no more than that.
        if norm.is_cuda or (norm > self.most).any():
            vectors = [gradient.dim() == 1 + runs for gradient in gradients]
            matrices = [g.unsqueeze(-1) if flat else g for g, flat in zip(gradients, vectors)]
            for gradient, size in zip(gradients, spectral_norms(matrices)):
                gradient.mul_(along((self.most / size).clamp(max=1.0), gradient))
        return norm


CLIPS: dict[str, Callable[..., Any]] = {
    "none": NoClip,
    "value": ClipValue,
    "norm": ClipNorm,
    "spectral": ClipSpectral,
}


def check(most: float) -> None:
    if not most > 0:
        raise ConfigError(f"clip.most is a number above 0, not {most}")


def whole_norm(gradients: Sequence[Tensor], *, runs: bool) -> Tensor:
    """The norm of all gradients together, one number a run."""
    if runs:
        return torch.linalg.vector_norm(in_a_row(gradients), dim=-1)
    return torch.linalg.vector_norm(torch.stack(torch._foreach_norm(list(gradients))))


def in_a_row(gradients: Sequence[Tensor]) -> Tensor:
    """A copy of all gradients of a run, one behind the other: runs n."""
    return torch.cat([gradient.flatten(1) for gradient in gradients], -1)


def along(scale: Tensor, gradient: Tensor) -> Tensor:
    """One factor a run, shaped to multiply ``gradient``."""
    return scale.view(*scale.shape, *[1] * (gradient.dim() - scale.dim()))


def spectral_norms(matrices: Sequence[Tensor]) -> list[Tensor]:
    """The largest singular value of each matrix (each … r c), by squaring its Gram matrix.

    It errs by less than a percent, always upwards, and needs neither an SVD nor a wait. Gram
    matrices of one size are squared together, whatever they came from.
    """
    grams = [m.mT @ m if m.shape[-1] <= m.shape[-2] else m @ m.mT for m in matrices]
    found = dict[int, Tensor]()
    for side in {gram.shape[-1] for gram in grams}:
        places = [place for place, gram in enumerate(grams) if gram.shape[-1] == side]
        own = [grams[place].reshape(-1, side, side) for place in places]
        sizes = largest(torch.cat(own)).split([len(part) for part in own])
        found |= {p: size.view(grams[p].shape[:-2]) for p, size in zip(places, sizes)}
    return [found[place] for place in range(len(grams))]


def largest(power: Tensor) -> Tensor:
    """The square root of the largest eigenvalue of each Gram matrix (n c c → n)."""
    sizes = []
    for squaring in range(SQUARINGS + 1):
        if squaring:
            power = power @ power
        if squaring % 2 == 0:  # a trace of 1 is at least rank ** -3 two squarings later
            size = power.diagonal(dim1=-2, dim2=-1).sum(-1).clamp(min=1e-30)  # n
            power = power / size[:, None, None]
            sizes.append(size)
    shares = 0.5 ** (
        2 * torch.arange(len(sizes), device=power.device) + 1
    )  # each a size's exponent
    return (torch.stack(sizes, -1).log() @ shares).exp()
