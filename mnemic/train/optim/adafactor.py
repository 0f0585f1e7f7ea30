"""Adafactor: second moments per row and column instead of one per weight.

It never waits for the GPU, so that a step may be captured in a CUDA graph.
"""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from mnemic.train.optim.clipping import expand_runs
from mnemic.train.optim.parameter_groups import group_by_decay


class Adafactor(torch.optim.Optimizer):
    """Adam in little memory: rows and columns share their second moments (Shazeer & Stern 2018).

    arXiv:1804.04235, algorithms 4 to 6, without momentum. The step is at most the rate, and at most
    1 / √t, times the root mean square of each tensor's weights (or ``min_scale``); its own root
    mean square is clipped to ``clip``. ``memory`` says how long squares are remembered: in step t
    the new ones have a share of t ** -memory. T5 was pre-trained with it (arXiv:1910.10683).

    With ``runs`` every tensor has a leading axis of runs, each with averages of its own.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        rate: float | Tensor,
        *,
        memory: float = 0.8,
        clip: float = 1.0,
        min_scale: float = 1e-3,
        epsilon: float = 1e-30,
        decay: float = 0.0,
        runs: bool = False,
    ) -> None:
        options = {"memory": memory, "clip": clip, "min_scale": min_scale, "eps": epsilon, "runs": runs}
        super().__init__(group_by_decay(parameters, decay, runs), {"lr": rate} | options)

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update all parameters that have a gradient."""
        for group in self.param_groups:
            runs, rate = group["runs"], group["lr"]
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter] or self.create_state(parameter, runs)
                state["count"] += 1
                update = parameter.grad * mean_square(parameter.grad, state, group).rsqrt()
                length = (root_mean_square(update, runs) / group["clip"]).clamp(min=1)
                scale = root_mean_square(parameter, runs).clamp(min=group["min_scale"])
                step_size = (state["count"] ** -0.5).clamp(max=rate) * scale / length
                if group["weight_decay"]:
                    parameter.sub_(parameter * (rate * group["weight_decay"]))
                parameter.sub_(update * expand_runs(step_size, parameter))

    def create_state(self, parameter: Tensor, runs: bool) -> dict[str, Tensor]:
        """Create the state of a parameter: number of steps, and mean squares."""
        state = {"count": torch.zeros((), dtype=parameter.dtype, device=parameter.device)}
        if parameter.dim() > 1 + runs:
            state |= {"rows": torch.zeros_like(parameter[..., :1]), "columns": torch.zeros_like(parameter[..., :1, :])}
        else:
            state["square"] = torch.zeros_like(parameter)
        self.state[parameter] = state
        return state


def mean_square(gradient: Tensor, state: dict[str, Tensor], group: dict[str, float]) -> Tensor:
    """Update the averages of squared gradients and estimate that of each weight."""
    share, epsilon = state["count"] ** -group["memory"], group["eps"]
    squares = gradient.square()
    if "square" in state:
        state["square"].lerp_(squares, share)
        return state["square"].clamp(min=epsilon)
    rows, columns = state["rows"], state["columns"]  # … r 1, … 1 c
    rows.lerp_(squares.mean(-1, keepdim=True), share)
    columns.lerp_(squares.mean(-2, keepdim=True), share)
    return (rows * columns / rows.mean(-2, keepdim=True).clamp(min=epsilon)).clamp(min=epsilon)


def root_mean_square(tensor: Tensor, runs: bool) -> Tensor:
    """Compute the root mean square of a tensor, per run."""
    return tensor.square().flatten(1).mean(1).sqrt() if runs else tensor.square().mean().sqrt()
