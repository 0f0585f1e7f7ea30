"""Quantize weights to int8 for storage: integers up to ±127 and one scale per row.

Only the file is smaller: loaded weights are float32 again, off by at most half a scale. Matrices
have one scale per row (per output of a linear layer, per entry of an embedding table); vectors are
not quantized. The scales of a weight ``name`` are stored as ``name.scale``.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

SCALE = ".scale"
MAX_LEVEL = 127


def quantize_weights(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Quantize every matrix to int8, symmetrically so that 0 stays 0, and add its scales."""
    quantized: dict[str, Tensor] = {}
    for name, weight in weights.items():
        if weight.dim() != 2 or not weight.is_floating_point():
            quantized[name] = weight
            continue
        scale = weight.float().abs().amax(1).clamp(min=torch.finfo(torch.float32).tiny) / MAX_LEVEL
        quantized[name] = (weight.float() / scale.unsqueeze(1)).round().to(torch.int8)
        quantized[name + SCALE] = scale
    return quantized


def dequantize_weights(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Restore float32 weights from int8 and scales; leave other tensors unchanged."""
    quantized_names = {name for name, weight in tensors.items() if weight.dtype == torch.int8}
    weights = {}
    for name, weight in tensors.items():
        if name in quantized_names:
            scale = tensors.get(name + SCALE)
            if scale is None or weight.dim() != 2 or scale.shape != weight.shape[:1]:
                raise ValueError(f"the weight {name!r} of 8 bits has no scale for each of its rows")
            weights[name] = weight.float() * scale.unsqueeze(1)
        elif name.removesuffix(SCALE) not in quantized_names:
            weights[name] = weight
    return weights
