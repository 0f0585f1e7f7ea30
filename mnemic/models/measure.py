"""Measure a network before it is built: its shapes, and the memory that they need."""

import os
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeVar

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from mnemic.recipe import ConfigError

NetworkT = TypeVar("NetworkT", bound=nn.Module)
GIGABYTE = 1e9
MAX_BYTES = 1e12  # of weights, where the system does not say how much memory it has


def build_on_meta(build: Callable[[], NetworkT]) -> NetworkT:
    """Build a network whose tensors have shapes but no values; no random numbers are drawn.

    Sizes that no tensor can have raise a ConfigError.
    """
    try:
        with torch.random.fork_rng(devices=[]), torch.device("meta"):
            return build()
    except (RuntimeError, OverflowError, IndexError) as error:  # a negative size, too many bytes
        reason = str(error).partition("\n")[0]
        raise ConfigError(f"no network has such sizes: {reason}") from None


class SizeLimit(TorchFunctionMode):
    """Refuse to make tensors that have more numbers than a limit, all together.

    Unlike the meta device, it takes no time: arithmetic there imports torch's compiler.
    """

    factories = (torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn, torch.eye, torch.arange)

    def __init__(self, max_numbers: int) -> None:
        super().__init__()
        self.max_numbers, self.num_left = max_numbers, max_numbers

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Count the numbers of a new tensor before it is made."""
        if func in self.factories:
            sizes = args[0] if args and isinstance(args[0], Sequence) else args[: 1 if func is torch.full else None]
            self.num_left -= prod(size for size in sizes if isinstance(size, int))
            if self.num_left < 0:
                raise ConfigError(
                    f"no network has such sizes: its weights are {self.max_numbers:,} numbers at most, and the "
                    f"recipe asks for a tensor of {' × '.join(map(str, sizes))}"
                )
        return func(*args, **(kwargs or {}))


def build_within(build: Callable[[], NetworkT], max_numbers: int) -> NetworkT:
    """Build a network whose tensors have no more than ``max_numbers``, else raise a ConfigError."""
    try:
        with SizeLimit(max_numbers):
            return build()
    except (RuntimeError, OverflowError, IndexError) as error:  # a negative size
        reason = str(error).partition("\n")[0]
        raise ConfigError(f"no network has such sizes: {reason}") from None


def check_memory(network: nn.Module) -> None:
    """Raise a ConfigError if a network's weights, on meta, need more memory than there is."""
    tensors = {id(tensor): tensor for tensor in (*network.parameters(), *network.buffers())}.values()
    needed, available = sum(tensor.numel() * tensor.element_size() for tensor in tensors), total_memory()
    if needed > available:
        largest = max(network.named_parameters(), key=lambda pair: pair[1].numel())
        raise ConfigError(
            f"a network of these sizes takes {needed / GIGABYTE:,.0f} GB, and this computer has "
            f"{available / GIGABYTE:,.0f} GB of memory: its weight {largest[0]!r} has the shape "
            f"{tuple(largest[1].shape)}; give smaller sizes in [model]"
        )


def total_memory() -> float:
    """Return the bytes of this computer's memory."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):  # Windows has no such call
        return MAX_BYTES
