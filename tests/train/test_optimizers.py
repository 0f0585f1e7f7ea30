"""Schedules at points computed by hand, and optimizers compared with torch's."""

from math import cos, pi
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from mnemic.recipe import ConfigError, build
from mnemic.train.optim.optimizers import OPTIMIZERS, Sgd, adam, adamw
from mnemic.train.optim.schedules import SCHEDULES


@pytest.mark.parametrize(
    ("spec", "points"),
    [
        ({"kind": "constant"}, {0: 1.0, 99: 1.0}),
        # epochs of 10 steps; the 3rd begins at step 20, the 6th at 50
        ({"kind": "halving", "every": 3}, {0: 1, 19: 1, 20: 0.5, 49: 0.5, 50: 0.25, 80: 0.125}),
        ({"kind": "triangle", "every": 2, "low": 0.2}, {0: 0.2, 5: 0.6, 10: 1, 15: 0.6, 20: 0.2}),
        ({"kind": "halving", "every": 1}, {0: 0.5, 9: 0.5, 10: 0.25}),
        ({"kind": "linear"}, {0: 1 / 11, 9: 10 / 11, 10: 1.0, 55: 0.5, 99: 1 / 90}),
        ({"kind": "linear", "warmup": 0.0}, {0: 1.0, 50: 0.5, 99: 0.01}),
        # rises over 9 steps of 100, is 1 in the tenth, a half when four times as many are done
        ({"kind": "inverse-root", "warmup": 0.09}, {0: 0.1, 8: 0.9, 9: 1.0, 39: 0.5, 89: 1 / 3}),
        ({"kind": "inverse-root", "warmup": 0.0}, {0: 1.0, 3: 0.5, 99: 0.1}),
        # ULMFiT's equation 3: cut at step 10, 90 steps down
        (
            {"kind": "slanted"},
            {0: 1 / 32, 5: (1 + 31 / 2) / 32, 10: 1.0, 55: (1 + 31 / 2) / 32, 99: (1 + 31 / 90) / 32},
        ),
        ({"kind": "slanted", "cut": 0.5, "ratio": 2}, {0: 0.5, 25: 0.75, 50: 1.0, 75: 0.75}),
        ({"kind": "cosine"}, {0: 1 / 11, 10: 1.0, 40: (1 - cos(pi * 2 / 3)) / 2, 55: 0.5, 70: 0.25}),
    ],
)
def test_schedules_at_points_computed_by_hand(spec: dict[str, Any], points: dict[int, float]) -> None:
    schedule = build(SCHEDULES, spec)
    factors = {step: schedule(step, 10, 100) for step in points}
    assert factors == pytest.approx(points)


@pytest.mark.parametrize("kind", SCHEDULES)
@pytest.mark.parametrize("total", [1, 2, 7, 100])
def test_every_step_of_every_schedule_has_a_rate(kind: str, total: int) -> None:
    factors = [build(SCHEDULES, {"kind": kind})(step, 3, total) for step in range(total)]
    assert all(0 < factor <= 1 for factor in factors)


