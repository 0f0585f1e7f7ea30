"""LAMB and Adafactor compared with plain loops and with torch; they never wait for the device."""

from collections.abc import Callable
from math import sqrt
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from mnemic.recipe import build
from mnemic.train.optim.adafactor import Adafactor
from mnemic.train.optim.lamb import Lamb
from mnemic.train.optim.optimizers import OPTIMIZERS, Sgd, optimizer_tensors_of, restore_optimizer

SHAPES = [(4, 3), (3, 4), (5,), (2, 3, 4), (1, 1)]


def draw(seed: int, runs: int = 0) -> list[Tensor]:
    """Draw one tensor per shape, of very different sizes."""
    generator = torch.Generator().manual_seed(seed)
    lead = (runs,) if runs else ()
    return [
        10.0 ** (number - 2) * torch.randn(*lead, *shape, generator=generator, dtype=torch.float64)
        for number, shape in enumerate(SHAPES)
    ]


def take_steps(optimizer: torch.optim.Optimizer, parameters: list[nn.Parameter], first: int, last: int) -> None:
    for step in range(first, last):
        for parameter, gradient in zip(parameters, draw(100 + step), strict=True):
            parameter.grad = gradient.to(parameter.dtype)
        optimizer.step()


def lamb_slowly(
    weights: list[Tensor], gradients: list[list[Tensor]], rate: float, decay: float, beta1: float, beta2: float
) -> list[Tensor]:
    """LAMB as the paper's algorithm 2 has it, one number after another."""
    results = []
    for index, start in enumerate(weights):
        w, is_matrix = start.flatten().tolist(), start.dim() > 1
        m, v = [0.0] * len(w), [0.0] * len(w)
        for t, step in enumerate(gradients, start=1):
            g = step[index].flatten().tolist()
            m = [beta1 * a + (1 - beta1) * b for a, b in zip(m, g)]
            v = [beta2 * a + (1 - beta2) * b * b for a, b in zip(v, g)]
            u = [a / (1 - beta1**t) / (sqrt(b / (1 - beta2**t)) + 1e-6) for a, b in zip(m, v)]
            ratio = 1.0
            if is_matrix:
                u = [a + decay * b for a, b in zip(u, w)]
                weight_norm, update_norm = (sqrt(sum(a * a for a in values)) for values in (w, u))
                ratio = weight_norm / update_norm if weight_norm and update_norm else 1.0
            w = [a - rate * ratio * b for a, b in zip(w, u)]
        results.append(torch.tensor(w, dtype=torch.float64).view_as(start))
    return results


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_lamb_is_the_papers_algorithm(decay: float) -> None:
    parameters = [nn.Parameter(weight) for weight in draw(0)]
    expected = lamb_slowly(draw(0), [draw(100 + step) for step in range(5)], 0.05, decay, 0.8, 0.95)
    take_steps(Lamb(parameters, 0.05, betas=(0.8, 0.95), decay=decay), parameters, 0, 5)
    for parameter, weight in zip(parameters, expected):
        torch.testing.assert_close(parameter.detach(), weight, rtol=1e-12, atol=1e-15)


def test_a_step_of_lamb_is_as_long_as_the_weights_times_the_rate() -> None:
    """Ten times the weights take ten times the step; zeros and biases take that of Adam."""
    lengths = []
    for scale in (1.0, 10.0):
        matrix, zeros, bias = (nn.Parameter(t) for t in (scale * torch.ones(2, 3), torch.zeros(2, 2), torch.ones(3)))
        start = matrix.detach().clone()
        for weight in (matrix, zeros, bias):
            weight.grad = torch.full_like(weight, -7.0)
        Lamb([matrix, zeros, bias], 0.1, decay=0.0).step()
        lengths.append(float((matrix.detach() - start).norm() / start.norm()))
        torch.testing.assert_close(zeros.detach(), torch.full((2, 2), 0.1), rtol=1e-5, atol=0)
        torch.testing.assert_close(bias.detach(), torch.full((3,), 1.1), rtol=1e-5, atol=0)
    assert lengths == pytest.approx([0.1, 0.1], rel=1e-5)


def test_a_matrix_without_gradient_or_update_stays() -> None:
    still, zero = nn.Parameter(torch.ones(2, 2)), nn.Parameter(torch.ones(2, 2))
    zero.grad = torch.zeros(2, 2)
    Lamb([still, zero], 0.1, decay=0.0).step()
    assert torch.equal(still, torch.ones(2, 2))
    assert torch.equal(zero, torch.ones(2, 2))


