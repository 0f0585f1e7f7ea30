"""Packed sequences: texts of different lengths in one row, without padding.

A ``PackedMask`` takes the place of a mask: each token sees its own text and no other. Every product
of weights and states then runs over real tokens only; only attention has to know the borders.

Shapes: b texts, n tokens of the longest, t tokens of all, h heads, c channels of one head.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, groupby
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

# Tokens per packed row. On a CPU 512, 1,024 and 2,048 took the same time, 8,192 took 18 %
# more in float32 and 2 % more in bfloat16 (MiniLM, one thread). The GPU's number is not measured.
MAX_TOKENS_CPU, MAX_TOKENS_GPU = 2048, 65_536


# Queries, keys and values (t h c), cu_seqlens, max_seqlen, dropout → t h c.
VarlenKernel = Callable[[Tensor, Tensor, Tensor, Tensor, int, float], Tensor]
KERNEL_WORKS: dict[tuple[str, str], bool] = {}  # by name and device


class PackedMask(NamedTuple):
    """The lengths of texts packed into one row, in place of a mask.

    Neighbors should be of similar length: where no kernel does all at once, they share a call.
    """

    lengths: tuple[int, ...]  # of each text, in order; () if known only on the device
    cu_seqlens: Tensor  # b+1, cumulative lengths from 0; int32 for GPU kernels
    max_seqlen: int  # upper bound of the lengths
    num_tokens: int  # tokens of all texts

    @classmethod
    def from_lengths(cls, lengths: Sequence[int], device: torch.device) -> "PackedMask":
        """Create a mask for texts of known lengths."""
        edges = [0, *accumulate(lengths)]
        cu_seqlens = torch.tensor(edges, dtype=torch.int32, device=device)
        return cls(tuple(lengths), cu_seqlens, max(lengths, default=0), edges[-1])

    @classmethod
    def from_mask(cls, mask: Tensor, capacity: int) -> "PackedMask":
        """Create a mask for the real tokens of a padded batch (``mask`` b n).

        They are packed into ``capacity`` tokens. The lengths stay on the device, so a GPU does not
        synchronize. The unused capacity becomes extra texts, none longer than n.
        """
        width = mask.shape[1]
        ends = mask.sum(1).cumsum(0)  # b
        spare = torch.arange(1, -(-capacity // width) + 1, device=mask.device)
        cu_seqlens = torch.cat([ends.new_zeros(1), ends, ends[-1:] + width * spare]).clamp(max=capacity)
        return cls((), cu_seqlens.int(), width, capacity)

    def length_runs(self) -> Iterator[tuple[int, int]]:
        """Yield each run of equal lengths: the length, and how often it occurs."""
        return ((length, len(list(run))) for length, run in groupby(self.lengths))

    def token_positions(self) -> Tensor:
        """Return each token's position in its own text, 1 t."""
        lengths = torch.tensor(self.lengths, dtype=torch.long)
        starts = (lengths.cumsum(0) - lengths).repeat_interleave(lengths, output_size=self.num_tokens)
        return (torch.arange(self.num_tokens) - starts).unsqueeze(0).to(self.cu_seqlens.device)

    def count_filler_tokens(self) -> int:
        """Return how many tokens to append on a CPU, so that few different totals occur.

        At most a sixteenth. A CPU compiles a program of about a megabyte for each total that comes
        up, and keeps it.
        """
        if self.cu_seqlens.device.type != "cpu" or not self.lengths:
            return 0
        return -self.num_tokens % (1 << max(self.num_tokens.bit_length() - 5, 0))

    def to_dense_mask(self) -> Tensor:
        """Convert to a dense mask of every token (row) by every token, 1 t t."""
        position = torch.arange(self.num_tokens, dtype=torch.int32, device=self.cu_seqlens.device)
        owner = torch.searchsorted(self.cu_seqlens, position, right=True)  # t
        return (owner == owner.unsqueeze(1)).unsqueeze(0)


