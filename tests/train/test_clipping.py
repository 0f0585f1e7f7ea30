"""Clipping of gradients by spectral norm, norm and value, for one run and for many."""

import pytest
import torch
from torch import Tensor, nn

from mnemic.recipe import build
from mnemic.train.optim.clipping import CLIPS, SQUARINGS, ClipSpectral, compute_spectral_norms


def orthogonal(size: int) -> Tensor:
    return torch.linalg.qr(torch.randn(size, size)).Q


MATRICES = {
    "random": torch.randn(30, 20, generator=torch.Generator().manual_seed(0)),
    "wide": torch.randn(8, 50, generator=torch.Generator().manual_seed(0)),
    "tall": torch.randn(150, 50, generator=torch.Generator().manual_seed(0)),
    "rank 1": torch.outer(torch.arange(1.0, 9), torch.arange(1.0, 6)),
    "all the same": torch.eye(50),
    "two of a size": torch.diag(torch.tensor([3.0, 3.0, 1.0, 0.1])),
    "one number": torch.tensor([[-2.5]]),
    "a column": torch.randn(40, 1, generator=torch.Generator().manual_seed(0)),
    "small": 1e-9 * torch.randn(30, 20, generator=torch.Generator().manual_seed(0)),
    "large": 1e9 * torch.randn(30, 20, generator=torch.Generator().manual_seed(0)),
}


@pytest.mark.parametrize("name", MATRICES)
def test_spectral_norm_is_the_largest_singular_value(name: str) -> None:
    """Compare with an SVD: never below it, and at most one percent above."""
    matrix = MATRICES[name]
    exact = torch.linalg.svdvals(matrix.double())[0].item()
    norm = compute_spectral_norms([matrix])[0].item()
    assert exact * (1 - 1e-5) <= norm <= exact * 1.01


@pytest.mark.parametrize("size", [100, 300, 768])
def test_spectral_norm_of_a_large_matrix_of_full_rank(size: int) -> None:
    """The worst case: all singular values are equal, so each squaring shrinks them all."""
    norm = compute_spectral_norms([3 * orthogonal(size)])[0].item()
    assert 3 * (1 - 1e-4) <= norm <= 3 * size ** (1 / 2 ** (SQUARINGS + 1)) * (1 + 1e-4)


def test_spectral_norm_of_many_matrices_and_of_zeros() -> None:
    matrices = torch.randn(3, 4, 9, 6)
    matrices[1, 2] = 0
    (norms,) = compute_spectral_norms([matrices])
    exact = torch.linalg.matrix_norm(matrices, ord=2)
    assert norms.shape == (3, 4)
    assert (norms >= exact * (1 - 1e-5)).all()
    assert (norms <= exact * 1.01 + 1e-9).all()


def gradients(seed: int = 0, size: float = 1.0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shapes = [(12, 5), (5, 12), (12, 5), (7,), (1, 4)]
    return [size * (n + 1) * torch.randn(s, generator=generator) for n, s in enumerate(shapes)]


def test_spectral_clipping_bounds_each_matrix_by_itself() -> None:
    before, after = gradients(), gradients()
    norms = [torch.linalg.svdvals(g.view(len(g), -1))[0].item() for g in before]
    bound = sorted(norms)[2] + 0.1  # two matrices are too large, three are not
    ClipSpectral(bound)(after, runs=False)
    for old, new, norm in zip(before, after, norms):
        if norm <= bound / 1.01:
            assert torch.equal(new, old)
        else:
            scale = bound / norm
            assert (new <= old.abs() * scale * (1 + 1e-5)).all()
            torch.testing.assert_close(new, old * scale, rtol=0.011, atol=0)
            assert torch.linalg.svdvals(new.view(len(new), -1))[0] <= bound * (1 + 1e-5)


@pytest.mark.parametrize("norm", [0.5, 0.999, 1.02, 1.5, 30.0])
def test_a_matrix_of_rank_one_just_above_the_bound_is_clipped(norm: float) -> None:
    """The first check, of the Frobenius norm, is exact here and must catch everything."""
    matrix = norm * torch.outer(*nn.functional.normalize(torch.randn(2, 6), dim=1))
    clipped = matrix.clone()
    ClipSpectral(1.0)([clipped], runs=False)
    if norm < 1:
        assert torch.equal(clipped, matrix)
    else:
        assert torch.linalg.svdvals(clipped)[0].item() == pytest.approx(1, rel=0.01)


def test_norm_clipping_is_torchs() -> None:
    for bound in (1.0, 1e3):
        clipped, parameters = gradients(), [nn.Parameter(torch.zeros_like(g)) for g in gradients()]
        for weight, gradient in zip(parameters, gradients(), strict=True):
            weight.grad = gradient
        expected = nn.utils.clip_grad_norm_(parameters, bound)
        norm = build(CLIPS, {"kind": "norm", "limit": bound})(clipped, runs=False)
        torch.testing.assert_close(norm, expected)
        for gradient, weight in zip(clipped, parameters, strict=True):
            torch.testing.assert_close(gradient, weight.grad)


def test_value_clipping_cuts_every_number() -> None:
    clipped = gradients()
    build(CLIPS, {"kind": "value", "limit": 0.5})(clipped, runs=False)
    for after, before in zip(clipped, gradients(), strict=True):
        assert torch.equal(after, before.clamp(-0.5, 0.5))


def test_no_clipping_changes_nothing() -> None:
    clipped = gradients()
    build(CLIPS, {"kind": "none"})(clipped, runs=False)
    assert all(torch.equal(after, before) for after, before in zip(clipped, gradients(), strict=True))


@pytest.mark.parametrize("kind", CLIPS)
def test_the_norm_returned_is_the_whole_one_before_clipping(kind: str) -> None:
    expected = torch.cat([g.flatten() for g in gradients()]).norm()
    torch.testing.assert_close(build(CLIPS, {"kind": kind})(gradients(), runs=False), expected)


@pytest.mark.parametrize("kind", CLIPS)
def test_many_runs_are_clipped_each_by_itself(kind: str) -> None:
    """With an axis of runs, clipping one of three leaves the others unchanged."""
    clip = build(CLIPS, {"kind": kind, "limit": 20.0} if kind != "none" else {"kind": kind})
    sizes = [0.1, 3.0, 0.5]
    alone = [gradients(seed, size) for seed, size in enumerate(sizes)]
    together = [torch.stack(parts) for parts in zip(*alone, strict=True)]
    norms = clip(together, runs=True)
    assert norms.shape == (3,)
    for run, run_gradients in enumerate(alone):
        norm = clip(run_gradients, runs=False)
        torch.testing.assert_close(norms[run], norm)
        for stack, gradient in zip(together, run_gradients, strict=True):
            torch.testing.assert_close(stack[run], gradient)
