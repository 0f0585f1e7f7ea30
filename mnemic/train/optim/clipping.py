"""Gradient clipping. With ``runs`` every tensor has a leading axis of runs.

Each kind scales the gradients in place and returns their total norm before that, one number per
run. None of them waits for the GPU, so all of them may be captured in a CUDA graph.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mnemic.recipe import ConfigError

SQUARINGS = 8  # the spectral norm is then at most rank ** (1 / 2 ** 9) too large: 0.8 % at rank 50


class NoClip:
    """Measure the gradient norm without clipping."""

    def __call__(self, gradients: Sequence[Tensor], *, runs: bool) -> Tensor:
        return total_norm(gradients, runs=runs)


@dataclass(frozen=True)
class Limited:
    """The limit of a kind of clipping."""

    limit: float = 1.0

    def __post_init__(self) -> None:
        if not self.limit > 0:
            raise ConfigError(f"clip.limit is a number above 0, not {self.limit}")


class ClipValue(Limited):
    """Clamp every element of the gradients to ± ``limit``."""

    def __call__(self, gradients: Sequence[Tensor], *, runs: bool) -> Tensor:
        norm = total_norm(gradients, runs=runs)
        for gradient in gradients:
            gradient.clamp_(-self.limit, self.limit)
        return norm


class ClipNorm(Limited):
    """Scale all gradients together to a total norm of at most ``limit``."""

    def __call__(self, gradients: Sequence[Tensor], *, runs: bool) -> Tensor:
        if not runs:
            norm = total_norm(gradients, runs=False)
            torch._foreach_mul_(list(gradients), self.scale_of(norm))
            return norm
        flat = flatten_runs(gradients)  # so that a few kernels handle all of them
        norm = torch.linalg.vector_norm(flat, dim=-1)
        flat *= self.scale_of(norm).unsqueeze(-1)
        pieces = flat.split([gradient[0].numel() for gradient in gradients], -1)
        scaled = [piece.view_as(gradient) for piece, gradient in zip(pieces, gradients)]
        torch._foreach_copy_(list(gradients), scaled)
        return norm

    def scale_of(self, norm: Tensor) -> Tensor:
        return (self.limit / (norm + 1e-6)).clamp(max=1.0)


@dataclass(frozen=True)
class ClipSpectral(Limited):
    """Scale each matrix separately to a spectral norm of at most ``limit`` (MATLAB's ``norm``)."""

    limit: float = 40.0

    def __call__(self, gradients: Sequence[Tensor], *, runs: bool) -> Tensor:
        norm = total_norm(gradients, runs=runs)
        # The spectral norm is never above the Frobenius norm, so most steps need no more than that.
        if norm.is_cuda or (norm > self.limit).any():
            are_vectors = [gradient.dim() == 1 + runs for gradient in gradients]
            matrices = [g.unsqueeze(-1) if is_vector else g for g, is_vector in zip(gradients, are_vectors)]
            for gradient, spectral_norm in zip(gradients, compute_spectral_norms(matrices)):
                gradient.mul_(expand_runs((self.limit / spectral_norm).clamp(max=1.0), gradient))
        return norm


CLIPS: dict[str, Callable[..., Any]] = {"none": NoClip, "value": ClipValue, "norm": ClipNorm, "spectral": ClipSpectral}


def total_norm(gradients: Sequence[Tensor], *, runs: bool) -> Tensor:
    """Compute the norm of all gradients together, one number per run."""
    if runs:
        return torch.linalg.vector_norm(flatten_runs(gradients), dim=-1)
    return torch.linalg.vector_norm(torch.stack(torch._foreach_norm(list(gradients))))


def flatten_runs(gradients: Sequence[Tensor]) -> Tensor:
    """Flatten and concatenate the gradients of each run: runs n."""
    return torch.cat([gradient.flatten(1) for gradient in gradients], -1)


def expand_runs(values: Tensor, tensor: Tensor) -> Tensor:
    """Reshape one value per run so that it broadcasts with ``tensor``."""
    return values.view(*values.shape, *[1] * (tensor.dim() - values.dim()))


def compute_spectral_norms(matrices: Sequence[Tensor]) -> list[Tensor]:
    """Compute the largest singular value of each matrix (… r c) by squaring its Gram matrix.

    The result is at most one percent too large, and needs neither an SVD nor a wait for the GPU.
    Gram matrices of one size are squared together.
    """
    grams = [m.mT @ m if m.shape[-1] <= m.shape[-2] else m @ m.mT for m in matrices]
    norms = dict[int, Tensor]()
    for side in {gram.shape[-1] for gram in grams}:
        indices = [index for index, gram in enumerate(grams) if gram.shape[-1] == side]
        group = [grams[index].reshape(-1, side, side) for index in indices]
        sizes = sqrt_max_eigenvalues(torch.cat(group)).split([len(stack) for stack in group])
        norms |= {p: size.view(grams[p].shape[:-2]) for p, size in zip(indices, sizes)}
    return [norms[index] for index in range(len(grams))]


def sqrt_max_eigenvalues(grams: Tensor) -> Tensor:
    """Compute the root of the largest eigenvalue of each Gram matrix: n c c → n."""
    traces = []
    for squaring in range(SQUARINGS + 1):
        if squaring:
            grams = grams @ grams
        if squaring % 2 == 0:  # a trace of 1 is at least rank ** -3 two squarings later
            trace = grams.diagonal(dim1=-2, dim2=-1).sum(-1).clamp(min=1e-30)  # n
            grams = grams / trace[:, None, None]
            traces.append(trace)
    exponents = 0.5 ** (2 * torch.arange(len(traces), device=grams.device) + 1)  # of each trace
    return (torch.stack(traces, -1).log() @ exponents).exp()
