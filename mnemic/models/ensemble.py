"""Train several networks as one batched program with a leading axis of runs.

The runs share no weights, so the gradient of their summed loss holds each run's gradient in that
run's slice. Adding a seed costs almost nothing on a GPU.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from mnemic.models.contract import BaseNetwork


class StackedNetworks(BaseNetwork):
    """Networks of one shape with stacked weights; inputs and outputs are stacked too."""

    num_runs: int

    def __init__(self, networks: Sequence[nn.Module]) -> None:
        super().__init__()
        shapes = [{n: p.shape for n, p in net.named_parameters()} for net in networks]
        if any(shape != shapes[0] for shape in shapes):
            raise ValueError("only networks of one shape can be trained as one program")
        self.num_runs = len(networks)
        self.names = list(shapes[0])
        parameters = [dict(network.named_parameters()) for network in networks]
        self.stacked = nn.ParameterList(
            torch.stack([tensors[name].detach() for tensors in parameters]) for name in self.names
        )
        buffers = [dict(network.named_buffers()) for network in networks]
        self.buffer_names = list(buffers[0])
        for number, name in enumerate(self.buffer_names):
            stack = torch.stack([tensors[name] for tensors in buffers])
            self.register_buffer(f"buffer{number}", stack, persistent=False)
        # A template outside the module tree; its own weights are never used. (They do not move to
        # the meta device, since that would untie tied weights.)
        self._template = (deepcopy(networks[0]).requires_grad_(False),)

    @property
    def num_uniforms(self) -> int:
        """How many uniform random numbers one example needs during training."""
        return int(self._template[0].num_uniforms)  # type: ignore[arg-type]

    def train(self, mode: bool = True) -> "StackedNetworks":
        """Set training mode, also on the template that `functional_call` runs."""
        super().train(mode)
        self._template[0].train(mode)
        return self

    def forward(self, inputs: Any) -> Any:
        return self.map_networks(lambda network, run_inputs: network(run_inputs), inputs)

    def map_networks(self, function: Callable[..., Any], *stacked: Any) -> Any:
        """Call ``function(network, …)`` for every run on its slice; stack the results."""

        output_form: list[Any] = []  # leaves and tree spec; only tensors may leave vmap

        def run_network(weights: dict[str, Tensor], *run_arguments: Any) -> tuple[Tensor, ...]:
            def network(*inputs: Any) -> Any:
                return functional_call(self._template[0], weights, inputs)

            leaves, spec = tree_flatten(function(network, *run_arguments))
            output_form[:] = [leaves, spec]
            return tuple(leaf for leaf in leaves if isinstance(leaf, Tensor))

        weights = dict(zip(self.names, self.stacked))
        weights |= {n: getattr(self, f"buffer{i}") for i, n in enumerate(self.buffer_names)}
        axes = tree_map(lambda leaf: 0 if isinstance(leaf, Tensor) else None, stacked)
        results = iter(vmap(run_network, in_dims=(0, *axes), randomness="different")(weights, *stacked))
        leaves, spec = output_form
        output_leaves = [next(results) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        return tree_unflatten(output_leaves, spec)

    def copy_weights_to(self, networks: Sequence[nn.Module]) -> None:
        """Copy the weights of each run into the network of the same index."""
        with torch.no_grad():
            for run, network in enumerate(networks):
                parameters = dict(network.named_parameters())
                for name, stack in zip(self.names, self.stacked):
                    parameters[name].copy_(stack[run])
