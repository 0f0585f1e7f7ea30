"""A gated GRU over a sequence on a GPU: one forward and one backward kernel.

Rows do not depend on each other, so a program takes ``BLOCK_ROWS`` of them from the first step to
the last. The weights of a step do not fit into registers: products go through them ``BLOCK_DEPTH``
channels at a time and read the state back from where it was just stored. The forward kernel saves
what the backward kernel needs; the gradients of the weights are matmuls after the loop.

Shapes: r runs, b batch (rows), n steps, d width, g gates: r, z and h̃, or r and h̃.
"""
# ruff: noqa: N803 (constants of a kernel are upper case, as usual in Triton)

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK_ROWS = 16  # rows per program; the minimum of a tensor core
CHANNELS_PER_WARP, MIN_WARPS = 16, 4
BLOCK_DEPTH = 16  # channels per step of a product
NUM_STAGES = 3  # of the pipeline that loads them
PRECISION = "tf32x3"  # three TF32 products on tensor cores: as exact as float32
NUM_CHUNKS = 64  # of a sum over all steps of all rows; a single sum would keep few cores busy


@triton.jit
def sigmoid(x):  # type: ignore[no-untyped-def]
    return 1.0 / (1.0 + tl.exp(-x))


@triton.jit
def forward_kernel(  # type: ignore[no-untyped-def]
    inputs_ptr, gate_ptr, weight_ptr, bias_ptr, start_ptr,  # in
    states_ptr, saved_ptr,  # out
    batch, num_steps, width,
    BLOCK_ROWS: tl.constexpr, BLOCK_WIDTH: tl.constexpr, BLOCK_DEPTH: tl.constexpr,
    NUM_GATES: tl.constexpr, BACKWARD: tl.constexpr, DOT_PRECISION: tl.constexpr,
    SAVE: tl.constexpr,
):  # fmt: skip
    """Scan some rows of one run step by step; grid: (blocks of rows, runs)."""
    run, rows = tl.program_id(1).to(tl.int64), tl.arange(0, BLOCK_ROWS)
    channels, block = tl.arange(0, BLOCK_WIDTH), tl.arange(0, BLOCK_DEPTH)
    row_mask, channel_mask = tl.program_id(0) * BLOCK_ROWS + rows < batch, channels < width
    mask = row_mask[:, None] & channel_mask[None, :]
    # Move every pointer to the program's first row: from there 32-bit offsets are enough.
    first_row = run * batch + tl.program_id(0) * BLOCK_ROWS
    inputs_ptr += first_row * num_steps * NUM_GATES * width
    gate_ptr += first_row * num_steps
    states_ptr += first_row * (num_steps + 1) * width
    saved_ptr += first_row * num_steps * (NUM_GATES + 1) * width
    start_ptr += first_row * width
    # U transposed, some of its rows at a time: h Uᵀ
    weight_ptrs = weight_ptr + run * NUM_GATES * width * width + channels[None, :] * width + block[:, None]
    bias_ptrs = bias_ptr + run * NUM_GATES * width + channels
    reset_bias = tl.load(bias_ptrs, channel_mask, 0.0)[None, :]
    update_bias = tl.load(bias_ptrs + width, channel_mask, 0.0)[None, :]  # not used with two gates
    new_bias = tl.load(bias_ptrs + (NUM_GATES - 1) * width, channel_mask, 0.0)[None, :]
    start_rows = rows * (num_steps + 1) + (num_steps if BACKWARD else 0)
    h = tl.load(start_ptr + rows[:, None] * width + channels[None, :], mask, 0.0)
    tl.store(states_ptr + start_rows[:, None] * width + channels[None, :], h, mask)
    for step in range(num_steps):
        n = num_steps - 1 - step if BACKWARD else step
        step_rows = rows * num_steps + n
        previous_rows = rows * (num_steps + 1) + (n + 1 if BACKWARD else n)
        next_rows = rows * (num_steps + 1) + (n if BACKWARD else n + 1)
        input_ptrs = inputs_ptr + (step_rows * NUM_GATES)[:, None] * width + channels[None, :]
        g = tl.load(gate_ptr + step_rows, row_mask, 0.0)[:, None]
        r = tl.load(input_ptrs, mask, 0.0) + reset_bias
        c = tl.load(input_ptrs + (NUM_GATES - 1) * width, mask, 0.0)
        if NUM_GATES == 3:
            z = tl.load(input_ptrs + width, mask, 0.0) + update_bias
        p = tl.zeros([BLOCK_ROWS, BLOCK_WIDTH], tl.float32) + new_bias
        tl.debug_barrier()  # the whole state is stored
        for low in range(0, width, BLOCK_DEPTH):
            block_mask = low + block < width
            state_ptrs = states_ptr + previous_rows[:, None] * width + (low + block)[None, :]
            state_block = tl.load(state_ptrs, row_mask[:, None] & block_mask[None, :], 0.0)
            weight_mask = block_mask[:, None] & channel_mask[None, :]
            weight_block = tl.load(weight_ptrs + low, weight_mask, 0.0)
            r = tl.dot(state_block, weight_block, r, input_precision=DOT_PRECISION)
            if NUM_GATES == 3:
                weight_block = tl.load(weight_ptrs + width * width + low, weight_mask, 0.0)
                z = tl.dot(state_block, weight_block, z, input_precision=DOT_PRECISION)
            weight_block = tl.load(weight_ptrs + (NUM_GATES - 1) * width * width + low, weight_mask, 0.0)
            p = tl.dot(state_block, weight_block, p, input_precision=DOT_PRECISION)
        r = sigmoid(r)
        c = 2.0 * sigmoid(2.0 * (c + r * p)) - 1.0  # tanh
        new = c
        if NUM_GATES == 3:
            z = sigmoid(z)
            new = c + z * (h - c)
        if SAVE:
            saved_ptrs = saved_ptr + (step_rows * (NUM_GATES + 1))[:, None] * width + channels[None, :]
            tl.store(saved_ptrs, r, mask)
            if NUM_GATES == 3:
                tl.store(saved_ptrs + width, z, mask)
            tl.store(saved_ptrs + (NUM_GATES - 1) * width, c, mask)
            tl.store(saved_ptrs + NUM_GATES * width, p, mask)
        change = new - h  # from the nearer end, so that gates of 0 and 1 are exact
        h = tl.where(g < 0.5, h + g * change, new - (1.0 - g) * change)
        tl.store(states_ptr + next_rows[:, None] * width + channels[None, :], h, mask)


