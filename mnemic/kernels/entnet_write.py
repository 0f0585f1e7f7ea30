"""EntNet's write on a GPU: one kernel reads the whole story, one goes back through it.

A slot's row never meets another one, so a program holds ``ROWS`` of them in registers from the
first sentence to the last. Forward keeps what backward needs: the rows and the pre-activation
before every sentence. The gradients that are sums over sentences are matmuls after the loop.
A program stops at the last sentence of its own examples, so short stories are not held up by long
ones beside them; what it never comes to is zero.

Shapes: r runs, b batch, n inputs, s slots, d width; a row is one slot of one example.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from mnemic.kernels import TINY

ROWS = 16  # rows a program; the least that a tensor core takes
WARPS = 4
REGISTERS: int | None = None  # at most so many a thread: fewer let more programs onto a core
PRECISION = "bf16x3"  # three products of halves on tensor cores: 16 bits; "bf16" is one: 8 bits


@triton.jit
def times(rows, matrix, precision: tl.constexpr):  # type: ignore[no-untyped-def]
    if precision == "bf16":
        product = tl.dot(rows.to(tl.bfloat16), matrix.to(tl.bfloat16))
    else:
        product = tl.dot(rows, matrix, input_precision=precision)
    return product


@triton.jit
def forward_kernel(  # type: ignore[no-untyped-def]
    slots, told, drive, lean, seen, ends, place, old, slope,  # in
    rows, thoughts, gates, last,  # out
    batch, inputs, count, width,
    height: tl.constexpr, padded: tl.constexpr, tiny: tl.constexpr, precision: tl.constexpr,
    keep: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * height + tl.arange(0, height)  # of this run: b s
    channel = tl.arange(0, padded)
    real, inside = row < batch * count, channel < width
    both = real[:, None] & inside[None, :]
    example, slot = row // count, row % count
    # Up to the run's own part offsets may overflow; inside it they may not (see ``launch``).
    run = tl.program_id(1).to(tl.int64)
    first, stories = run * batch * count * width, run * batch * inputs
    slots, last, rows, thoughts = (
        slots + first, last + first, rows + first * inputs, thoughts + first * inputs,
    )  # fmt: skip
    told, drive = told + stories * width, drive + stories * width
    lean, gates, seen, ends = (
        lean + stories * count, gates + stories * count, seen + stories, ends + run * batch,
    )  # fmt: skip
    here = row[:, None] * width + channel[None, :]
    across = tl.arange(0, padded)
    square = inside[:, None] & (across < width)[None, :]
    # U transposed: h Uᵀ
    matrix = tl.load(
        old + run * width * width + across[None, :] * width + channel[:, None], square, 0.0
    )
    h = tl.load(slots + here, both, 0.0)
    key_at = slot[:, None] * width + channel[None, :]
    keyed = tl.load(place + run * count * width + key_at, both, 0.0)
    bend = tl.load(slope + run * width + channel, inside, 0.0)[None, :]
    for n in range(tl.max(tl.load(ends + example, real, 0))):
        told_at = (example * inputs + n)[:, None] * width + channel[None, :]
        s = tl.load(told + told_at, both, 0.0)
        p = keyed + tl.load(drive + told_at, both, 0.0)
        gate_at = (example * inputs + n) * count + slot
        a = tl.load(lean + gate_at, real, 0.0) + tl.sum(s * h, 1)
        open = tl.load(seen + example * inputs + n, real, 0) != 0
        p += times(h, matrix, precision)
        g = 1.0 / (1.0 + tl.exp(-a))
        z = h + g[:, None] * tl.where(p > 0, p, bend * p)
        size = tl.maximum(tl.sum(z * z, 1), tiny)
        if keep:
            kept_at = n * batch * count * width + here
            tl.store(rows + kept_at, h, both)
            tl.store(thoughts + kept_at, p, both)
        tl.store(gates + gate_at, tl.where(open, g, 0.0), real)
        h = tl.where(open[:, None], z / tl.sqrt(size)[:, None], h)
    tl.store(last + here, h, both)


@triton.jit
def backward_kernel(  # type: ignore[no-untyped-def]
    told, gates, seen, ends, old, slope, rows, thoughts, d_last, d_gates,  # in
    d_slots, d_lean, d_thoughts, d_slope,  # out
    batch, inputs, count, width,
    height: tl.constexpr, padded: tl.constexpr, tiny: tl.constexpr, precision: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * height + tl.arange(0, height)
    channel = tl.arange(0, padded)
    real, inside = row < batch * count, channel < width
    both = real[:, None] & inside[None, :]
    example, slot = row // count, row % count
    run = tl.program_id(1).to(tl.int64)
    first, stories = run * batch * count * width, run * batch * inputs
    rows, thoughts, d_thoughts = (
        rows + first * inputs, thoughts + first * inputs, d_thoughts + first * inputs,
    )  # fmt: skip
    d_last, d_slots, d_slope = d_last + first, d_slots + first, d_slope + first
    told, seen, ends = told + stories * width, seen + stories, ends + run * batch
    gates, d_gates, d_lean = (
        gates + stories * count, d_gates + stories * count, d_lean + stories * count,
    )  # fmt: skip
    here = row[:, None] * width + channel[None, :]
    across = tl.arange(0, padded)
    square = inside[:, None] & (across < width)[None, :]
    matrix = tl.load(
        old + run * width * width + channel[:, None] * width + across[None, :], square, 0.0
    )
    bend = tl.load(slope + run * width + channel, inside, 0.0)[None, :]
    d_h = tl.load(d_last + here, both, 0.0)
    d_bend = tl.zeros([height, padded], tl.float32)
    end = tl.max(tl.load(ends + example, real, 0))
    for back in range(end):
        n = end - 1 - back
        kept_at = n * batch * count * width + here
        h = tl.load(rows + kept_at, both, 0.0)
        p = tl.load(thoughts + kept_at, both, 0.0)
        s = tl.load(told + (example * inputs + n)[:, None] * width + channel[None, :], both, 0.0)
        gate_at = (example * inputs + n) * count + slot
        g = tl.load(gates + gate_at, real, 0.0)
        open = tl.load(seen + example * inputs + n, real, 0) != 0
        c = tl.where(p > 0, p, bend * p)
        z = h + g[:, None] * c
        squares = tl.sum(z * z, 1)
        shrink = (1.0 / tl.sqrt(tl.maximum(squares, tiny)))[:, None]
        along = tl.sum(z * d_h, 1)[:, None] * shrink * shrink
        d_z = (d_h - tl.where(squares > tiny, 1.0, 0.0)[:, None] * along * z) * shrink
        d_g = tl.sum(d_z * c, 1) + tl.load(d_gates + gate_at, real, 0.0)
        d_a = tl.where(open, d_g * g * (1.0 - g), 0.0)
        d_c = tl.where(open[:, None], g[:, None] * d_z, 0.0)
        d_p = tl.where(p > 0, d_c, bend * d_c)
        d_bend += tl.where(p > 0, 0.0, p * d_c)
        tl.store(d_lean + gate_at, d_a, real)
        tl.store(d_thoughts + kept_at, d_p, both)
        through = d_z + d_a[:, None] * s + times(d_p, matrix, precision)
        d_h = tl.where(open[:, None], through, d_h)
    tl.store(d_slots + here, d_h, both)
    tl.store(d_slope + here, d_bend, both)


class Rewrite(torch.autograd.Function):
    """Both kernels as one differentiable operation; all tensors have a runs axis in front."""

    @staticmethod
    def forward(keep: bool, *given: Tensor) -> tuple[Tensor, ...]:
        """``given`` as in `Rewriting`; ``keep`` what backward needs."""
        slots, told, drive, lean, seen, place, old, slope = (part.contiguous() for part in given)
        runs, batch, count, width = slots.shape
        inputs = told.shape[2]
        rows = slots.new_zeros(runs, inputs if keep else 0, batch, count, width)
        thoughts, gates, last = (
            torch.empty_like(rows),
            torch.zeros_like(lean),
            torch.empty_like(slots),
        )
        taken = (slots, told, drive, lean, seen.view(torch.int8), ends(seen), place, old, slope)
        made = (rows, thoughts, gates, last)
        launch(forward_kernel, (*taken, *made), (runs, batch, inputs, count, width), keep=keep)
        return last, gates, rows, thoughts

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, ...]) -> None:
        _, _, told, _, _, seen, _, old, slope = inputs
        _, gates, rows, thoughts = output
        ctx.save_for_backward(told, seen, old, slope, gates, rows, thoughts)
        ctx.mark_non_differentiable(rows, thoughts)

    @staticmethod
    def backward(ctx: Any, d_last: Tensor, d_gates: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
        saved = (part.contiguous() for part in (*ctx.saved_tensors, d_last, d_gates))
        told, seen, old, slope, gates, rows, thoughts, d_last, d_gates = saved
        runs, inputs, batch, count, width = rows.shape
        d_slots, d_bend = torch.empty_like(d_last), torch.empty_like(d_last)  # r b s d
        d_lean, d_thoughts = torch.zeros_like(gates), torch.zeros_like(thoughts)
        given = (told, gates, seen.view(torch.int8), ends(seen), old, slope, rows, thoughts)
        made = (d_slots, d_lean, d_thoughts, d_bend)
        sizes = (runs, batch, inputs, count, width)
        launch(backward_kernel, (*given, d_last, d_gates, *made), sizes)
        d_drive = d_thoughts.sum(3).transpose(1, 2)  # r b n d
        d_told = (d_lean.transpose(1, 2).unsqueeze(3) @ rows).squeeze(3).transpose(1, 2)
        d_place = d_thoughts.sum((1, 2))  # r s d
        # One product a sentence, then their sum: a single one would be too long for few cores.
        d_old = (d_thoughts.flatten(2, 3).mT @ rows.flatten(2, 3)).sum(1)  # r d d
        return None, d_slots, d_told, d_drive, d_lean, None, d_place, d_old, d_bend.sum((1, 2))

    @staticmethod
    def vmap(info: Any, axes: tuple[int | None, ...], keep: bool, *given: Tensor) -> Any:
        """Runs of runs are runs: one call for all of them."""
        size = info.batch_size
        own = [
            part.expand(size, *part.shape) if axis is None else part.movedim(axis, 0)
            for part, axis in zip(given, axes[1:])
        ]
        found = Rewrite.apply(keep, *(part.flatten(0, 1) for part in own))
        return tuple(part.unflatten(0, (size, -1)) for part in found), (0,) * 4


def ends(seen: Tensor) -> Tensor:
    """How many sentences there are up to the last real one: r b n → r b."""
    places = torch.arange(1, seen.shape[-1] + 1, device=seen.device, dtype=torch.int32)
    return (seen * places).amax(-1)


def launch(kernel: Any, tensors: tuple[Tensor, ...], sizes: tuple[int, ...], **fixed: Any) -> None:
    """``sizes``: r b n s d. Channels are padded to a power of two, which the kernel masks."""
    runs, batch, inputs, count, width = sizes
    if batch * inputs * count * width >= 2**31:
        raise ValueError(
            f"a batch of {batch} with {inputs} sentences, {count} slots and width {width} is too "
            "large for EntNet's kernel; lower train.batch, or set model.memory.fused = false"
        )
    grid = (triton.cdiv(batch * count, ROWS), runs)
    padded = max(16, triton.next_power_of_2(width))
    fixed |= {"height": ROWS, "padded": padded, "tiny": TINY, "precision": PRECISION}
    kernel[grid](*tensors, *sizes[1:], num_warps=WARPS, num_stages=1, maxnreg=REGISTERS, **fixed)
