"""The base of all networks: what they say about themselves."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class BaseNetwork(nn.Module):
    """State what a network can do.

    Contract: ``forward(inputs) → output``, with ``output.logits`` in the shape of the response.
    """

    carries_memory = False  # a state of its memory goes from one segment or call to the next
    reads_windows_in_turn = False  # windows of a text depend on each other, and must not overlap
    num_runs: int | None = None  # networks that are stacked and trained as one; None: it is a single one

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return next(self.parameters()).device

    @property
    def num_uniforms(self) -> int:
        """How many uniform random numbers one example needs during training, without dropout's."""
        return 0

    def start_phase(self) -> None:
        """Prepare the weights for a phase of training, before its first step."""

    def dummy_inputs(self, sizes: Mapping[str, Any]) -> Any:
        """Make a tiny batch for a check of shapes, without a look at values."""
        raise NotImplementedError


def unwrap_network(network: nn.Module) -> Any:
    """Return the network without the wrapper of distributed training."""
    return network.module if isinstance(network, DistributedDataParallel) else network