@triton.jit
def backward_kernel(  # type: ignore[no-untyped-def]
    gate_ptr, weight_ptr, states_ptr, saved_ptr, d_states_ptr,  # in
    d_inputs_ptr, d_recurrent_ptr, d_gate_ptr, d_start_ptr,  # out
    batch, num_steps, width,
    BLOCK_ROWS: tl.constexpr, BLOCK_WIDTH: tl.constexpr, BLOCK_DEPTH: tl.constexpr,
    NUM_GATES: tl.constexpr, BACKWARD: tl.constexpr, DOT_PRECISION: tl.constexpr,
):  # fmt: skip
    """Propagate gradients back through the steps; grid: (blocks of rows, runs)."""
    run, rows = tl.program_id(1).to(tl.int64), tl.arange(0, BLOCK_ROWS)
    channels, block = tl.arange(0, BLOCK_WIDTH), tl.arange(0, BLOCK_DEPTH)
    row_mask, channel_mask = tl.program_id(0) * BLOCK_ROWS + rows < batch, channels < width
    mask = row_mask[:, None] & channel_mask[None, :]
    # Move every pointer to the program's first row: from there 32-bit offsets are enough.
    first_row = run * batch + tl.program_id(0) * BLOCK_ROWS
    states_ptr += first_row * (num_steps + 1) * width
    d_states_ptr += first_row * (num_steps + 1) * width
    saved_ptr += first_row * num_steps * (NUM_GATES + 1) * width
    d_inputs_ptr += first_row * num_steps * NUM_GATES * width
    d_recurrent_ptr += first_row * num_steps * width
    d_start_ptr += first_row * width
    gate_ptr += first_row * num_steps
    d_gate_ptr += first_row * num_steps
    weight_ptrs = weight_ptr + run * NUM_GATES * width * width + block[:, None] * width + channels[None, :]
    last_rows = rows * (num_steps + 1) + (0 if BACKWARD else num_steps)
    d_h = tl.load(d_states_ptr + last_rows[:, None] * width + channels[None, :], mask, 0.0)
    for step in range(num_steps):
        n = step if BACKWARD else num_steps - 1 - step
        step_rows = rows * num_steps + n
        previous_offsets = (rows * (num_steps + 1) + (n + 1 if BACKWARD else n))[:, None] * width
        saved_ptrs = saved_ptr + (step_rows * (NUM_GATES + 1))[:, None] * width + channels[None, :]
        d_input_ptrs = d_inputs_ptr + (step_rows * NUM_GATES)[:, None] * width
        d_recurrent_ptrs = d_recurrent_ptr + step_rows[:, None] * width
        g = tl.load(gate_ptr + step_rows, row_mask, 0.0)[:, None]
        h = tl.load(states_ptr + previous_offsets + channels[None, :], mask, 0.0)
        r = tl.load(saved_ptrs, mask, 0.0)
        c = tl.load(saved_ptrs + (NUM_GATES - 1) * width, mask, 0.0)
        p = tl.load(saved_ptrs + NUM_GATES * width, mask, 0.0)
        d_new = g * d_h
        new, d_c, d_old = c, d_new, d_h - d_new
        if NUM_GATES == 3:
            z = tl.load(saved_ptrs + width, mask, 0.0)
            new, d_c = c + z * (h - c), d_new - d_new * z
            d_old += d_new * z
            d_z = d_new * (h - c) * z * (1.0 - z)
            tl.store(d_input_ptrs + width + channels[None, :], d_z, mask)
        tl.store(d_gate_ptr + step_rows, tl.sum(d_h * (new - h), 1), row_mask)
        d_a = d_c * (1.0 - c * c)
        d_p = d_a * r
        d_r = d_p * p * (1.0 - r)
        tl.store(d_input_ptrs + channels[None, :], d_r, mask)
        tl.store(d_input_ptrs + (NUM_GATES - 1) * width + channels[None, :], d_a, mask)
        tl.store(d_recurrent_ptrs + channels[None, :], d_p, mask)
        d_old += tl.load(d_states_ptr + previous_offsets + channels[None, :], mask, 0.0)
        tl.debug_barrier()  # all of these are stored
        for low in range(0, width, BLOCK_DEPTH):
            block_mask = low + block < width
            row_block_mask = row_mask[:, None] & block_mask[None, :]
            weight_mask = block_mask[:, None] & channel_mask[None, :]
            d_block = tl.load(d_input_ptrs + (low + block)[None, :], row_block_mask, 0.0)
            weight_block = tl.load(weight_ptrs + low * width, weight_mask, 0.0)
            d_old = tl.dot(d_block, weight_block, d_old, input_precision=DOT_PRECISION)
            if NUM_GATES == 3:
                d_block = tl.load(d_input_ptrs + width + (low + block)[None, :], row_block_mask, 0.0)
                weight_block = tl.load(weight_ptrs + (width + low) * width, weight_mask, 0.0)
                d_old = tl.dot(d_block, weight_block, d_old, input_precision=DOT_PRECISION)
            d_block = tl.load(d_recurrent_ptrs + (low + block)[None, :], row_block_mask, 0.0)
            weight_block = tl.load(weight_ptrs + ((NUM_GATES - 1) * width + low) * width, weight_mask, 0.0)
            d_old = tl.dot(d_block, weight_block, d_old, input_precision=DOT_PRECISION)
        d_h = d_old
    tl.store(d_start_ptr + rows[:, None] * width + channels[None, :], d_h, mask)


