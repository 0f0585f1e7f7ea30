"""One layer of a recurrent network in one direction, by torch or by a loop.

It is torch's own single-layer network, which holds the weights. Two ways of running it give the
same numbers: its fused kernel, and the kind's own loop in operations for which `torch.func.vmap`
has rules. Padding may be anywhere: it leaves the state unchanged.

Shapes: b batch, n steps, d width, c channels of one direction, g gates.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

SATURATING_BIAS = 1e4  # σ(±1e4) is exactly 1 and 0, in bfloat16 too

# State of one layer and direction, b c each; the first is the hidden state.
LayerState = tuple[Tensor, ...]
# Projected input and projected hidden state (b g c), old state → new state.
StepFunction = Callable[[Tensor, Tensor, LayerState], LayerState]
# Arguments as of ``scan_gru``; returns the outputs (b n c) and each part of the last state (b c).
LoopFunction = Callable[..., tuple[Tensor, ...]]


def run_fused(
    network: nn.RNNBase, x: Tensor, mask: Tensor, state: LayerState, backward: bool
) -> tuple[Tensor, LayerState]:
    """Run one layer in one direction through torch's kernel.

    b n d → b n c and the state after it. The real steps are moved to the front, in reading order,
    so that padding is read last, when it can no longer change anything, and its outputs are
    ignored. Steps that are padding in every row are skipped, unless a CUDA graph is captured or
    there are no values: these cannot depend on their number.
    """
    positions = torch.arange(mask.shape[1], device=mask.device)
    rows = torch.arange(mask.shape[0], device=mask.device)[:, None]  # b 1
    order = (-positions if backward else positions).where(mask, mask.shape[1]).argsort(-1)  # b n
    lengths = mask.sum(-1, keepdim=True)
    is_capturing = mask.is_cuda and torch.cuda.is_current_stream_capturing()
    is_fixed = is_capturing or mask.is_meta or not len(mask)
    num_steps = mask.shape[1] if is_fixed else max(int(lengths.max()), 1)
    x = x[rows, order[:, :num_steps]]
    initial_state = tuple(tensor.unsqueeze(0).contiguous() for tensor in state)
    if len(state) == 1:  # the output is the state, so nothing needs packing
        outputs, cells = network(x, *initial_state)[0], []
    else:
        run = run_lstm_guarded if x.device.type in ("cpu", "meta") else run_lstm_packed
        outputs, cell = run(network, x, lengths, initial_state)
        cells = [cell.squeeze(0)]
    last = outputs[rows[:, 0], (lengths[:, 0] - 1).clamp(min=0)]  # b c, after the last real step
    outputs = nn.functional.pad(outputs, (0, 0, 0, mask.shape[1] - num_steps))
    is_empty = ~mask.any(-1, keepdim=True)  # b 1
    end = tuple(torch.where(is_empty, old, new) for old, new in zip(state, [last, *cells]))
    return outputs[rows, order.argsort(-1)], end


def run_lstm_guarded(
    network: nn.RNNBase, x: Tensor, lengths: Tensor, initial_state: LayerState
) -> tuple[Tensor, Tensor]:
    """Run an LSTM with one more input, 1 at padding, that protects the cell.

    It shuts the input gate and opens the forget gate. The cell is no output, so it cannot be read
    at the last real step. Packing the rows does it, but makes training on a CPU up to three times
    slower.
    """
    weight, *other_weights = network.all_weights[0]
    padding = torch.arange(x.shape[1], device=x.device) >= lengths  # b n
    input_bias, forget_bias, zero_bias = (
        weight.new_full((weight.shape[0] // 4, 1), v) for v in (-SATURATING_BIAS, SATURATING_BIAS, 0)
    )
    guarded_weight = torch.cat([weight, torch.cat([input_bias, forget_bias, zero_bias, zero_bias])], 1)  # gc d+1
    x = torch.cat([x, padding.unsqueeze(-1).to(x.dtype)], -1)  # b n d+1
    outputs, _, cell = torch.lstm(
        x, initial_state, [guarded_weight, *other_weights], True, 1, 0.0, network.training, False, True
    )
    return outputs, cell


def run_lstm_packed(
    network: nn.RNNBase, x: Tensor, lengths: Tensor, initial_state: LayerState
) -> tuple[Tensor, Tensor]:
    """Run an LSTM on rows packed by length.

    The lengths must be known on the CPU, so a GPU synchronizes.
    """
    sizes = lengths.squeeze(-1).clamp(min=1).cpu()
    packed = pack_padded_sequence(x, sizes, batch_first=True, enforce_sorted=False)
    outputs, (_, cell) = network(packed, initial_state)
    return pad_packed_sequence(outputs, batch_first=True, total_length=x.shape[1])[0], cell


def run_loop(
    network: nn.RNNBase, loop: LoopFunction, x: Tensor, mask: Tensor, state: LayerState, backward: bool
) -> tuple[Tensor, LayerState]:
    """Run one layer by the kind's own loop, with the same result as ``run_fused``."""
    weight_in, weight_hidden, bias_in, bias_hidden = network.all_weights[0]
    projected_input = nn.functional.linear(x, weight_in, bias_in).unflatten(-1, (-1, state[0].shape[-1]))  # b n g c
    gate = mask.to(projected_input.dtype)  # open at real steps, shut at padding
    outputs, *end = loop(projected_input, gate, weight_hidden, bias_hidden, *state, backward=backward)
    return outputs, tuple(end)


def loop_steps(
    step: StepFunction, projected_input: Tensor, gate: Tensor, weight: Tensor, bias: Tensor,
    *state: Tensor, backward: bool = False,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Run ``step`` over a sequence in plain matmuls; a gate is 1 or 0."""
    outputs = []
    steps = list(zip(projected_input.unbind(1), gate.bool().unsqueeze(-1).unbind(1)))  # b g c, b 1
    for step_input, is_real in reversed(steps) if backward else steps:
        projected_hidden = nn.functional.linear(state[0], weight, bias)
        new = step(step_input, projected_hidden.unflatten(-1, step_input.shape[-2:]), state)
        state = tuple(torch.where(is_real, after, before) for after, before in zip(new, state))
        outputs.append(state[0])
    if backward:
        outputs.reverse()
    return torch.stack(outputs, 1), *state
