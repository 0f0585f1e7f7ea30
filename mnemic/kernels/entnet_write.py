"""EntNet's write on a GPU: one forward and one backward kernel per story.

Rows do not depend on each other, so a program holds ``BLOCK_ROWS`` of them in registers from the
first sentence to the last. The forward kernel saves what the backward kernel needs: the slots and
the pre-activation before every sentence. Gradients that are sums over sentences are matmuls after
the loop. A program stops at the last sentence of its own examples, so short stories do not wait
for long ones in the batch; the outputs beyond that sentence are zero.

Shapes: r runs, b batch, n inputs, s slots, d width; a row is one slot of one example.
"""
# ruff: noqa: N803 (constants of a kernel are upper case, as usual in Triton)

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from mnemic.kernels import MIN_SQUARED_NORM

BLOCK_ROWS = 16  # rows per program; the minimum of a tensor core
NUM_WARPS = 4
MAX_REGISTERS: int | None = None  # per thread; fewer let more programs run on a core
PRECISION = "bf16x3"  # three bfloat16 products: 16 bits of mantissa; "bf16", one: 8 bits


@triton.jit
def multiply(rows, weight, DOT_PRECISION: tl.constexpr):  # type: ignore[no-untyped-def]
    """Compute ``rows @ weight`` on tensor cores."""
    if DOT_PRECISION == "bf16":
        product = tl.dot(rows.to(tl.bfloat16), weight.to(tl.bfloat16))
    else:
        product = tl.dot(rows, weight, input_precision=DOT_PRECISION)
    return product


@triton.jit
def forward_kernel(  # type: ignore[no-untyped-def]
    slots_ptr, sentences_ptr, sentence_drive_ptr, gate_logits_ptr, mask_ptr, num_steps_ptr,  # in
    key_drive_ptr, weight_ptr, slope_ptr,  # in
    saved_slots_ptr, saved_candidates_ptr, gates_ptr, output_ptr,  # out
    batch, num_inputs, num_slots, width,
    BLOCK_ROWS: tl.constexpr, BLOCK_WIDTH: tl.constexpr, MIN_NORM: tl.constexpr,
    DOT_PRECISION: tl.constexpr, SAVE: tl.constexpr,
):  # fmt: skip
    """Rewrite some rows of one run sentence by sentence; grid: (blocks of rows, runs)."""
    rows = tl.program_id(0) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)  # of this run: b s
    channels = tl.arange(0, BLOCK_WIDTH)
    row_mask, channel_mask = rows < batch * num_slots, channels < width
    mask = row_mask[:, None] & channel_mask[None, :]
    example, slot = rows // num_slots, rows % num_slots
    # Offsets of a run may need 64 bits; offsets inside a run need 32 (``launch`` checks that).
    run = tl.program_id(1).to(tl.int64)
    run_offset, story_offset = run * batch * num_slots * width, run * batch * num_inputs
    slots_ptr += run_offset
    output_ptr += run_offset
    saved_slots_ptr += run_offset * num_inputs
    saved_candidates_ptr += run_offset * num_inputs
    sentences_ptr += story_offset * width
    sentence_drive_ptr += story_offset * width
    gate_logits_ptr += story_offset * num_slots
    gates_ptr += story_offset * num_slots
    mask_ptr += story_offset
    num_steps_ptr += run * batch
    offsets = rows[:, None] * width + channels[None, :]
    columns = tl.arange(0, BLOCK_WIDTH)
    weight_mask = channel_mask[:, None] & (columns < width)[None, :]
    # U transposed: h Uᵀ
    weight = tl.load(weight_ptr + run * width * width + columns[None, :] * width + channels[:, None], weight_mask, 0.0)
    h = tl.load(slots_ptr + offsets, mask, 0.0)
    key_offsets = slot[:, None] * width + channels[None, :]
    key_drive = tl.load(key_drive_ptr + run * num_slots * width + key_offsets, mask, 0.0)
    slope = tl.load(slope_ptr + run * width + channels, channel_mask, 0.0)[None, :]
    for n in range(tl.max(tl.load(num_steps_ptr + example, row_mask, 0))):
        sentence_offsets = (example * num_inputs + n)[:, None] * width + channels[None, :]
        s = tl.load(sentences_ptr + sentence_offsets, mask, 0.0)
        p = key_drive + tl.load(sentence_drive_ptr + sentence_offsets, mask, 0.0)
        gate_offsets = (example * num_inputs + n) * num_slots + slot
        a = tl.load(gate_logits_ptr + gate_offsets, row_mask, 0.0) + tl.sum(s * h, 1)
        is_real = tl.load(mask_ptr + example * num_inputs + n, row_mask, 0) != 0
        p += multiply(h, weight, DOT_PRECISION)
        g = 1.0 / (1.0 + tl.exp(-a))
        z = h + g[:, None] * tl.where(p > 0, p, slope * p)
        squared_norm = tl.maximum(tl.sum(z * z, 1), MIN_NORM)
        if SAVE:
            saved_offsets = n * batch * num_slots * width + offsets
            tl.store(saved_slots_ptr + saved_offsets, h, mask)
            tl.store(saved_candidates_ptr + saved_offsets, p, mask)
        tl.store(gates_ptr + gate_offsets, tl.where(is_real, g, 0.0), row_mask)
        h = tl.where(is_real[:, None], z / tl.sqrt(squared_norm)[:, None], h)
    tl.store(output_ptr + offsets, h, mask)