def find_true_positions(flags: Tensor, limit: int) -> Tensor:
    """Return the indices of the first ``limit`` True values of the flattened ``flags``.

    Unused entries hold the number of flags. Like ``nonzero``, but without a GPU synchronization.
    """
    flat = flags.flatten()
    slot = flat.cumsum(0) - 1
    slot = torch.where(flat & (slot < limit), slot, limit)
    positions = torch.full((limit + 1,), len(flat), device=flat.device)
    return positions.scatter(0, slot, torch.arange(len(flat), device=flat.device))[:limit]


def group_by_length(lengths: Sequence[int], max_tokens: int) -> Iterator[list[int]]:
    """Group texts by length, shortest first, into at most ``max_tokens`` tokens per group.

    A longer text is a group by itself; a text without tokens is in no group.
    """
    group: list[int] = []
    num_tokens = 0
    for index in sorted(range(len(lengths)), key=lambda index: lengths[index]):
        if group and num_tokens + lengths[index] > max_tokens:
            yield group
            group, num_tokens = [], 0
        if lengths[index]:
            group.append(index)
            num_tokens += lengths[index]
    if group:
        yield group


def attend_packed(query: Tensor, keys: Tensor, values: Tensor, packed: PackedMask, dropout: float) -> Tensor:
    """Compute attention within each packed text, 1 h t c.

    A GPU does all texts in one kernel where torch has it, in half precision and with channels in
    eights; else those of similar length in one call (``attend_padded``). On a CPU neighbors of
    equal length share a call: one call for each is as fast, and a mask is never made. ``dropout``
    is the fraction of attention weights that is dropped.
    """
    is_supported = query.is_cuda and query.element_size() == 2 and query.shape[-1] % 8 == 0
    if is_supported and (kernel := select_kernel(query.device, dropout)):
        q, k, v = (x[0].transpose(0, 1) for x in (query, keys, values))  # t h c
        return kernel(q, k, v, packed.cu_seqlens, packed.max_seqlen, dropout).transpose(0, 1).unsqueeze(0)
    if not packed.lengths:
        visible = packed.to_dense_mask().unsqueeze(1)  # 1 1 t t
        return nn.functional.scaled_dot_product_attention(query, keys, values, attn_mask=visible, dropout_p=dropout)
    if query.is_cuda:
        return attend_padded(query, keys, values, packed, dropout)
    runs = list(packed.length_runs())
    sizes = [length * count for length, count in runs]
    outputs = []
    for (_, count), *run_tensors in zip(runs, *(x.split(sizes, 2) for x in (query, keys, values))):
        q, k, v = (x[0].unflatten(1, (count, -1)).transpose(0, 1) for x in run_tensors)  # g h n c
        output = nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=dropout)
        outputs.append(output.transpose(1, 2).flatten(0, 1))  # (g n) h c
    return torch.cat(outputs).transpose(0, 1).unsqueeze(0)  # 1 h t c


def attend_padded(query: Tensor, keys: Tensor, values: Tensor, packed: PackedMask, dropout: float) -> Tensor:
    """Compute ``attend_packed`` by padding neighbors of similar length, in a few calls.

    No GPU synchronization: all shapes follow from the lengths.
    """
    outputs, first_text, start = [], 0, 0
    for count in group_similar_lengths(packed.lengths):
        lengths = packed.lengths[first_text : first_text + count]
        cu_seqlens = packed.cu_seqlens[first_text : first_text + count + 1] - start  # g+1
        column = torch.arange(max(lengths), device=query.device)
        positions = cu_seqlens[:-1, None] + column  # g n
        is_real = positions < cu_seqlens[1:, None]
        positions = positions.clamp(max=sum(lengths) - 1)
        rows = slice(start, start + sum(lengths))
        gathered = (x[0, :, rows].index_select(1, positions.flatten()) for x in (query, keys, values))
        q, k, v = (x.unflatten(1, positions.shape).transpose(0, 1) for x in gathered)  # g h n c
        output = nn.functional.scaled_dot_product_attention(
            q, k, v, attn_mask=is_real[:, None, None], dropout_p=dropout
        )
        owner = torch.arange(count, device=query.device).repeat_interleave(cu_seqlens.diff(), output_size=sum(lengths))
        position = torch.arange(sum(lengths), device=query.device) - cu_seqlens[owner]
        flat = owner * max(lengths) + position  # indices of the real tokens
        outputs.append(output.transpose(1, 2).flatten(0, 1).index_select(0, flat))  # (g n) h c
        first_text, start = first_text + count, start + sum(lengths)
    return torch.cat(outputs).transpose(0, 1).unsqueeze(0)  # 1 h t c