def gradients(seed: int = 0, size: float = 1.0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shapes = [(12, 5), (5, 12), (12, 5), (7,), (1, 4)]
    return [size * (n + 1) * torch.randn(s, generator=generator) for n, s in enumerate(shapes)]


def weights() -> list[nn.Parameter]:
    return [nn.Parameter(gradient) for gradient in gradients(5)]


Trained = tuple[list[nn.Parameter], torch.optim.Optimizer]


def keep_step(*both: Trained) -> None:
    """Check that both have the same weights after each of some steps."""
    for seed in range(4):
        for parameters, optimizer in both:
            for weight, gradient in zip(parameters, gradients(seed), strict=True):
                weight.grad = gradient
            optimizer.step()
        for first, second in zip(*(parameters for parameters, _ in both), strict=True):
            torch.testing.assert_close(first, second)


@pytest.mark.parametrize("options", [{}, {"momentum": 0.9}, {"decay": 0.1}, {"momentum": 0.8, "decay": 0.01}])
def test_sgd_is_torchs(options: dict[str, float]) -> None:
    our_weights, torch_weights = weights(), weights()
    optimizer = build(OPTIMIZERS, {"kind": "sgd", **options}, parameters=our_weights, rate=0.05, runs=False)
    decay = {"weight_decay": options.get("decay", 0.0), "momentum": options.get("momentum", 0.0)}
    reference = torch.optim.SGD(torch_weights, lr=0.05, **decay)
    keep_step((our_weights, optimizer), (torch_weights, reference))


def test_nesterovs_momentum_is_torchs() -> None:
    our_weights, torch_weights = weights(), weights()
    spec = {"kind": "sgd", "momentum": 0.9, "nesterov": True, "decay": 0.1}
    optimizer = build(OPTIMIZERS, spec, parameters=our_weights, rate=0.05, runs=False)
    reference = torch.optim.SGD(torch_weights, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.1)
    keep_step((our_weights, optimizer), (torch_weights, reference))
    with pytest.raises(ConfigError, match=r"sgd\.nesterov needs a momentum"):
        Sgd(torch_weights, 0.1, nesterov=True)


TORCH_OPTIMIZERS: dict[str, tuple[type[torch.optim.Optimizer], dict[str, Any], dict[str, Any]]] = {
    "rmsprop": (
        torch.optim.RMSprop,
        {"memory": 0.9, "momentum": 0.5, "centered": True},
        {"alpha": 0.9, "momentum": 0.5, "centered": True},
    ),
    "adagrad": (torch.optim.Adagrad, {"initial": 0.1}, {"initial_accumulator_value": 0.1}),
    "adadelta": (torch.optim.Adadelta, {"memory": 0.8}, {"rho": 0.8}),
    "nadam": (torch.optim.NAdam, {"betas": [0.8, 0.95]}, {"betas": (0.8, 0.95)}),
}


@pytest.mark.parametrize("kind", TORCH_OPTIMIZERS)
def test_optimizers_of_torch_have_its_options_and_decay_matrices_alone(kind: str) -> None:
    torch_class, options, torch_options = TORCH_OPTIMIZERS[kind]
    our_weights, torch_weights = weights(), weights()
    spec = {"kind": kind, "decay": 0.2, "epsilon": 1e-4} | options
    optimizer = build(OPTIMIZERS, spec, parameters=our_weights, rate=0.05, runs=False)
    groups: Any = [{"params": [w for w in torch_weights if w.dim() > 1], "weight_decay": 0.2}]
    groups += [{"params": [w for w in torch_weights if w.dim() == 1], "weight_decay": 0.0}]
    make: Any = torch_class
    keep_step((our_weights, optimizer), (torch_weights, make(groups, lr=0.05, eps=1e-4, **torch_options)))


def test_adagrad_says_that_it_is_not_for_a_cuda_graph() -> None:
    with pytest.raises(ConfigError, match="adagrad cannot be recorded as a CUDA graph"):
        build(OPTIMIZERS, {"kind": "adagrad"}, parameters=weights(), rate=torch.tensor(0.1), runs=False)


def test_sgd_leaves_weights_without_a_gradient_and_takes_a_rate_that_is_a_tensor() -> None:
    moved, still = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3))
    optimizer = Sgd([moved, still], torch.tensor(0.5), decay=0.1, momentum=0.9)
    moved.grad = torch.ones(3)
    optimizer.step()
    assert torch.equal(still, torch.ones(3))
    torch.testing.assert_close(moved.detach(), torch.full((3,), 1 - 0.5 * 1.1))


@pytest.mark.parametrize("runs", [False, True])
def test_adamw_decays_matrices_but_no_biases(runs: bool) -> None:
    """With zero gradients only decay moves weights; an axis of runs makes no matrix."""
    matrix, bias = torch.ones(3, 4, 5) if runs else torch.ones(4, 5), torch.ones(5)
    if runs:
        bias = bias.expand(3, 5).clone()
    parameters = [nn.Parameter(matrix), nn.Parameter(bias)]
    optimizer = adamw(parameters, 0.1, decay=0.5, runs=runs)
    for weight in parameters:
        weight.grad = torch.zeros_like(weight)
    optimizer.step()
    torch.testing.assert_close(parameters[0].detach(), 0.95 * torch.ones_like(matrix))
    assert torch.equal(parameters[1], torch.ones_like(bias))


@pytest.mark.parametrize("runs", [False, True])
def test_adams_decay_is_a_penalty_on_matrices(runs: bool) -> None:
    """A decay of 2λ is plain Adam with λ‖W‖² in the loss, without biases."""
    lead = (3,) if runs else ()
    start = [torch.randn(*lead, 4, 2), torch.randn(*lead, 4)]
    our_weights, torch_weights = ([nn.Parameter(tensor.clone()) for tensor in start] for _ in range(2))
    our_adam, torch_adam = adam(our_weights, 0.05, decay=0.2, runs=runs), torch.optim.Adam(torch_weights, lr=0.05)
    for _ in range(20):
        for (weight, bias), optimizer, penalty in ((our_weights, our_adam, 0.0), (torch_weights, torch_adam, 0.1)):
            optimizer.zero_grad()
            loss = (weight.sum(-1) - 3 * bias).square().sum() + penalty * weight.square().sum()
            loss.backward()
            optimizer.step()
    for our_weight, torch_weight in zip(our_weights, torch_weights):
        torch.testing.assert_close(our_weight, torch_weight)


def test_adamw_is_torchs_with_the_options_of_a_recipe() -> None:
    spec = {"kind": "adamw", "betas": [0.8, 0.95], "epsilon": 1e-6, "decay": 0.2}
    our_weights, torch_weights = weights(), weights()
    optimizer = build(OPTIMIZERS, spec, parameters=our_weights, rate=0.05, runs=False)
    groups = [
        {"params": [w for w in torch_weights if w.dim() > 1], "weight_decay": 0.2},
        {"params": [w for w in torch_weights if w.dim() == 1], "weight_decay": 0.0},
    ]
    reference = torch.optim.AdamW(groups, lr=0.05, betas=(0.8, 0.95), eps=1e-6)
    keep_step((our_weights, optimizer), (torch_weights, reference))