class GRUScanFunction(torch.autograd.Function):
    """The gated GRU as an autograd function; every tensor has a leading axis of runs."""

    @staticmethod
    def forward(save: bool, backward: bool, *tensors: Tensor) -> tuple[Tensor, Tensor]:
        """Scan all steps; return the start and all states, r b n+1 d.

        ``tensors``: the arguments of `scan`; states are ordered from left to right.
        With ``save`` the second result holds what backward needs: r, z, h̃ and U h + b of h̃.
        """
        inputs, gate, weight, bias, start = (tensor.contiguous() for tensor in tensors)
        num_runs, batch, steps, num_gates, width = inputs.shape
        states = inputs.new_empty(num_runs, batch, steps + 1, width)
        saved = inputs.new_empty(num_runs, batch, steps if save else 0, num_gates + 1, width)
        kernel_tensors = (inputs, gate, weight, bias, start, states, saved)
        launch(forward_kernel, kernel_tensors, inputs.shape, BACKWARD=backward, SAVE=save)
        return states, saved

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        """Save the tensors that `backward` needs."""
        _, ctx.turned, _, gate, weight, _, start = inputs
        ctx.save_for_backward(gate, weight, start, *output)
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx: Any, d_states: Tensor, _: Any) -> tuple[Tensor | None, ...]:
        """Compute the gradient of every argument of `forward`."""
        contiguous = (tensor.contiguous() for tensor in (*ctx.saved_tensors, d_states))
        gate, weight, start, states, saved, d_states = contiguous
        d_inputs = saved.new_empty(*saved.shape[:3], saved.shape[3] - 1, saved.shape[4])  # r b n g d
        d_recurrent = saved.new_empty(*saved.shape[:3], saved.shape[4])  # r b n d
        d_gate, d_start = torch.empty_like(gate), torch.empty_like(start)
        tensors = (gate, weight, states, saved, d_states, d_inputs, d_recurrent, d_gate, d_start)
        launch(backward_kernel, tensors, d_inputs.shape, BACKWARD=ctx.turned)
        previous_states = (states[:, :, 1:] if ctx.turned else states[:, :, :-1]).flatten(1, 2)
        d_gates, d_new = d_inputs[:, :, :, :-1].flatten(1, 2).flatten(2), d_recurrent.flatten(1, 2)
        d_weight = torch.cat([multiply_in_chunks(tensor, previous_states) for tensor in (d_gates, d_new)], 1)
        d_bias = torch.cat([d_gates.sum(1), d_new.sum(1)], 1)
        return None, None, d_inputs, d_gate, d_weight, d_bias, d_start

    @staticmethod
    def vmap(info: Any, axes: tuple[int | None, ...], save: bool, backward: bool, *tensors: Tensor) -> Any:
        """Merge the mapped axis with the axis of runs, so that one call serves all."""
        size = info.batch_size
        batched = [
            tensor.expand(size, *tensor.shape) if axis is None else tensor.movedim(axis, 0)
            for tensor, axis in zip(tensors, axes[2:])
        ]
        outputs = GRUScanFunction.apply(save, backward, *(tensor.flatten(0, 1) for tensor in batched))
        return tuple(tensor.unflatten(0, (size, -1)) for tensor in outputs), (0, 0)


