"""Measure the memory that a computation keeps for its gradients or makes, and how it grows."""

from collections.abc import Callable, Sequence
from math import log
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode


def measure_saved_bytes(run: Callable[..., Tensor], *arguments: Any) -> int:
    """Return the bytes that autograd keeps after ``run``; storage that is shared counts once."""
    storages: dict[int, torch.UntypedStorage] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        storages[storage.data_ptr()] = storage
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        output = run(*arguments)
    assert output.requires_grad
    return sum(storage.nbytes() for storage in storages.values())


class LargestTensor(TorchDispatchMode):
    """Record the largest storage of the tensors that operations return, in bytes."""

    num_bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        outputs = func(*args, **(kwargs or {}))
        for output in outputs if isinstance(outputs, tuple | list) else [outputs]:
            if isinstance(output, Tensor):
                self.num_bytes = max(self.num_bytes, output.untyped_storage().nbytes())
        return outputs


def fit_slope(sizes: Sequence[int], costs: Sequence[float]) -> float:
    """Fit the exponent of costs that grow as a power of the sizes."""
    return float(np.polyfit([log(size) for size in sizes], [log(cost) for cost in costs], 1)[0])
