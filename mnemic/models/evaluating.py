"""Switch networks to evaluation mode for a while."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def evaluating(*networks: nn.Module) -> Iterator[None]:
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
        yield
    finally:
        for network, mode in zip(networks, modes):
            network.train(mode)
