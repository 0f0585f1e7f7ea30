"""A GRU over few sequences on a GPU, its channels split over many programs.

One step of one sequence is too little work for a GPU: launching it takes longer than computing it.
So every program runs from the first step to the last, with the weights of a few channels in its
registers: it reads the whole state and stores its own channels of the next one. There is no
barrier: a state that is not stored yet holds ``NOT_STORED``, a value that arithmetic never gives,
and is loaded again. All programs must therefore run at the same time: they are launched as a
cooperative grid, and ``encode.gated_gru.can_relay`` checks that all of them fit on the GPU.

Shapes: b batch (rows), n steps, d width, g gates: r, z and h̃.
"""
# ruff: noqa: N803 (constants of a kernel are upper case, as usual in Triton)

import torch
import triton
import triton.language as tl
from torch import Tensor

from mnemic.kernels.gru_scan import sigmoid

NOT_STORED = 0x7FEDCBA9  # a NaN; arithmetic gives another NaN
BLOCK_COLUMNS = 4  # channels per program
CHANNELS_PER_WARP = 256  # channels of the state that a warp reads


@triton.jit
def load_step(inputs_ptr, gate_ptr, n, columns, column_mask, width):  # type: ignore[no-untyped-def]
    """Load the gate of step ``n`` and its inputs to r, z and h̃."""
    input_ptrs = inputs_ptr + n.to(tl.int64) * 3 * width + columns
    r, z = tl.load(input_ptrs, column_mask, 0.0), tl.load(input_ptrs + width, column_mask, 0.0)
    return tl.load(gate_ptr + n), r, z, tl.load(input_ptrs + 2 * width, column_mask, 0.0)


@triton.jit
def relay_kernel(  # type: ignore[no-untyped-def]
    inputs_ptr, gate_ptr, weight_ptr, bias_ptr, start_ptr,  # in
    states_ptr,  # out, float32 stored as int32
    num_steps, width,
    BLOCK_COLUMNS: tl.constexpr, BLOCK_WIDTH: tl.constexpr, BACKWARD: tl.constexpr,
    NOT_STORED: tl.constexpr,
):  # fmt: skip
    """Compute some channels of one sequence; grid: (blocks of columns, sequences)."""
    sequence = tl.program_id(1).to(tl.int64)
    columns, channels = (tl.program_id(0) * BLOCK_COLUMNS + tl.arange(0, BLOCK_COLUMNS), tl.arange(0, BLOCK_WIDTH))
    column_mask, channel_mask = columns < width, channels < width
    inputs_ptr, gate_ptr = (inputs_ptr + sequence * num_steps * 3 * width, gate_ptr + sequence * num_steps)
    states_ptr, start_ptr = states_ptr + sequence * num_steps * width, start_ptr + sequence * width
    weight_mask = column_mask[:, None] & channel_mask[None, :]
    weight_ptrs, bias_ptrs = (weight_ptr + columns[:, None] * width + channels[None, :], bias_ptr + columns)
    reset_weight, reset_bias = (tl.load(weight_ptrs, weight_mask, 0.0), tl.load(bias_ptrs, column_mask, 0.0))
    weight_ptrs, bias_ptrs = weight_ptrs + width * width, bias_ptrs + width
    update_weight, update_bias = (tl.load(weight_ptrs, weight_mask, 0.0), tl.load(bias_ptrs, column_mask, 0.0))
    weight_ptrs, bias_ptrs = weight_ptrs + width * width, bias_ptrs + width
    new_weight, new_bias = (tl.load(weight_ptrs, weight_mask, 0.0), tl.load(bias_ptrs, column_mask, 0.0))
    h = tl.load(start_ptr + columns, column_mask, 0.0)
    h = tl.where(h == h, h, float("nan"))  # every NaN becomes one that is not ``NOT_STORED``
    state = tl.load(start_ptr + channels, channel_mask, 0.0)
    first_step = num_steps * 0 + (num_steps - 1 if BACKWARD else 0)
    g, r, z, c = load_step(inputs_ptr, gate_ptr, first_step, columns, column_mask, width)
    for step in range(num_steps):
        n = num_steps - 1 - step if BACKWARD else step
        r = sigmoid(r + reset_bias + tl.sum(reset_weight * state[None, :], 1))
        z = sigmoid(z + update_bias + tl.sum(update_weight * state[None, :], 1))
        p = new_bias + tl.sum(new_weight * state[None, :], 1)
        c = 2.0 * sigmoid(2.0 * (c + r * p)) - 1.0  # tanh
        h = tl.where(g != 0.0, c + z * (h - c), h)
        state_ptr = states_ptr + n.to(tl.int64) * width  # type: ignore[union-attr]
        tl.store(state_ptr + columns, h.to(tl.int32, bitcast=True), column_mask)
        if step + 1 < num_steps:  # load the next step's inputs while waiting for the other programs
            g, r, z, c = load_step(inputs_ptr, gate_ptr, n - 1 if BACKWARD else n + 1, columns, column_mask, width)
        bits = tl.load(state_ptr + channels, channel_mask, 0, volatile=True)
        while tl.max((bits == NOT_STORED).to(tl.int32), 0) > 0:
            bits = tl.load(state_ptr + channels, channel_mask, 0, volatile=True)
        state = bits.to(tl.float32, bitcast=True)


def num_programs(width: int) -> int:
    """Count the programs that share one sequence."""
    return triton.cdiv(width, BLOCK_COLUMNS)


def scan_relay(
    inputs: Tensor, gate: Tensor, weight: Tensor, bias: Tensor, start: Tensor, *, backward: bool
) -> Tensor:  # fmt: skip
    """Compute the GRU's state after each step, b n d.

    ``inputs`` b n g d are the projected inputs, ``gate`` b n is 0 or 1, ``start`` b d.
    """
    batch, steps, _, width = inputs.shape
    tensors = [tensor.contiguous() for tensor in (inputs, gate, weight, bias, start)]
    states = torch.full((batch, steps, width), NOT_STORED, dtype=torch.int32, device=inputs.device)
    block_width = triton.next_power_of_2(width)
    relay_kernel[num_programs(width), batch](
        *tensors, states, steps, width, BLOCK_COLUMNS=BLOCK_COLUMNS, BLOCK_WIDTH=block_width,
        BACKWARD=backward, NOT_STORED=NOT_STORED,
        num_warps=max(1, block_width // CHANNELS_PER_WARP), launch_cooperative_grid=True,
    )  # fmt: skip
    return states.view(torch.float32)
