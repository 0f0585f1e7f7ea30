"""Put a network in evaluation mode for a while."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from torch import nn

Network = TypeVar("Network", bound=nn.Module)


@contextmanager
def evaluating(network: Network) -> Iterator[Network]:
    """Set ``network`` to evaluation mode within the block, and back after it."""
    was_training = network.training
    network.eval()
    try:
        yield network
    finally:
        network.train(was_training)
