"""A network that is run with rounded weights and states, and learns in full precision."""

from typing import Any

import torch
from torch import nn
from torch.func import functional_call


class RoundedNetwork(nn.Module):
    """Run a network with its weights rounded to ``dtype``, once per step.

    Its states are then rounded, too: norms and sums between layers read and write half as many
    bytes as under autocast, which keeps them in float32. Gradients go to the weights as they are,
    and only what is computed is rounded.
    """

    def __init__(self, network: nn.Module, dtype: torch.dtype = torch.bfloat16) -> None:
        super().__init__()
        self.network, self.dtype = network, dtype

    def forward(self, *inputs: Any) -> Any:
        rounded = {weight: weight.to(self.dtype) for weight in self.network.parameters()}
        # Under every name that a weight has, but once for a module that two others share.
        names = {
            f"{prefix}{'.' if prefix else ''}{name}": weight
            for prefix, module in self.network.named_modules()
            for name, weight in module.named_parameters(recurse=False, remove_duplicate=False)
        }
        weights = {name: rounded[weight] for name, weight in names.items()}
        return functional_call(self.network, weights, inputs, tie_weights=False)

    @property
    def encode(self) -> Any:
        """The encoder of the network."""
        return self.network.encode

    @property
    def respond(self) -> Any:
        """The response of the network."""
        return self.network.respond