def test_adafactor_is_torchs() -> None:
    parameters, others = ([nn.Parameter(weight) for weight in draw(0)] for _ in range(2))
    groups = [{"params": [p for p in others if p.dim() > 1], "weight_decay": 0.2}]
    groups += [{"params": [p for p in others if p.dim() == 1], "weight_decay": 0.0}]
    reference = torch.optim.Adafactor(groups, lr=0.3, eps=(1e-15, 1e-3))
    optimizer = Adafactor(parameters, 0.3, decay=0.2)
    for step in range(6):  # from step 12 on 1/√t would be below the rate
        for kind, weights in ((optimizer, parameters), (reference, others)):
            take_steps(kind, weights, step, step + 1)
        for first, second in zip(parameters, others):
            torch.testing.assert_close(first, second, rtol=1e-9, atol=1e-14)


def test_adafactors_steps_shrink_with_the_root_of_their_number() -> None:
    parameters, others = ([nn.Parameter(weight) for weight in draw(0)] for _ in range(2))
    take_steps(Adafactor(parameters, 5.0, clip=2.0, memory=0.5, min_scale=0.1), parameters, 0, 4)
    reference = torch.optim.Adafactor(others, lr=5.0, eps=(1e-15, 0.1), d=2.0, beta2_decay=-0.5)
    take_steps(reference, others, 0, 4)
    for first, second in zip(parameters, others):
        torch.testing.assert_close(first, second, rtol=1e-9, atol=1e-14)


def test_the_state_of_adafactor_has_the_rows_and_the_columns_alone() -> None:
    parameter = nn.Parameter(torch.randn(30, 40))
    parameter.grad = torch.randn(30, 40)
    optimizer = Adafactor([parameter], 0.1)
    optimizer.step()
    assert sum(tensor.numel() for tensor in optimizer.state[parameter].values()) == 30 + 40 + 1


@pytest.mark.parametrize("kind", sorted(set(OPTIMIZERS) - {"sgd"}))
def test_each_run_of_several_takes_the_steps_that_it_takes_alone(kind: str) -> None:
    together = [nn.Parameter(weight) for weight in draw(0, runs=3)]
    optimizer = build(OPTIMIZERS, {"kind": kind, "decay": 0.1}, parameters=together, rate=0.05, runs=True)
    for step in range(3):
        for parameter, gradient in zip(together, draw(100 + step, 3)):
            parameter.grad = gradient
        optimizer.step()
    for run in range(3):
        alone = [nn.Parameter(weight[run].clone()) for weight in draw(0, runs=3)]
        optimizer = build(OPTIMIZERS, {"kind": kind, "decay": 0.1}, parameters=alone, rate=0.05, runs=False)
        for step in range(3):
            for parameter, gradient in zip(alone, draw(100 + step, 3)):
                parameter.grad = gradient[run]
            optimizer.step()
        for several, single in zip(together, alone):
            torch.testing.assert_close(several[run], single, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("make", [Lamb, Adafactor, Sgd])
@pytest.mark.parametrize("runs", [False, True])
def test_no_step_waits_for_the_device(make: Callable[..., Any], runs: bool) -> None:
    """A tensor on the meta device has no number to wait for: reading one would raise."""
    with torch.device("meta"):
        parameters = [nn.Parameter(torch.empty(2, *shape)) for shape in SHAPES]
        rate = torch.empty(())
    options = {} if make is Sgd else {"runs": runs}
    optimizer = make(parameters, rate, decay=0.1, **options)
    for _ in range(2):
        for parameter in parameters:
            parameter.grad = torch.empty_like(parameter)
        optimizer.step()


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_a_stored_optimizer_goes_on_to_the_bit(kind: str) -> None:
    spec = {"kind": kind} | ({"momentum": 0.9, "nesterov": True} if kind == "sgd" else {})
    whole, stopped = ([nn.Parameter(weight.float()) for weight in draw(0)] for _ in range(2))
    take_steps(build(OPTIMIZERS, spec, parameters=whole, rate=0.05, runs=False), whole, 0, 6)
    first, second = (build(OPTIMIZERS, spec, parameters=stopped, rate=0.05, runs=False) for _ in range(2))
    take_steps(first, stopped, 0, 2)
    restore_optimizer(second, optimizer_tensors_of(first))
    take_steps(second, stopped, 2, 6)
    assert all(torch.equal(one, other) for one, other in zip(whole, stopped))


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_every_optimizer_solves_a_small_regression(kind: str) -> None:
    generator = torch.Generator().manual_seed(0)
    inputs, target = torch.randn(64, 6, generator=generator), torch.randn(6, 3, generator=generator)
    network = nn.Linear(6, 3)
    nn.init.normal_(network.weight, std=0.3, generator=generator)
    rate = {"adadelta": 20.0, "sgd": 0.2, "adagrad": 0.3}.get(kind, 0.03)
    optimizer = build(OPTIMIZERS, {"kind": kind}, parameters=list(network.parameters()), rate=rate, runs=False)
    losses = []
    for step in range(300):
        if step == 200:
            for group in optimizer.param_groups:
                group["lr"] = rate / 10
        loss = (network(inputs) - inputs @ target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.01 * losses[0]
