"""Switch a network to evaluation mode for a while."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from torch import nn

Network = TypeVar("Network", bound=nn.Module)


@contextmanager
def evaluating(network: Network) -> Iterator[Network]:
    """Switch ``network`` to evaluation mode; restore its mode at the end, come what may.

    >>> network = nn.Dropout()
    >>> with evaluating(network):
    ...     network.training
    False
    >>> network.training
    True
    """
    was_training = network.training
    network.eval()
    try:
        yield network
    finally:
        network.train(was_training)
