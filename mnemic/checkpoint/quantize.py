"""Weights in 8 bits on the disk: whole numbers from -127 to 127 and one scale a row.

Only storage is smaller: what is loaded is float32 again, off by at most half a scale. Matrices are
stored so, each row (of a linear layer: each output; of a table: each entry) with its own scale;
vectors stay as they are. A weight ``name`` has its scales beside it, as ``name.scale``.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

SCALE = ".scale"
MOST = 127


def quantised(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Every matrix as int8 with its scales; symmetric, so that 0 stays 0."""
    found: dict[str, Tensor] = {}
    for name, weight in weights.items():
        if weight.dim() != 2 or not weight.is_floating_point():
            found[name] = weight
            continue
        scale = weight.float().abs().amax(1).clamp(min=torch.finfo(torch.float32).tiny) / MOST
        found[name] = (weight.float() / scale.unsqueeze(1)).round().to(torch.int8)
        found[name + SCALE] = scale
    return found


def restored(stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The inverse, to half a scale; weights that were not quantised come out as they are."""
    small = {name for name, weight in stored.items() if weight.dtype == torch.int8}
    found = {}
    for name, weight in stored.items():
        if name in small:
            found[name] = weight.float() * stored[name + SCALE].unsqueeze(1)
        elif name.removesuffix(SCALE) not in small:
            found[name] = weight
    return found
