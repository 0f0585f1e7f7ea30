"""A GRU over a sequence with a gate per step, as in DMN and DMN+.

``h ← g GRU(x, h) + (1 − g) h``. A mask is a gate of ones and zeros, and a gate of 0 leaves the
state unchanged. Without z the GRU returns h̃ itself, and the gate replaces z, as in DMN+.

Shapes: b batch, n steps, d width, g gates: r, z and h̃, or r and h̃.
"""

from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor, nn

MAX_KERNEL_WIDTH = 256  # channels that fit into the kernels
RELAY_WIDTHS = range(129, 513)  # channels for which ``relay_gru`` beats torch's kernel
PROGRAMS_PER_CORE = 4  # programs of ``relay_gru`` that surely run in parallel on a core


def scan_gru(
    projected_input: Tensor, gate: Tensor, weight: Tensor, bias: Tensor | None,
    initial_state: Tensor, *, backward: bool = False,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Run a gated GRU over a sequence; return all states and the last.

    ``projected_input`` (b n g d) is W x + b for each gate, ``gate`` b n; ``weight`` (gd d) and
    ``bias`` (gd) project the hidden state; ``initial_state`` is b d. The states are b n d, the last
    b d. With ``backward`` it runs from the last step to the first. On a GPU one kernel takes all
    steps.
    """
    fits_kernel = (
        projected_input.shape[1] > 0
        and projected_input.shape[-1] <= MAX_KERNEL_WIDTH
        and projected_input.dtype == torch.float32
    )
    scan = scan_with_kernel if fits_kernel and projected_input.is_cuda and has_triton() else scan_stepwise
    return scan(projected_input, gate, weight, bias, initial_state, backward=backward)


def scan_with_kernel(
    projected_input: Tensor, gate: Tensor, weight: Tensor, bias: Tensor | None,
    initial_state: Tensor, *, backward: bool = False,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Run ``scan_gru`` by a Triton kernel.

    It needs float32, at least one step and a width up to ``MAX_KERNEL_WIDTH``.
    """
    from mnemic.kernels.gru_scan import GRUScanFunction

    bias = weight.new_zeros(weight.shape[0]) if bias is None else bias
    tensors = (tensor.unsqueeze(0) for tensor in (projected_input, gate, weight, bias, initial_state))
    # b n+1 d, with the initial state
    states = GRUScanFunction.apply(torch.is_grad_enabled(), backward, *tensors)[0].squeeze(0)
    return (states[:, :-1], states[:, 0]) if backward else (states[:, 1:], states[:, -1])


def scan_stepwise(
    projected_input: Tensor, gate: Tensor, weight: Tensor, bias: Tensor | None,
    initial_state: Tensor, *, backward: bool = False,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Run ``scan_gru`` step by step in torch operations."""
    hidden, states = initial_state, []
    steps = list(zip(projected_input.unbind(1), gate.unsqueeze(-1).unbind(1)))  # b g d, b 1
    for step_input, step_gate in reversed(steps) if backward else steps:
        projected_hidden = nn.functional.linear(hidden, weight, bias).unflatten(-1, step_input.shape[-2:])
        hidden = hidden.lerp(gru_step(step_input, projected_hidden, hidden), step_gate)
        states.append(hidden)
    if backward:
        states.reverse()
    return torch.stack(states, 1) if states else initial_state.unsqueeze(1)[:, :0], hidden


def can_relay(x: Tensor) -> bool:
    """Check whether ``relay_gru`` applies: few rows on a GPU, no gradients.

    ``x`` is b n d.
    """
    batch, steps, width = x.shape
    if not x.is_cuda or torch.is_grad_enabled() or x.dtype != torch.float32:
        return False
    if not batch * steps or width not in RELAY_WIDTHS or not has_triton():
        return False
    from mnemic.kernels.gru_relay import num_programs

    cores = torch.cuda.get_device_properties(x.device).multi_processor_count
    return batch * num_programs(width) <= PROGRAMS_PER_CORE * cores


def relay_gru(
    projected_input: Tensor, gate: Tensor, weight: Tensor, bias: Tensor, initial_state: Tensor,
    *, backward: bool = False,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Run ``scan_gru`` by a kernel for few rows: all three gates, binary ``gate``, no gradients."""
    from mnemic.kernels.gru_relay import scan_relay as relay_kernel

    states = relay_kernel(projected_input, gate, weight, bias, initial_state, backward=backward)
    return states, states[:, 0 if backward else -1]


def gru_step(projected_input: Tensor, projected_hidden: Tensor, hidden: Tensor) -> Tensor:
    """Compute one GRU step from the projected input and hidden state.

    ``projected_input``, ``projected_hidden`` … g d, ``hidden`` … d → … d. Without z among the gates
    the result is h̃.
    """
    sizes = (projected_input.shape[-2] - 1, 1)
    # One split has one gradient, slices would have one each.
    input_gates, candidate = projected_input.split(sizes, -2)
    hidden_gates, hidden_candidate = projected_hidden.split(sizes, -2)
    reset, *update = (input_gates + hidden_gates).sigmoid().unbind(-2)
    candidate = (candidate.squeeze(-2) + reset * hidden_candidate.squeeze(-2)).tanh()
    return candidate.lerp(hidden, update[0]) if update else candidate


@cache
def has_triton() -> bool:
    """Check whether Triton is installed; torch for CUDA brings it along on Linux."""
    return find_spec("triton") is not None
