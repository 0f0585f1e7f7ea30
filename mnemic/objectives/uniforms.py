"""Uniform random numbers from a key a row: on any device, in any batch, the same.

Shapes: b batch, n tokens, r numbers for each token.
"""

import torch
from torch import Tensor

# The constants of splitmix64 (Steele et al. 2014), as signed numbers.
STEP = 0x9E3779B97F4A7C15 - 2**64
FIRST = 0xBF58476D1CE4E5B9 - 2**64
SECOND = 0x94D049BB133111EB - 2**64
BITS = 24  # as many as a float32 holds
APART = 2**24  # numbers of one place of a row; more tokens than a row will have


def rolls(keys: Tensor, length: int, count: int) -> Tensor:
    """``keys`` b, whole numbers → r b n from 0 to below 1, ``count`` of them for each token.

    A row's numbers depend on its key alone: not on the other rows, and not on the padding. To draw
    anew, give it another key.
    """
    place = torch.arange(length, device=keys.device)  # n
    kind = torch.arange(count, device=keys.device)[:, None, None]  # r 1 1
    counter = place + APART * kind  # r 1 n
    mixed = scatter(scatter(keys)[:, None] + (counter + 1) * STEP)  # r b n
    return shifted(mixed, 64 - BITS).float() / 2**BITS


def scatter(numbers: Tensor) -> Tensor:
    """Splitmix64's last step: 64 bits to 64 bits, each of which half of the others decide."""
    numbers = (numbers ^ shifted(numbers, 30)) * FIRST
    numbers = (numbers ^ shifted(numbers, 27)) * SECOND
    return numbers ^ shifted(numbers, 31)


def shifted(numbers: Tensor, bits: int) -> Tensor:
    """To the right with zeros from the left: torch has no unsigned shift."""
    return (numbers >> bits) & (2 ** (64 - bits) - 1)
