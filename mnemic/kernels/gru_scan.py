"""A gated GRU over a sequence on a GPU: one kernel reads it all, one goes back through it.

A row never meets another one, so a program takes ``ROWS`` of them from the first step to the
last. The weights of a step do not fit into registers: products go through them ``DEPTH`` channels
at a time, the state's read back from where it was just stored. Forward keeps what backward
needs; the gradients of the weights are matmuls after the loop.

Shapes: r runs, b batch (rows), n steps, d width, g parts: r, z and h̃, or r and h̃.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

ROWS = 16  # a program; the least that a tensor core takes
COLUMNS, WARPS = 16, 4  # channels a warp; warps at least
DEPTH = 16  # channels that a product takes in at once
STAGES = 3  # how far ahead they are fetched
PRECISION = "tf32x3"  # three products of halves on tensor cores: as exact as float32
PIECES = 64  # of a sum over all steps of all rows, or few cores would work on it for long


@triton.jit
def sigmoid(x):  # type: ignore[no-untyped-def]
    return 1.0 / (1.0 + tl.exp(-x))


@triton.jit
def forward_kernel(  # type: ignore[no-untyped-def]
    given, gate, weight, bias, start,  # in
    path, kept,  # out
    batch, steps, width,
    rows: tl.constexpr, padded: tl.constexpr, depth: tl.constexpr, parts: tl.constexpr,
    backward: tl.constexpr, precision: tl.constexpr, keep: tl.constexpr,
):  # fmt: skip
    run, row = tl.program_id(1).to(tl.int64), tl.arange(0, rows)
    channel, some = tl.arange(0, padded), tl.arange(0, depth)
    real, inside = tl.program_id(0) * rows + row < batch, channel < width
    both = real[:, None] & inside[None, :]
    # The program's own rows, from where offsets are small; up to there they may overflow.
    top = run * batch + tl.program_id(0) * rows
    given, gate = given + top * steps * parts * width, gate + top * steps
    path, kept = path + top * (steps + 1) * width, kept + top * steps * (parts + 1) * width
    start += top * width
    # U transposed, of which some rows at a time: h Uᵀ
    matrix = weight + run * parts * width * width + channel[None, :] * width + some[:, None]
    lean = bias + run * parts * width + channel
    reset_bias = tl.load(lean, inside, 0.0)[None, :]
    old_bias = tl.load(lean + width, inside, 0.0)[None, :]  # with two parts not used
    new_bias = tl.load(lean + (parts - 1) * width, inside, 0.0)[None, :]
    first = row * (steps + 1) + (steps if backward else 0)
    h = tl.load(start + row[:, None] * width + channel[None, :], both, 0.0)
    tl.store(path + first[:, None] * width + channel[None, :], h, both)
    for count in range(steps):
        n = steps - 1 - count if backward else count
        here = row * steps + n
        before = row * (steps + 1) + (n + 1 if backward else n)
        after = row * (steps + 1) + (n if backward else n + 1)
        came = given + (here * parts)[:, None] * width + channel[None, :]
        g = tl.load(gate + here, real, 0.0)[:, None]
        r = tl.load(came, both, 0.0) + reset_bias
        c = tl.load(came + (parts - 1) * width, both, 0.0)
        if parts == 3:
            z = tl.load(came + width, both, 0.0) + old_bias
        p = tl.zeros([rows, padded], tl.float32) + new_bias
        tl.debug_barrier()  # the whole state is stored
        for low in range(0, width, depth):
            near = low + some < width
            left = path + before[:, None] * width + (low + some)[None, :]
            piece = tl.load(left, real[:, None] & near[None, :], 0.0)
            square = near[:, None] & inside[None, :]
            u = tl.load(matrix + low, square, 0.0)
            r = tl.dot(piece, u, r, input_precision=precision)
            if parts == 3:
                u = tl.load(matrix + width * width + low, square, 0.0)
                z = tl.dot(piece, u, z, input_precision=precision)
            u = tl.load(matrix + (parts - 1) * width * width + low, square, 0.0)
            p = tl.dot(piece, u, p, input_precision=precision)
        r = sigmoid(r)
        c = 2.0 * sigmoid(2.0 * (c + r * p)) - 1.0  # tanh
        new = c
        if parts == 3:
            z = sigmoid(z)
            new = c + z * (h - c)
        if keep:
            kept_at = kept + (here * (parts + 1))[:, None] * width + channel[None, :]
            tl.store(kept_at, r, both)
            if parts == 3:
                tl.store(kept_at + width, z, both)
            tl.store(kept_at + (parts - 1) * width, c, both)
            tl.store(kept_at + parts * width, p, both)
        moved = new - h  # from the nearer end, so that gates of 0 and 1 are exact
        h = tl.where(g < 0.5, h + g * moved, new - (1.0 - g) * moved)
        tl.store(path + after[:, None] * width + channel[None, :], h, both)


@triton.jit
def backward_kernel(  # type: ignore[no-untyped-def]
    gate, weight, path, kept, d_path,  # in
    d_given, d_back, d_gate, d_start,  # out
    batch, steps, width,
    rows: tl.constexpr, padded: tl.constexpr, depth: tl.constexpr, parts: tl.constexpr,
    backward: tl.constexpr, precision: tl.constexpr,
):  # fmt: skip
    run, row = tl.program_id(1).to(tl.int64), tl.arange(0, rows)
    channel, some = tl.arange(0, padded), tl.arange(0, depth)
    real, inside = tl.program_id(0) * rows + row < batch, channel < width
    both = real[:, None] & inside[None, :]
    # The program's own rows, from where offsets are small; up to there they may overflow.
    top = run * batch + tl.program_id(0) * rows
    path, kept = path + top * (steps + 1) * width, kept + top * steps * (parts + 1) * width
    d_path, d_given = d_path + top * (steps + 1) * width, d_given + top * steps * parts * width
    d_back, d_start = d_back + top * steps * width, d_start + top * width
    gate, d_gate = gate + top * steps, d_gate + top * steps
    matrix = weight + run * parts * width * width + some[:, None] * width + channel[None, :]
    last = row * (steps + 1) + (0 if backward else steps)
    d_h = tl.load(d_path + last[:, None] * width + channel[None, :], both, 0.0)
    for count in range(steps):
        n = count if backward else steps - 1 - count
        here = row * steps + n
        before = (row * (steps + 1) + (n + 1 if backward else n))[:, None] * width
        kept_at = kept + (here * (parts + 1))[:, None] * width + channel[None, :]
        given_at = d_given + (here * parts)[:, None] * width
        back_at = d_back + here[:, None] * width
        g = tl.load(gate + here, real, 0.0)[:, None]
        h = tl.load(path + before + channel[None, :], both, 0.0)
        r = tl.load(kept_at, both, 0.0)
        c = tl.load(kept_at + (parts - 1) * width, both, 0.0)
        p = tl.load(kept_at + parts * width, both, 0.0)
        d_new = g * d_h
        new, d_c, d_old = c, d_new, d_h - d_new
        if parts == 3:
            z = tl.load(kept_at + width, both, 0.0)
            new, d_c = c + z * (h - c), d_new - d_new * z
            d_old += d_new * z
            d_z = d_new * (h - c) * z * (1.0 - z)
            tl.store(given_at + width + channel[None, :], d_z, both)
        tl.store(d_gate + here, tl.sum(d_h * (new - h), 1), real)
        d_a = d_c * (1.0 - c * c)
        d_p = d_a * r
        d_r = d_p * p * (1.0 - r)
        tl.store(given_at + channel[None, :], d_r, both)
        tl.store(given_at + (parts - 1) * width + channel[None, :], d_a, both)
        tl.store(back_at + channel[None, :], d_p, both)
        d_old += tl.load(d_path + before + channel[None, :], both, 0.0)
        tl.debug_barrier()  # all of these are stored
        for low in range(0, width, depth):
            near = low + some < width
            seen, square = real[:, None] & near[None, :], near[:, None] & inside[None, :]
            piece = tl.load(given_at + (low + some)[None, :], seen, 0.0)
            u = tl.load(matrix + low * width, square, 0.0)
            d_old = tl.dot(piece, u, d_old, input_precision=precision)
            if parts == 3:
                piece = tl.load(given_at + width + (low + some)[None, :], seen, 0.0)
                u = tl.load(matrix + (width + low) * width, square, 0.0)
                d_old = tl.dot(piece, u, d_old, input_precision=precision)
            piece = tl.load(back_at + (low + some)[None, :], seen, 0.0)
            u = tl.load(matrix + ((parts - 1) * width + low) * width, square, 0.0)
            d_old = tl.dot(piece, u, d_old, input_precision=precision)
        d_h = d_old
    tl.store(d_start + row[:, None] * width + channel[None, :], d_h, both)


class Scan(torch.autograd.Function):
    """Both kernels as one differentiable operation; all tensors have a runs axis in front."""

    @staticmethod
    def forward(keep: bool, backward: bool, *taken: Tensor) -> tuple[Tensor, Tensor]:
        """``taken`` as in `scan` → the start and all states, r b n+1 d, from left to right.

        ``keep`` what backward needs: r, z, h̃ and U h + b of h̃.
        """
        given, gate, weight, bias, start = (part.contiguous() for part in taken)
        runs, batch, steps, parts, width = given.shape
        path = given.new_empty(runs, batch, steps + 1, width)
        kept = given.new_empty(runs, batch, steps if keep else 0, parts + 1, width)
        tensors = (given, gate, weight, bias, start, path, kept)
        launch(forward_kernel, tensors, given.shape, backward=backward, keep=keep)
        return path, kept

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        _, ctx.turned, _, gate, weight, _, start = inputs
        ctx.save_for_backward(gate, weight, start, *output)
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx: Any, d_path: Tensor, _: Any) -> tuple[Tensor | None, ...]:
        saved = (part.contiguous() for part in (*ctx.saved_tensors, d_path))
        gate, weight, start, path, kept, d_path = saved
        d_given = kept.new_empty(*kept.shape[:3], kept.shape[3] - 1, kept.shape[4])  # r b n g d
        d_back = kept.new_empty(*kept.shape[:3], kept.shape[4])  # r b n d
        d_gate, d_start = torch.empty_like(gate), torch.empty_like(start)
        tensors = (gate, weight, path, kept, d_path, d_given, d_back, d_gate, d_start)
        launch(backward_kernel, tensors, d_given.shape, backward=ctx.turned)
        before = (path[:, :, 1:] if ctx.turned else path[:, :, :-1]).flatten(1, 2)  # r (b n) d
        gates, new = d_given[:, :, :, :-1].flatten(1, 2).flatten(2), d_back.flatten(1, 2)
        d_weight = torch.cat([products(part, before) for part in (gates, new)], 1)
        d_bias = torch.cat([gates.sum(1), new.sum(1)], 1)
        return None, None, d_given, d_gate, d_weight, d_bias, d_start

    @staticmethod
    def vmap(
        info: Any, axes: tuple[int | None, ...], keep: bool, backward: bool, *taken: Tensor
    ) -> Any:
        """Runs of runs are runs: one call for all of them."""
        size = info.batch_size
        own = [
            part.expand(size, *part.shape) if axis is None else part.movedim(axis, 0)
            for part, axis in zip(taken, axes[2:])
        ]
        found = Scan.apply(keep, backward, *(part.flatten(0, 1) for part in own))
        return tuple(part.unflatten(0, (size, -1)) for part in found), (0, 0)


def products(left: Tensor, right: Tensor) -> Tensor:
    """``leftᵀ right`` over the many rows of both: r l c, r l d → r c d."""
    size, over = divmod(left.shape[1], PIECES)
    (first, last), (second, end) = (part.split((PIECES * size, over), 1) for part in (left, right))
    many = first.unflatten(1, (PIECES, size)).mT @ second.unflatten(1, (PIECES, size))
    return many.sum(1) + last.mT @ end


def launch(kernel: Any, tensors: tuple[Tensor, ...], sizes: tuple[int, ...], **fixed: Any) -> None:
    """``sizes``: r b n g d. Channels are padded to a power of two, which the kernel masks."""
    runs, batch, steps, parts, width = sizes
    padded = max(16, triton.next_power_of_2(width))
    fixed |= {"rows": ROWS, "padded": padded, "depth": DEPTH, "parts": parts}
    warps = max(WARPS, padded // COLUMNS)
    fixed |= {"precision": PRECISION, "num_warps": warps, "num_stages": STAGES}
    kernel[triton.cdiv(batch, ROWS), runs](*tensors, batch, steps, width, **fixed)
