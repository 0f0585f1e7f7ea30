"""Angular hashing: vectors of similar directions fall into the same bucket.

Shapes: b batch, h heads, r rounds, n positions, c channels of one head, f columns of a rotation.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class HashBits(NamedTuple):
    """How many buckets each text has, as powers of two."""

    per_text: Tensor  # b
    largest: int  # at least the largest of them; known without asking the device
    undivided: int  # with more bits than these the hash is a pair of two smaller ones


def count_bits(lengths: Tensor, longest: int, chunk: int) -> HashBits:
    """Count the bits of a hash that puts about half a chunk into each bucket.

    ``lengths`` b are at most ``longest``. There are 2 · length / chunk buckets, rounded down to a
    power of two, and a single one for a text of one chunk.
    """
    largest = (2 * (longest // chunk)).bit_length() - 1 if longest > chunk else 0
    powers = 2 ** torch.arange(1, largest + 1, device=lengths.device)
    bits = (2 * (lengths // chunk).unsqueeze(-1) >= powers).sum(-1) * (lengths > chunk)
    return HashBits(bits, largest, (2 * chunk).bit_length() - 1)


def count_columns(bits: HashBits) -> tuple[int, ...]:
    """Count the columns of each hash's rotation; the first hash is the larger one."""
    first = max((1 << first_bits) // 2 for first_bits, _ in split_range(bits))
    second = max((1 << second_bits) // 2 for _, second_bits in split_range(bits))
    return (first, second) if second else (first,) if first else ()


def split_range(bits: HashBits) -> list[tuple[int, int]]:
    """List how each number of bits up to the largest is split into two hashes."""
    return [
        (number, 0) if number <= bits.undivided else (number // 2, number - number // 2)
        for number in range(bits.largest + 1)
    ]


def hash_directions(vectors: Tensor, rotations: tuple[Tensor, ...], bits: HashBits) -> Tensor:
    """Hash vectors b h n c into buckets b h r n.

    ``rotations`` are f r h c. A text with fewer bits uses the first columns alone, so that longer
    texts beside it change nothing.
    """
    first_bits = torch.where(bits.per_text > bits.undivided, bits.per_text // 2, bits.per_text)
    buckets = find_directions(vectors, rotations[0], first_bits)
    for rotation in rotations[1:]:
        second = find_directions(vectors, rotation, bits.per_text - first_bits)
        buckets = buckets + second * (1 << first_bits)[:, None, None, None]
    return buckets


def find_directions(vectors: Tensor, rotation: Tensor, bits: Tensor) -> Tensor:
    """Find argmax([x R; -x R]) over the columns of each text, b h r n."""
    num_columns, num_rounds = rotation.shape[:2]
    flat_rotation = rotation.to(vectors.dtype).permute(2, 3, 1, 0).flatten(2)  # h c rf
    rotated = (vectors @ flat_rotation).unflatten(-1, (num_rounds, num_columns))  # b h n r f
    half = ((1 << bits) // 2)[:, None, None, None]  # b 1 1 1
    is_unused = torch.arange(num_columns, device=vectors.device) >= half.unsqueeze(-1)
    column = rotated.abs().masked_fill(is_unused, -1).argmax(-1)  # b h n r
    is_negative = rotated.gather(-1, column.unsqueeze(-1)).squeeze(-1) < 0
    return (column + is_negative * half).transpose(2, 3)
