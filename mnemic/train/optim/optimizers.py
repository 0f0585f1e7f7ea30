"""The optimizers of recipes, and their state as tensors for a checkpoint."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.recipe import ConfigError
from mnemic.train.optim.adafactor import Adafactor
from mnemic.train.optim.lamb import Lamb
from mnemic.train.optim.parameter_groups import group_by_decay
from mnemic.train.optim.torch_optimizers import adadelta, adagrad, nadam, rmsprop


class Sgd(torch.optim.Optimizer):
    """Stochastic gradient descent; its rate may be a tensor, for CUDA graphs.

    With ``nesterov`` a step looks ahead: the momentum is added once more (Sutskever et al. 2013).
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        rate: float | Tensor,
        *,
        momentum: float = 0.0,
        decay: float = 0.0,
        nesterov: bool = False,
    ) -> None:
        if not 0 <= momentum < 1 or not decay >= 0:
            values = f"momentum = {momentum}, decay = {decay}"
            raise ConfigError(f"sgd takes a momentum from 0 to below 1 and a decay ≥ 0, not {values}")
        if nesterov and not momentum:
            raise ConfigError("sgd.nesterov needs a momentum: set train.optimizer.momentum, such as 0.9")
        options = {"momentum": momentum, "weight_decay": decay, "nesterov": nesterov}
        super().__init__(parameters, {"lr": rate} | options)

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update all parameters that have a gradient."""
        for group in self.param_groups:
            parameters = [p for p in group["params"] if p.grad is not None]
            updates: Any = [p.grad for p in parameters]
            if group["weight_decay"]:
                updates = torch._foreach_add(updates, parameters, alpha=group["weight_decay"])
            if group["momentum"]:
                velocities = [self.state[p].setdefault("speed", torch.zeros_like(p)) for p in parameters]
                torch._foreach_mul_(velocities, group["momentum"])
                torch._foreach_add_(velocities, updates)
                momentum = group["momentum"]
                updates = torch._foreach_add(updates, velocities, alpha=momentum) if group["nesterov"] else velocities
            torch._foreach_sub_(parameters, torch._foreach_mul(updates, group["lr"]))


def adamw(
    parameters: Iterable[nn.Parameter],
    rate: float | Tensor,
    *,
    betas: tuple[float, float] = (0.9, 0.999),
    epsilon: float = 1e-8,
    decay: float = 0.01,
    runs: bool = False,
) -> torch.optim.Optimizer:
    """Adam with decoupled weight decay (Loshchilov & Hutter 2019); biases and gains do not decay.

    With ``runs`` every tensor has a leading axis of runs.
    """
    groups = group_by_decay(parameters, decay, runs)
    return torch.optim.AdamW(groups, lr=rate, betas=(betas[0], betas[1]), eps=epsilon, **device_options(groups, rate))


def adam(
    parameters: Iterable[nn.Parameter],
    rate: float | Tensor,
    *,
    betas: tuple[float, float] = (0.9, 0.999),
    epsilon: float = 1e-8,
    decay: float = 0.0,
    runs: bool = False,
) -> torch.optim.Optimizer:
    """Adam (Kingma & Ba 2015) with an L2 penalty in the gradient.

    A penalty of λ‖W‖² is a ``decay`` of 2λ, against a loss that is summed or averaged as
    ``train.reduce`` says. ``runs`` as in ``adamw``.
    """
    groups = group_by_decay(parameters, decay, runs)
    return torch.optim.Adam(groups, lr=rate, betas=(betas[0], betas[1]), eps=epsilon, **device_options(groups, rate))


def device_options(groups: list[dict[str, Any]], rate: float | Tensor) -> dict[str, Any]:
    """Return the options of Adam that depend on the device.

    A rate that is a tensor is that of a CUDA graph. On a GPU one kernel updates all weights.
    """
    on_gpu = all(p.is_cuda for group in groups for p in group["params"])
    return {"capturable": isinstance(rate, Tensor), "fused": on_gpu or None}


OPTIMIZERS: dict[str, Callable[..., Any]] = {
    "adadelta": adadelta,
    "adafactor": Adafactor,
    "adagrad": adagrad,
    "adam": adam,
    "adamw": adamw,
    "lamb": Lamb,
    "nadam": nadam,
    "rmsprop": rmsprop,
    "sgd": Sgd,
}


def optimizer_tensors_of(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The state of an optimizer as named tensors: ``optimizer.3.exp_avg``, …"""
    state = optimizer.state_dict()["state"]
    return {
        f"optimizer.{number}.{name}": value.detach().cpu()
        for number, tensors in state.items()
        for name, value in tensors.items()
    }


def restore_optimizer(optimizer: torch.optim.Optimizer, state: Mapping[str, Tensor]) -> None:
    """Restore an optimizer from the tensors of ``optimizer_tensors_of``."""
    state_dict = optimizer.state_dict()
    for key, value in state.items():
        if key.startswith("optimizer."):
            _, number, name = key.split(".", 2)
            state_dict["state"].setdefault(int(number), {})[name] = value
    optimizer.load_state_dict(state_dict)
