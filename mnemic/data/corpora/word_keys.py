"""Keys of words and n-grams: one number for a sequence of token ids.

Shapes: b batch, n tokens.
"""

import torch
from torch import Tensor

MULTIPLIER = 0x9E3779B97F4A7C15 - 2**64  # odd, so that no digit is lost modulo 2^64


def weigh_tokens(ids: Tensor, offsets: Tensor) -> Tensor:
    """Compute what tokens add to the keys of their words, by their offset.

    A key is the sum of (id + 1) · multiplier^offset modulo 2^64: of 10^6 random words two have the
    same key with a probability of 1 in 10^7.
    """
    powers, exponents = torch.ones_like(ids), offsets.clone()
    factor = torch.full_like(ids, MULTIPLIER)
    for _ in range(16):  # bits of an offset
        powers = torch.where(exponents & 1 == 1, powers * factor, powers)
        factor, exponents = factor * factor, exponents >> 1
    return (ids + 1) * powers