@triton.jit
def backward_kernel(  # type: ignore[no-untyped-def]
    sentences_ptr, gates_ptr, mask_ptr, num_steps_ptr, weight_ptr, slope_ptr,  # in
    saved_slots_ptr, saved_candidates_ptr, d_output_ptr, d_gates_ptr,  # in
    d_slots_ptr, d_gate_logits_ptr, d_candidates_ptr, d_slope_ptr,  # out
    batch, num_inputs, num_slots, width,
    BLOCK_ROWS: tl.constexpr, BLOCK_WIDTH: tl.constexpr, MIN_NORM: tl.constexpr,
    DOT_PRECISION: tl.constexpr,
):  # fmt: skip
    """Propagate gradients from the last sentence to the first; grid: (blocks of rows, runs)."""
    rows = tl.program_id(0) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    channels = tl.arange(0, BLOCK_WIDTH)
    row_mask, channel_mask = rows < batch * num_slots, channels < width
    mask = row_mask[:, None] & channel_mask[None, :]
    example, slot = rows // num_slots, rows % num_slots
    run = tl.program_id(1).to(tl.int64)
    run_offset, story_offset = run * batch * num_slots * width, run * batch * num_inputs
    saved_slots_ptr += run_offset * num_inputs
    saved_candidates_ptr += run_offset * num_inputs
    d_candidates_ptr += run_offset * num_inputs
    d_output_ptr += run_offset
    d_slots_ptr += run_offset
    d_slope_ptr += run_offset
    sentences_ptr += story_offset * width
    mask_ptr += story_offset
    num_steps_ptr += run * batch
    gates_ptr += story_offset * num_slots
    d_gates_ptr += story_offset * num_slots
    d_gate_logits_ptr += story_offset * num_slots
    offsets = rows[:, None] * width + channels[None, :]
    columns = tl.arange(0, BLOCK_WIDTH)
    weight_mask = channel_mask[:, None] & (columns < width)[None, :]
    weight = tl.load(weight_ptr + run * width * width + channels[:, None] * width + columns[None, :], weight_mask, 0.0)
    slope = tl.load(slope_ptr + run * width + channels, channel_mask, 0.0)[None, :]
    d_h = tl.load(d_output_ptr + offsets, mask, 0.0)
    d_slope = tl.zeros([BLOCK_ROWS, BLOCK_WIDTH], tl.float32)
    num_steps = tl.max(tl.load(num_steps_ptr + example, row_mask, 0))
    for step in range(num_steps):
        n = num_steps - 1 - step
        saved_offsets = n * batch * num_slots * width + offsets
        h = tl.load(saved_slots_ptr + saved_offsets, mask, 0.0)
        p = tl.load(saved_candidates_ptr + saved_offsets, mask, 0.0)
        s = tl.load(sentences_ptr + (example * num_inputs + n)[:, None] * width + channels[None, :], mask, 0.0)
        gate_offsets = (example * num_inputs + n) * num_slots + slot
        g = tl.load(gates_ptr + gate_offsets, row_mask, 0.0)
        is_real = tl.load(mask_ptr + example * num_inputs + n, row_mask, 0) != 0
        c = tl.where(p > 0, p, slope * p)
        z = h + g[:, None] * c
        squared_norm = tl.sum(z * z, 1)
        inverse_norm = (1.0 / tl.sqrt(tl.maximum(squared_norm, MIN_NORM)))[:, None]
        projection = tl.sum(z * d_h, 1)[:, None] * inverse_norm * inverse_norm
        d_z = (d_h - tl.where(squared_norm > MIN_NORM, 1.0, 0.0)[:, None] * projection * z) * inverse_norm
        d_g = tl.sum(d_z * c, 1) + tl.load(d_gates_ptr + gate_offsets, row_mask, 0.0)
        d_a = tl.where(is_real, d_g * g * (1.0 - g), 0.0)
        d_c = tl.where(is_real[:, None], g[:, None] * d_z, 0.0)
        d_p = tl.where(p > 0, d_c, slope * d_c)
        d_slope += tl.where(p > 0, 0.0, p * d_c)
        tl.store(d_gate_logits_ptr + gate_offsets, d_a, row_mask)
        tl.store(d_candidates_ptr + saved_offsets, d_p, mask)
        d_previous = d_z + d_a[:, None] * s + multiply(d_p, weight, DOT_PRECISION)
        d_h = tl.where(is_real[:, None], d_previous, d_h)
    tl.store(d_slots_ptr + offsets, d_h, mask)
    tl.store(d_slope_ptr + offsets, d_slope, mask)


