"""Texts of different lengths in one row, one after another, so that nothing is computed on padding.

``Packed`` stands where a mask would: each token sees its own text and no other. Every product of
weights and states then runs over real tokens alone; only attention has to know where a text ends.

Shapes: b texts, n tokens of the longest, t tokens of all, h heads, c channels of one head.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, groupby
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

# Tokens that are read at once. On a CPU 512, 1,024 and 2,048 took the same time, 8,192 took 18 %
# more in float32 and 2 % more in bfloat16 (MiniLM, one thread). The other number is not measured.
ON_CPU, ELSEWHERE = 2048, 65_536


class Packed(NamedTuple):
    """A mask for a row of texts, shortest first: those of one length are computed in one call."""

    lengths: tuple[int, ...]  # of each text, in the order in which they stand
    edges: Tensor  # b+1, where each begins and the last ends; int32, as GPU kernels want it

    @classmethod
    def of(cls, lengths: Sequence[int], device: torch.device) -> "Packed":
        edges = [0, *accumulate(lengths)]
        return cls(tuple(lengths), torch.tensor(edges, dtype=torch.int32, device=device))

    def runs(self) -> Iterator[tuple[int, int]]:
        """Neighbours of one length: that length, and how many they are."""
        return ((length, len(list(same))) for length, same in groupby(self.lengths))

    def positions(self) -> Tensor:
        """Where each token stands in its own text, 1 t."""
        counted = torch.cat([torch.arange(length) for length in self.lengths])
        return counted.unsqueeze(0).to(self.edges.device)

    def dense(self) -> Tensor:
        """The same as a mask of every token (row) and every other, 1 t t."""
        blocks = [torch.ones(length, length, dtype=torch.bool) for length in self.lengths]
        return torch.block_diag(*blocks).bool().unsqueeze(0).to(self.edges.device)


def plan(lengths: Sequence[int], most: int) -> Iterator[list[int]]:
    """Which texts to read together: shortest first, at most ``most`` tokens or one text.

    A text without tokens is in no group.
    """
    group: list[int] = []
    tokens = 0
    for number in sorted(range(len(lengths)), key=lambda number: lengths[number]):
        if group and tokens + lengths[number] > most:
            yield group
            group, tokens = [], 0
        if lengths[number]:
            group.append(number)
            tokens += lengths[number]
    if group:
        yield group


def attend(query: Tensor, keys: Tensor, values: Tensor, packed: Packed, rate: float) -> Tensor:
    """Attention of each text to itself, 1 h t c; ``rate`` of the weights is dropped.

    A GPU does all texts in one kernel where torch has it, in half precision and without dropout.
    Elsewhere neighbours of one length share a call: on a CPU one call for each is as fast, and a
    mask is never made.
    """
    if query.is_cuda and query.element_size() == 2 and not rate and (kernel := varlen()):
        q, k, v = (x[0].transpose(0, 1) for x in (query, keys, values))  # t h c
        longest = max(packed.lengths)
        mixed = kernel(q, k, v, packed.edges, packed.edges, longest, longest)
        return mixed.transpose(0, 1).unsqueeze(0)
    runs = list(packed.runs())
    sizes = [length * count for length, count in runs]
    parts = []
    for (_, count), *own in zip(runs, *(x.split(sizes, 2) for x in (query, keys, values))):
        q, k, v = (x[0].unflatten(1, (count, -1)).transpose(0, 1) for x in own)  # g h n c
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=rate)
        parts.append(mixed.transpose(1, 2).flatten(0, 1))  # (g n) h c
    return torch.cat(parts).transpose(0, 1).unsqueeze(0)  # 1 h t c


def varlen() -> Callable[..., Any] | None:
    """torch's kernel for texts of different lengths; None before torch 2.10."""
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError:
        return None
    return varlen_attn
