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


# Queries, keys and values (t h c), edges of texts, the longest, share that is dropped → t h c.
Kernel = Callable[[Tensor, Tensor, Tensor, Tensor, int, float], Tensor]
TRIED: dict[tuple[str, str], bool] = {}  # kernels by name and device: whether they work


class Packed(NamedTuple):
    """A mask for a row of texts, shortest first: those of one length are computed in one call."""

    lengths: tuple[int, ...]  # of each text, in the order in which they stand; () if not known here
    edges: Tensor  # b+1, where each begins and the last ends; int32, as GPU kernels want it
    longest: int  # no text has more tokens
    total: int  # tokens of all texts

    @classmethod
    def of(cls, lengths: Sequence[int], device: torch.device) -> "Packed":
        edges = [0, *accumulate(lengths)]
        there = torch.tensor(edges, dtype=torch.int32, device=device)
        return cls(tuple(lengths), there, max(lengths, default=0), edges[-1])

    @classmethod
    def within(cls, mask: Tensor, room: int) -> "Packed":
        """For the real tokens of a padded batch (``mask`` b n) in a row of ``room``; none waits.

        What they leave of the room are texts of their own, none longer than n.
        """
        width = mask.shape[1]
        ends = mask.sum(1).cumsum(0)  # b
        spare = torch.arange(1, -(-room // width) + 1, device=mask.device)
        edges = torch.cat([ends.new_zeros(1), ends, ends[-1:] + width * spare]).clamp(max=room)
        return cls((), edges.int(), width, room)

    def runs(self) -> Iterator[tuple[int, int]]:
        """Neighbours of one length: that length, and how many they are."""
        return ((length, len(list(same))) for length, same in groupby(self.lengths))

    def positions(self) -> Tensor:
        """Where each token stands in its own text, 1 t."""
        sizes = torch.tensor(self.lengths, dtype=torch.long)
        begins = (sizes.cumsum(0) - sizes).repeat_interleave(sizes, output_size=self.total)
        return (torch.arange(self.total) - begins).unsqueeze(0).to(self.edges.device)

    def spare(self) -> int:
        """How many tokens a CPU should add behind, a sixteenth at most, for one of few totals.

        It makes a program for each total that comes up, of about a megabyte, and keeps them.
        """
        if self.edges.device.type != "cpu" or not self.lengths:
            return 0
        return -self.total % (1 << max(self.total.bit_length() - 5, 0))

    def dense(self) -> Tensor:
        """The same as a mask of every token (row) and every other, 1 t t."""
        place = torch.arange(self.total, dtype=torch.int32, device=self.edges.device)
        owner = torch.searchsorted(self.edges, place, right=True)  # t
        return (owner == owner.unsqueeze(1)).unsqueeze(0)


def places_of(chosen: Tensor, room: int) -> Tensor:
    """Where the flattened ``chosen`` is True, the first ``room`` of them; the rest say its size.

    As ``nonzero``, for which a GPU would have to stop and count.
    """
    flat = chosen.flatten()
    slot = flat.cumsum(0) - 1
    slot = torch.where(flat & (slot < room), slot, room)
    places = torch.full((room + 1,), len(flat), device=flat.device)
    return places.scatter(0, slot, torch.arange(len(flat), device=flat.device))[:room]


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

    A GPU does all texts in one kernel where torch has it, in half precision and with channels in
    eights; else those of like length in one call (``padded``). On a CPU neighbours of one length
    share a call: one call for each is as fast, and a mask is never made.
    """
    if query.is_cuda and (kernel := kernel_for(query, rate)):
        q, k, v = (x[0].transpose(0, 1) for x in (query, keys, values))  # t h c
        return kernel(q, k, v, packed.edges, packed.longest, rate).transpose(0, 1).unsqueeze(0)
    if not packed.lengths:
        seen = packed.dense().unsqueeze(1)  # 1 1 t t
        return nn.functional.scaled_dot_product_attention(
            query, keys, values, attn_mask=seen, dropout_p=rate
        )
    if query.is_cuda:
        return padded(query, keys, values, packed, rate)
    runs = list(packed.runs())
    sizes = [length * count for length, count in runs]
    parts = []
    for (_, count), *own in zip(runs, *(x.split(sizes, 2) for x in (query, keys, values))):
        q, k, v = (x[0].unflatten(1, (count, -1)).transpose(0, 1) for x in own)  # g h n c
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=rate)
        parts.append(mixed.transpose(1, 2).flatten(0, 1))  # (g n) h c
    return torch.cat(parts).transpose(0, 1).unsqueeze(0)  # 1 h t c


def padded(query: Tensor, keys: Tensor, values: Tensor, packed: Packed, rate: float) -> Tensor:
    """As ``attend``; neighbours of like length are padded for attention alone, in a few calls.

    Nothing waits for the GPU: all shapes follow from the lengths.
    """
    parts, first, start = [], 0, 0
    for count in alike(packed.lengths):
        own = packed.lengths[first : first + count]
        edges = packed.edges[first : first + count + 1] - start  # g+1
        column = torch.arange(max(own), device=query.device)
        places = edges[:-1, None] + column  # g n
        seen = places < edges[1:, None]
        places = places.clamp(max=sum(own) - 1)
        rows = slice(start, start + sum(own))
        taken = (x[0, :, rows].index_select(1, places.flatten()) for x in (query, keys, values))
        q, k, v = (x.unflatten(1, places.shape).transpose(0, 1) for x in taken)  # g h n c
        mixed = nn.functional.scaled_dot_product_attention(
            q, k, v, attn_mask=seen[:, None, None], dropout_p=rate
        )
        owner = torch.arange(count, device=query.device).repeat_interleave(
            edges.diff(), output_size=sum(own)
        )
        inside = torch.arange(sum(own), device=query.device) - edges[owner]
        flat = owner * max(own) + inside  # of the padded texts, those tokens that are real
        parts.append(mixed.transpose(1, 2).flatten(0, 1).index_select(0, flat))  # (g n) h c
        first, start = first + count, start + sum(own)
    return torch.cat(parts).transpose(0, 1).unsqueeze(0)  # 1 h t c


def alike(lengths: Sequence[int]) -> Iterator[int]:
    """How many neighbours to pad together: the longest of them is at most twice the shortest."""
    count, least, most = 0, 0, 0
    for length in lengths:
        if count and max(most, length) > 2 * min(least, length):
            yield count
            count = 0
        least, most = (min(least, length), max(most, length)) if count else (length, length)
        count += 1
    if count:
        yield count


def has_kernel(device: torch.device, rate: float) -> bool:
    """Whether one kernel does all texts now: on a GPU, in half precision."""
    halved = torch.is_autocast_enabled("cuda") and torch.get_autocast_dtype("cuda").itemsize == 2
    return device.type == "cuda" and halved and works(dropping if rate else keeping, device)


def kernel_for(query: Tensor, rate: float) -> Kernel | None:
    """The kernel that does all texts at once, if it takes such numbers: 1 h t c."""
    kernel = dropping if rate else keeping
    fits = query.element_size() == 2 and query.shape[-1] % 8 == 0
    return kernel if fits and works(kernel, query.device) else None


def keeping(q: Tensor, k: Tensor, v: Tensor, edges: Tensor, longest: int, rate: float) -> Tensor:
    """torch's kernel for texts of different lengths, without dropout: t h c; not before 2.10."""
    from torch.nn.attention.varlen import varlen_attn  # here: importing it takes seconds

    mixed: Any = varlen_attn(q, k, v, edges, edges, longest, longest)
    return mixed


def dropping(q: Tensor, k: Tensor, v: Tensor, edges: Tensor, longest: int, rate: float) -> Tensor:
    """What lies below that and knows dropout, but has no public name."""
    kernel: Any = torch.ops.aten._flash_attention_forward
    return kernel(q, k, v, edges, edges, longest, longest, rate, False, False)[0]


def works(kernel: Kernel, device: torch.device) -> bool:
    """A kernel is tried once, with its gradient: not every build and not every GPU can do it.

    Not while torch.compile looks on: what was not tried before (``try_kernels``) does not work.
    """
    key = kernel.__name__, str(device)
    if key not in TRIED and not torch.compiler.is_compiling():
        TRIED[key] = tried(kernel, device)
    return TRIED.get(key, False)


def try_kernels(device: torch.device) -> None:
    """Find out which kernels work, before what uses them is compiled."""
    for kernel in (keeping, dropping):
        works(kernel, device)


def tried(kernel: Kernel, device: torch.device) -> bool:
    with torch.inference_mode(False), torch.enable_grad():
        edges = torch.tensor([0, 1, 4], dtype=torch.int32, device=device)
        row = torch.ones(4, 2, 32, dtype=torch.bfloat16, device=device, requires_grad=True)
        try:
            kernel(row, row, row, edges, 3, 0.1).sum().backward()
        except (ImportError, NotImplementedError, RuntimeError, TypeError, AttributeError):
            return False
    return row.grad is not None