class EntNetWriteFunction(torch.autograd.Function):
    """EntNet's write as an autograd function; every tensor has a leading axis of runs."""

    @staticmethod
    def forward(save: bool, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Write all sentences; return slots, gates and, with ``save``, what backward needs.

        ``tensors``: the fields of `EntNetWrite`, in their order.
        """
        slots, sentences, sentence_drive, gate_logits, mask, key_drive, weight, slope = (
            tensor.contiguous() for tensor in tensors
        )
        num_runs, batch, num_slots, width = slots.shape
        num_inputs = sentences.shape[2]
        saved_slots = slots.new_zeros(num_runs, num_inputs if save else 0, batch, num_slots, width)
        saved_candidates, gates, final_slots = (
            torch.empty_like(saved_slots),
            torch.zeros_like(gate_logits),
            torch.empty_like(slots),
        )
        kernel_inputs = (
            slots, sentences, sentence_drive, gate_logits, mask.view(torch.int8), count_steps(mask),
            key_drive, weight, slope,
        )  # fmt: skip
        outputs = (saved_slots, saved_candidates, gates, final_slots)
        launch(forward_kernel, (*kernel_inputs, *outputs), (num_runs, batch, num_inputs, num_slots, width), SAVE=save)
        return final_slots, gates, saved_slots, saved_candidates

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, ...]) -> None:
        """Save the tensors that `backward` needs."""
        _, _, sentences, _, _, mask, _, weight, slope = inputs
        _, gates, saved_slots, saved_candidates = output
        ctx.save_for_backward(sentences, mask, weight, slope, gates, saved_slots, saved_candidates)
        ctx.mark_non_differentiable(saved_slots, saved_candidates)

    @staticmethod
    def backward(ctx: Any, d_final_slots: Tensor, d_gates: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
        """Compute the gradient of every argument of `forward`."""
        saved = (tensor.contiguous() for tensor in (*ctx.saved_tensors, d_final_slots, d_gates))
        (sentences, mask, weight, slope, gates, saved_slots, saved_candidates, d_final_slots, d_gates) = saved
        num_runs, num_inputs, batch, num_slots, width = saved_slots.shape
        d_slots, d_slope = (torch.empty_like(d_final_slots), torch.empty_like(d_final_slots))  # r b s d
        d_gate_logits, d_candidates = torch.zeros_like(gates), torch.zeros_like(saved_candidates)
        kernel_inputs = (
            sentences, gates, mask.view(torch.int8), count_steps(mask), weight, slope, saved_slots,
            saved_candidates,
        )  # fmt: skip
        outputs = (d_slots, d_gate_logits, d_candidates, d_slope)
        sizes = (num_runs, batch, num_inputs, num_slots, width)
        launch(backward_kernel, (*kernel_inputs, d_final_slots, d_gates, *outputs), sizes)
        d_sentence_drive = d_candidates.sum(3).transpose(1, 2)  # r b n d
        d_sentences = (d_gate_logits.transpose(1, 2).unsqueeze(3) @ saved_slots).squeeze(3).transpose(1, 2)
        d_key_drive = d_candidates.sum((1, 2))  # r s d
        # One product per sentence, then their sum: a single product would keep few cores busy.
        d_weight = (d_candidates.flatten(2, 3).mT @ saved_slots.flatten(2, 3)).sum(1)  # r d d
        return (
            None, d_slots, d_sentences, d_sentence_drive, d_gate_logits, None, d_key_drive,
            d_weight, d_slope.sum((1, 2)),
        )  # fmt: skip

    @staticmethod
    def vmap(info: Any, axes: tuple[int | None, ...], save: bool, *tensors: Tensor) -> Any:
        """Merge the mapped axis with the axis of runs, so that one call serves all."""
        size = info.batch_size
        batched = [
            tensor.expand(size, *tensor.shape) if axis is None else tensor.movedim(axis, 0)
            for tensor, axis in zip(tensors, axes[1:])
        ]
        outputs = EntNetWriteFunction.apply(save, *(tensor.flatten(0, 1) for tensor in batched))
        return tuple(tensor.unflatten(0, (size, -1)) for tensor in outputs), (0,) * 4


def count_steps(mask: Tensor) -> Tensor:
    """Count the sentences up to the last real one: ``mask`` r b n → r b."""
    positions = torch.arange(1, mask.shape[-1] + 1, device=mask.device, dtype=torch.int32)
    return (mask * positions).amax(-1)


def launch(kernel: Any, tensors: tuple[Tensor, ...], sizes: tuple[int, ...], **constants: Any) -> None:
    """Launch a kernel over all rows and runs; ``sizes``: r b n s d.

    A block of channels is padded to a power of two; the kernel masks the rest.
    """
    num_runs, batch, num_inputs, num_slots, width = sizes
    if batch * num_inputs * num_slots * width >= 2**31:
        raise ValueError(
            f"a batch of {batch} with {num_inputs} sentences, {num_slots} slots and width {width} "
            "is too large for EntNet's kernel; lower train.batch, or set model.memory.fused = false"
        )
    grid = (triton.cdiv(batch * num_slots, BLOCK_ROWS), num_runs)
    block_width = max(16, triton.next_power_of_2(width))
    kernel[grid](
        *tensors, *sizes[1:], BLOCK_ROWS=BLOCK_ROWS, BLOCK_WIDTH=block_width, MIN_NORM=MIN_SQUARED_NORM,
        DOT_PRECISION=PRECISION, num_warps=NUM_WARPS, num_stages=1, maxnreg=MAX_REGISTERS, **constants,
    )  # fmt: skip