def group_similar_lengths(lengths: Sequence[int]) -> Iterator[int]:
    """Yield how many neighbors to pad together: the longest at most twice the shortest."""
    count, shortest, longest = 0, 0, 0
    for length in lengths:
        if count and max(longest, length) > 2 * min(shortest, length):
            yield count
            count = 0
        shortest, longest = (min(shortest, length), max(longest, length)) if count else (length, length)
        count += 1
    if count:
        yield count


def has_varlen_kernel(device: torch.device, dropout: float) -> bool:
    """Check whether one kernel can do all texts now: on a GPU, in half precision."""
    is_half = torch.is_autocast_enabled("cuda") and torch.get_autocast_dtype("cuda").itemsize == 2
    return device.type == "cuda" and is_half and select_kernel(device, dropout) is not None


def select_kernel(device: torch.device, dropout: float) -> VarlenKernel | None:
    """Return a kernel that does all texts at once, or None if none works."""
    kernel = varlen_attention_with_dropout if dropout else varlen_attention
    return kernel if is_kernel_working(kernel, device) else None


def varlen_attention(q: Tensor, k: Tensor, v: Tensor, cu_seqlens: Tensor, max_seqlen: int, dropout: float) -> Tensor:
    """Run torch's variable-length attention without dropout, t h c; torch 2.10 or later."""
    from torch.nn.attention.varlen import varlen_attn  # imported here: it takes seconds

    output: Any = varlen_attn(q, k, v, cu_seqlens, cu_seqlens, max_seqlen, max_seqlen)
    return output


def varlen_attention_with_dropout(
    q: Tensor, k: Tensor, v: Tensor, cu_seqlens: Tensor, max_seqlen: int, dropout: float
) -> Tensor:
    """Run torch's internal flash attention, which supports dropout but is not public."""
    kernel: Any = torch.ops.aten._flash_attention_forward
    return kernel(q, k, v, cu_seqlens, cu_seqlens, max_seqlen, max_seqlen, dropout, False, False)[0]


def is_kernel_working(kernel: VarlenKernel, device: torch.device) -> bool:
    """Check once, with its gradient, whether a kernel works with this build and GPU.

    Not while torch.compile traces: a kernel that was not probed before (``probe_kernels``) counts
    as not working.
    """
    key = kernel.__name__, str(device)
    if key not in KERNEL_WORKS and not torch.compiler.is_compiling():
        KERNEL_WORKS[key] = probe_kernel(kernel, device)
    return KERNEL_WORKS.get(key, False)


def probe_kernels(device: torch.device) -> None:
    """Check which kernels work, before the code that uses them is compiled."""
    for kernel in (varlen_attention, varlen_attention_with_dropout):
        is_kernel_working(kernel, device)


def probe_kernel(kernel: VarlenKernel, device: torch.device) -> bool:
    """Run a kernel forward and backward on a small input; return whether it works."""
    with torch.inference_mode(False), torch.enable_grad():
        cu_seqlens = torch.tensor([0, 1, 4], dtype=torch.int32, device=device)
        states = torch.ones(4, 2, 32, dtype=torch.bfloat16, device=device, requires_grad=True)
        try:
            kernel(states, states, states, cu_seqlens, 3, 0.1).sum().backward()
        except (ImportError, NotImplementedError, RuntimeError, TypeError, AttributeError):
            return False
    return states.grad is not None
