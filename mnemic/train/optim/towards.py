"""Decay towards the weights that a phase started from, instead of towards zero."""

from typing import Any

import torch
from torch import Tensor, nn

START = "start"  # the starting weights in the state of an optimizer


class StartingWeights:
    """Pull weights towards those before training (L2-SP, Li et al. 2018).

    arXiv:1802.01483: fine-tuning should not lose what pre-training found. Published: 1 to 2 points
    of accuracy over decay towards zero, for pictures.

    Where we differ: the pull does not go through the moments of the optimizer, as in AdamW. After
    each step w falls by the rate × ``strength`` × (w - its start). New weights, such as those of a
    response, are pulled towards their random start, too.

    The starting weights are in the state of the optimizer, so that a stopped run has them.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, strength: float) -> None:
        self.strength = strength
        self.start_weights: dict[nn.Parameter, Tensor] = {
            parameter: parameter.detach().clone() for group in optimizer.param_groups for parameter in group["params"]
        }
        optimizer.register_step_post_hook(self.pull)

    @torch.no_grad()
    def pull(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        """Move all weights that have just learned."""
        for group in optimizer.param_groups:
            parameters = [p for p in group["params"] if p.grad is not None]
            if not parameters:
                continue
            # Only now: an optimizer fills the state of a weight if it is empty.
            starts = [optimizer.state[p].setdefault(START, self.start_weights[p]) for p in parameters]
            differences = torch._foreach_sub(starts, parameters)
            torch._foreach_mul_(differences, group["lr"])
            torch._foreach_add_(parameters, differences, alpha=self.strength)
