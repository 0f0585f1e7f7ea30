"""Optimizers of torch beside SGD and Adam, with the options of a recipe.

All of them keep biases and gains from decaying, and update each weight by itself, so that an axis
of runs in front of every tensor changes nothing. ``decay`` is an L2 penalty in the gradient, as in
``adam``.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.recipe import ConfigError
from mnemic.train.optim.parameter_groups import group_by_decay

Parameters = Iterable[nn.Parameter]


def rmsprop(
    parameters: Parameters,
    rate: float | Tensor,
    *,
    memory: float = 0.99,
    momentum: float = 0.0,
    epsilon: float = 1e-8,
    centered: bool = False,
    decay: float = 0.0,
    runs: bool = False,
) -> torch.optim.Optimizer:
    """RMSprop (Tieleman & Hinton 2012): gradients over the root of their mean square.

    ``memory`` is how much of that mean a step keeps; ``centered`` subtracts the squared mean.
    """
    options: Any = {"alpha": memory, "momentum": momentum, "eps": epsilon, "centered": centered}
    groups = group_by_decay(parameters, decay, runs)
    return torch.optim.RMSprop(groups, lr=rate, capturable=isinstance(rate, Tensor), **options)


def adagrad(
    parameters: Parameters,
    rate: float | Tensor,
    *,
    epsilon: float = 1e-10,
    initial: float = 0.0,
    decay: float = 0.0,
    runs: bool = False,
) -> torch.optim.Optimizer:
    """Adagrad (Duchi et al. 2011): gradients over the root of the sum of all squares.

    ``initial`` is what that sum starts from.
    """
    if isinstance(rate, Tensor):
        raise ConfigError(
            "torch's adagrad cannot be recorded as a CUDA graph, as tables of memory networks are on a GPU: set "
            "train.optimizer.kind to rmsprop, or use the CPU"
        )
    groups = group_by_decay(parameters, decay, runs)
    return torch.optim.Adagrad(groups, lr=rate, eps=epsilon, initial_accumulator_value=initial)


def adadelta(
    parameters: Parameters,
    rate: float | Tensor,
    *,
    memory: float = 0.9,
    epsilon: float = 1e-6,
    decay: float = 0.0,
    runs: bool = False,
) -> torch.optim.Optimizer:
    """Adadelta (Zeiler 2012): steps as long as earlier ones were; the usual rate is 1."""
    groups = group_by_decay(parameters, decay, runs)
    return torch.optim.Adadelta(groups, lr=rate, rho=memory, eps=epsilon, capturable=isinstance(rate, Tensor))


def nadam(
    parameters: Parameters,
    rate: float | Tensor,
    *,
    betas: tuple[float, float] = (0.9, 0.999),
    epsilon: float = 1e-8,
    decay: float = 0.0,
    runs: bool = False,
) -> torch.optim.Optimizer:
    """NAdam (Dozat 2016): Adam with Nesterov's momentum."""
    options: Any = {"betas": (betas[0], betas[1]), "eps": epsilon, "capturable": isinstance(rate, Tensor)}
    return torch.optim.NAdam(group_by_decay(parameters, decay, runs), lr=rate, **options)
