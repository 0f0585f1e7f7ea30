"""Measure what a forward pass keeps for its backward pass."""

from collections.abc import Callable, Sequence
from math import log

import torch
from torch import Tensor


def count_saved_bytes(forward: Callable[[], Tensor]) -> int:
    """Count the bytes of all storages that ``forward`` saves for its gradient, each once."""
    storages: dict[int, torch.UntypedStorage] = {}  # kept alive, so that no address occurs twice

    def remember(tensor: Tensor) -> Tensor:
        storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(remember, lambda tensor: tensor):
        forward()
    return sum(storage.nbytes() for storage in storages.values())


def fit_slope(sizes: Sequence[int], values: Sequence[float]) -> float:
    """Fit the exponent of ``values`` in ``sizes``, the slope of their logarithms."""
    x, y = [log(size) for size in sizes], [log(value) for value in values]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    covariance = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y))
    return covariance / sum((a - mean_x) ** 2 for a in x)
