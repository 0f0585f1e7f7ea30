"""Switch a network to evaluation mode for a while."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from torch import nn

Network = TypeVar("Network", bound=nn.Module)


@contextmanager
def evaluating(*networks: Network) -> Iterator[Network]:
    """Switch networks to evaluation mode; restore their modes at the end, come what may.

    >>> network = nn.Dropout()
    >>> with evaluating(network):
    ...     network.training
    False
    >>> network.training
    True
    """
    modes = [network.training for network in networks]
    try:
        for network in networks:
            network.eval()
        yield networks[0]
    finally:
        for network, mode in zip(networks, modes):
            network.train(mode)
