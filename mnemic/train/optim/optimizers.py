"""The optimisers a recipe may name, and how a checkpoint holds one."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.recipe import ConfigError


class Sgd(torch.optim.Optimizer):
    """Stochastic gradient descent whose rate may be a tensor, so that a CUDA graph can hold it."""

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        rate: float | torch.Tensor,
        *,
        momentum: float = 0.0,
        decay: float = 0.0,
    ) -> None:
        if not 0 <= momentum < 1 or not decay >= 0:
            came = f"momentum = {momentum}, decay = {decay}"
            raise ConfigError(f"sgd takes a momentum from 0 to below 1 and a decay ≥ 0, not {came}")
        super().__init__(parameters, {"lr": rate, "momentum": momentum, "weight_decay": decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            moving = [p for p in group["params"] if p.grad is not None]
            change: Any = [p.grad for p in moving]
            if group["weight_decay"]:
                change = torch._foreach_add(change, moving, alpha=group["weight_decay"])
            if group["momentum"]:
                speed = [self.state[p].setdefault("speed", torch.zeros_like(p)) for p in moving]
                torch._foreach_mul_(speed, group["momentum"])
                torch._foreach_add_(speed, change)
                change = speed
            torch._foreach_sub_(moving, torch._foreach_mul(change, group["lr"]))


def adamw(
    parameters: Iterable[nn.Parameter],
    rate: float | torch.Tensor,
    *,
    betas: tuple[float, float] = (0.9, 0.999),
    epsilon: float = 1e-8,
    decay: float = 0.01,
    runs: bool = False,
) -> torch.optim.Optimizer:
    """Adam with decoupled weight decay (Loshchilov & Hutter 2019); biases and gains do not decay.

    ``runs`` says that every tensor has a leading axis of runs.
    """
    own = parted(parameters, decay, runs)
    return torch.optim.AdamW(own, **moments(own, rate, betas, epsilon))


def adam(
    parameters: Iterable[nn.Parameter],
    rate: float | torch.Tensor,
    *,
    betas: tuple[float, float] = (0.9, 0.999),
    epsilon: float = 1e-8,
    decay: float = 0.0,
    runs: bool = False,
) -> torch.optim.Optimizer:
    """Adam (Kingma & Ba 2015); ``decay`` is a penalty in the gradient, as in papers before AdamW.

    A penalty of λ‖W‖² is a ``decay`` of 2λ, against a loss that is summed or averaged as
    ``train.reduce`` says. ``runs`` as in ``adamw``.
    """
    own = parted(parameters, decay, runs)
    return torch.optim.Adam(own, **moments(own, rate, betas, epsilon))


def moments(
    groups: list[dict[str, Any]],
    rate: float | torch.Tensor,
    betas: tuple[float, float],
    epsilon: float,
) -> dict[str, Any]:
    """What both of them take; a rate that is a tensor is that of a CUDA graph.

    On a GPU one kernel updates all weights.
    """
    first, second = betas
    on_gpu = all(p.is_cuda for group in groups for p in group["params"])
    held = {"capturable": isinstance(rate, torch.Tensor), "fused": on_gpu or None}
    return {"lr": rate, "betas": (first, second), "eps": epsilon, **held}


def parted(parameters: Iterable[nn.Parameter], decay: float, runs: bool) -> list[dict[str, Any]]:
    """Matrices, which decay, and biases and gains, which do not."""
    every = list(parameters)
    return [
        {"params": [p for p in every if p.dim() > 1 + runs], "weight_decay": decay},
        {"params": [p for p in every if p.dim() <= 1 + runs], "weight_decay": 0.0},
    ]


OPTIMISERS: dict[str, Callable[..., Any]] = {
    "sgd": Sgd,
    "adam": adam,
    "adamw": adamw,
}


def optimiser_state(optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """An optimiser's tensors under plain names: optimiser.3.exp_avg …"""
    state = optimiser.state_dict()["state"]
    return {
        f"optimiser.{number}.{name}": value.detach().cpu()
        for number, own in state.items()
        for name, value in own.items()
    }


def restore_optimiser(optimiser: torch.optim.Optimizer, state: Mapping[str, Tensor]) -> None:
    """The inverse of ``optimiser_state``."""
    whole = optimiser.state_dict()
    for key, value in state.items():
        if key.startswith("optimiser."):
            _, number, name = key.split(".", 2)
            whole["state"].setdefault(int(number), {})[name] = value
    optimiser.load_state_dict(whole)