def multiply_in_chunks(first_matrix: Tensor, second_matrix: Tensor) -> Tensor:
    """Multiply ``first_matrixᵀ second_matrix`` over many rows: r l c, r l d → r c d."""
    size, remainder = divmod(first_matrix.shape[1], NUM_CHUNKS)
    (left_chunks, left_rest), (right_chunks, right_rest) = (
        matrix.split((NUM_CHUNKS * size, remainder), 1) for matrix in (first_matrix, second_matrix)
    )
    chunk_products = left_chunks.unflatten(1, (NUM_CHUNKS, size)).mT @ right_chunks.unflatten(1, (NUM_CHUNKS, size))
    return chunk_products.sum(1) + left_rest.mT @ right_rest


def launch(kernel: Any, tensors: tuple[Tensor, ...], sizes: tuple[int, ...], **constants: Any) -> None:
    """Launch a kernel over all rows and runs; ``sizes``: r b n g d.

    A block of channels is padded to a power of two; the kernel masks the rest.
    """
    num_runs, batch, steps, num_gates, width = sizes
    block_width = max(16, triton.next_power_of_2(width))
    kernel[triton.cdiv(batch, BLOCK_ROWS), num_runs](
        *tensors, batch, steps, width, BLOCK_ROWS=BLOCK_ROWS, BLOCK_WIDTH=block_width, BLOCK_DEPTH=BLOCK_DEPTH,
        NUM_GATES=num_gates, DOT_PRECISION=PRECISION, num_warps=max(MIN_WARPS, block_width // CHANNELS_PER_WARP),
        num_stages=NUM_STAGES, **constants,
    )  # fmt: skip
