"""Many runs of one recipe as one batched program: every tensor has a leading axis of runs.

The runs share nothing but the arithmetic, so their summed loss has each run's own gradient in
each run's own slice. Adding a seed costs almost nothing on a GPU.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten


class Many(nn.Module):
    """Networks of the same shape, their weights stacked; inputs and outputs are stacked too."""

    def __init__(self, networks: Sequence[nn.Module]) -> None:
        super().__init__()
        shapes = [{n: p.shape for n, p in net.named_parameters()} for net in networks]
        if any(shape != shapes[0] for shape in shapes):
            raise ValueError("only networks of one shape can be trained as one program")
        self.runs = len(networks)
        self.names = list(shapes[0])
        weights = [dict(network.named_parameters()) for network in networks]
        self.stacked = nn.ParameterList(
            torch.stack([own[name].detach() for own in weights]) for name in self.names
        )
        kept = [dict(network.named_buffers()) for network in networks]
        self.buffer_names = list(kept[0])
        for number, name in enumerate(self.buffer_names):
            stack = torch.stack([own[name] for own in kept])
            self.register_buffer(f"buffer{number}", stack, persistent=False)
        # The shape alone, outside the module tree: its own weights are never used. (They are not
        # moved to the meta device, since that would part weights that are tied.)
        self._shape = (deepcopy(networks[0]).requires_grad_(False),)

    @property
    def rolls(self) -> int:
        return int(self._shape[0].rolls)  # type: ignore[arg-type]

    def train(self, mode: bool = True) -> "Many":
        super().train(mode)
        self._shape[0].train(mode)
        return self

    def forward(self, inputs: Any) -> Any:
        return self.each(lambda network, own: network(own), inputs)

    def each(self, function: Callable[..., Any], *stacked: Any) -> Any:
        """``function(network, …)`` for every run with its slice of ``stacked``; results stacked."""

        form: list[Any] = []  # of the result, whose tensors alone may leave vmap

        def one(weights: dict[str, Tensor], *own: Any) -> tuple[Tensor, ...]:
            def network(*inputs: Any) -> Any:
                return functional_call(self._shape[0], weights, inputs)

            leaves, spec = tree_flatten(function(network, *own))
            form[:] = [leaves, spec]
            return tuple(leaf for leaf in leaves if isinstance(leaf, Tensor))

        weights = dict(zip(self.names, self.stacked))
        weights |= {n: getattr(self, f"buffer{i}") for i, n in enumerate(self.buffer_names)}
        axes = tree_map(lambda leaf: 0 if isinstance(leaf, Tensor) else None, stacked)
        results = iter(vmap(one, in_dims=(0, *axes), randomness="different")(weights, *stacked))
        leaves, spec = form
        whole = [next(results) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        return tree_unflatten(whole, spec)

    def put_back(self, networks: Sequence[nn.Module]) -> None:
        """Copy every run's weights into its own network."""
        with torch.no_grad():
            for run, network in enumerate(networks):
                own = dict(network.named_parameters())
                for name, stack in zip(self.names, self.stacked):
                    own[name].copy_(stack[run])
