"""LAMB: Adam whose steps are relative to the size of each weight matrix.

It never waits for the GPU, so that a step may be captured in a CUDA graph.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.train.optim.clipping import expand_runs
from mnemic.train.optim.parameter_groups import group_by_decay


class Lamb(torch.optim.Optimizer):
    """Layer-wise adaptive moments for large batches (You et al. 2020).

    arXiv:1904.00962, algorithm 2, per tensor: u = m̂ / (√v̂ + ε) + λw, and w falls by the rate times
    ‖w‖ / ‖u‖ times u. That ratio is 1 where a norm is 0, and for biases and gains, which do not
    decay either. Published: BERT large with batches of 32,868 in 76 minutes, F1 of SQuAD 90.58.

    Where we differ: φ, which may bound ‖w‖, is the identity. With ``runs`` every tensor has a
    leading axis of runs, each with norms of its own.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        rate: float | Tensor,
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        epsilon: float = 1e-6,
        decay: float = 0.01,
        runs: bool = False,
    ) -> None:
        groups = group_by_decay(parameters, decay, runs)
        for group, adapts in zip(groups, (True, False)):
            group["adapts"] = adapts
        super().__init__(groups, {"lr": rate, "betas": tuple(betas), "eps": epsilon, "runs": runs})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update all parameters that have a gradient."""
        for group in self.param_groups:
            parameters = [p for p in group["params"] if p.grad is not None]
            if not parameters:
                continue
            updates = self.compute_updates(parameters, group["betas"], group["eps"])
            if group["weight_decay"]:
                torch._foreach_add_(updates, parameters, alpha=group["weight_decay"])
            if group["adapts"]:
                torch._foreach_mul_(updates, trust_ratios(parameters, updates, runs=group["runs"]))
            torch._foreach_mul_(updates, group["lr"])
            torch._foreach_sub_(parameters, updates)

    def compute_updates(self, parameters: list[Tensor], betas: tuple[float, float], epsilon: float) -> list[Tensor]:
        """Compute Adam's m̂ / (√v̂ + ε), and update both averages."""
        states = [self.state[p] or self.create_state(p) for p in parameters]
        counts, means, squares = ([state[name] for state in states] for name in ("count", "mean", "square"))
        gradients: Any = [p.grad for p in parameters]
        torch._foreach_add_(counts, 1)
        torch._foreach_lerp_(means, gradients, 1 - betas[0])
        torch._foreach_mul_(squares, betas[1])
        torch._foreach_addcmul_(squares, gradients, gradients, 1 - betas[1])
        mean_shares, square_shares = ([1 - beta**count for count in counts] for beta in betas)
        roots = torch._foreach_sqrt(torch._foreach_div(squares, square_shares))
        torch._foreach_add_(roots, epsilon)
        return list(torch._foreach_div(torch._foreach_div(means, mean_shares), roots))

    def create_state(self, parameter: Tensor) -> dict[str, Tensor]:
        """Create the state of a parameter: steps and averages."""
        count = torch.zeros((), dtype=parameter.dtype, device=parameter.device)
        state = {"count": count, "mean": torch.zeros_like(parameter), "square": torch.zeros_like(parameter)}
        self.state[parameter] = state
        return state


def trust_ratios(parameters: list[Tensor], updates: list[Tensor], *, runs: bool) -> list[Tensor]:
    """Compute ‖w‖ / ‖u‖ of each tensor, per run, in a shape that multiplies."""
    if not runs:
        pairs = zip(torch._foreach_norm(parameters), torch._foreach_norm(updates))
        return [compute_ratio(weight_norm, update_norm) for weight_norm, update_norm in pairs]
    norms = [[torch.linalg.vector_norm(t.flatten(1), dim=1) for t in tensors] for tensors in (parameters, updates)]
    return [expand_runs(compute_ratio(*pair), p) for *pair, p in zip(*norms, parameters)]


def compute_ratio(weight_norm: Tensor, update_norm: Tensor) -> Tensor:
    """Divide norms; 1 where one of them is 0."""
    is_usable = (weight_norm > 0) & (update_norm > 0)
    return torch.where(is_usable, weight_norm / update_norm, torch.ones_like(weight_norm))
