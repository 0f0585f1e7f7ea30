"""Counter-based uniform random numbers: equal keys give equal numbers on every device.

Shapes: b batch, n tokens, r numbers per token, s shares.
"""

import torch
from torch import Tensor

# The constants of splitmix64 (Steele et al. 2014), as signed numbers.
INCREMENT = 0x9E3779B97F4A7C15 - 2**64
FIRST_MULTIPLIER = 0xBF58476D1CE4E5B9 - 2**64
SECOND_MULTIPLIER = 0x94D049BB133111EB - 2**64
BITS = 24  # as many as a float32 holds
STRIDE = 2**24  # more than the tokens of any row, so that counters never repeat


def make_uniforms(keys: Tensor, length: int, count: int) -> Tensor:
    """Make ``count`` uniform numbers in [0, 1) per token from one integer key per row.

    ``keys`` b → r b n. A row's numbers depend on its key alone, not on other rows or on padding.
    For new numbers give another key.
    """
    position = torch.arange(length, device=keys.device)  # n
    index = torch.arange(count, device=keys.device)[:, None, None]  # r 1 1
    counter = position + STRIDE * index  # r 1 n
    bits = mix_bits(mix_bits(keys)[:, None] + (counter + 1) * INCREMENT)  # r b n
    return shift_right(bits, 64 - BITS).float() / 2**BITS


def draw_choices(keys: Tensor, shares: Tensor) -> Tensor:
    """Draw a number for each key, by the shares of the numbers from 0 on.

    ``keys`` b, ``shares`` s → b. Shares need not add up to 1.
    """
    bounds = (shares.cumsum(0) / shares.sum())[:-1].to(keys.device)
    return torch.bucketize(make_uniforms(keys, 1, 1)[0, :, 0].double(), bounds, right=True)


def mix_bits(numbers: Tensor) -> Tensor:
    """Mix the bits of 64-bit numbers: the output function of splitmix64."""
    numbers = (numbers ^ shift_right(numbers, 30)) * FIRST_MULTIPLIER
    numbers = (numbers ^ shift_right(numbers, 27)) * SECOND_MULTIPLIER
    return numbers ^ shift_right(numbers, 31)


def shift_right(numbers: Tensor, bits: int) -> Tensor:
    """Shift bits right and fill with zeros; torch has no unsigned shift."""
    return (numbers >> bits) & (2 ** (64 - bits) - 1)
