"""States of earlier segments that the layers of a stack may attend to.

Shapes: b batch, n tokens, m context positions, d width.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor


class StackContext(NamedTuple):
    """States before the tokens that each layer may attend to.

    The cache of an earlier segment has different states per layer; memory slots are the same in
    all.
    """

    layers: tuple[Tensor, ...]  # one per layer: b m d
    mask: Tensor  # b m


def extend_context(
    context: StackContext | None, layer_inputs: Sequence[Tensor], mask: Tensor, length: int
) -> StackContext:
    """Append layer inputs (b n d) to a context; keep the last ``length``, detached.

    What is cached are hidden states and not keys and values, so that later segments project them
    with the weights of that time, which learn from it (Dai et al. 2019, section 3.2).
    """
    layers, full_mask = tuple(layer_inputs), mask
    if context is not None:
        layers = tuple(torch.cat(pair, 1) for pair in zip(context.layers, layers, strict=True))
        full_mask = torch.cat([context.mask, mask], 1)
    first = max(full_mask.shape[1] - length, 0)
    return StackContext(tuple(layer[:, first:].detach() for layer in layers), full_mask[:, first:])
