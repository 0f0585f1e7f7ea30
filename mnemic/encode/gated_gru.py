"""A GRU over a sequence, each step behind a gate: what GRUs, DMN and DMN+ have in common.

``h ← g GRU(x, h) + (1 − g) h``. A mask is a gate of ones and zeros, and a shut gate leaves the
state as it was. Without z the GRU gives h̃ itself, and the gate stands in for z, as in DMN+.

Shapes: b batch, n steps, d width, g parts: r, z and h̃, or r and h̃.
"""

from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor, nn

WIDEST = 256  # channels that the kernels have room for
RELAYED = range(129, 513)  # channels for which ``relay`` is faster than torch's own kernel
AT_ONCE = 4  # programs of ``relay`` that surely run at once on a core


def scan(
    given: Tensor, gate: Tensor, weight: Tensor, bias: Tensor | None, start: Tensor,
    *, backward: bool = False,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The states after each step, b n d, and after the last one, b d: the first, if ``backward``.

    ``given`` (b n g d) is what comes in, ``gate`` b n; ``weight`` (gd d) and ``bias`` (gd) make
    what comes back of the state; ``start`` is b d. On a GPU one kernel takes all steps.
    """
    fits = given.shape[1] > 0 and given.shape[-1] <= WIDEST and given.dtype == torch.float32
    if fits and given.is_cuda and has_triton():
        return scan_at_once(given, gate, weight, bias, start, backward=backward)
    return scan_plainly(given, gate, weight, bias, start, backward=backward)


def scan_at_once(
    given: Tensor, gate: Tensor, weight: Tensor, bias: Tensor | None, start: Tensor,
    *, backward: bool = False,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """By the kernels, for float32, at least one step and a width up to ``WIDEST``."""
    from mnemic.kernels.gru_scan import Scan

    bias = weight.new_zeros(weight.shape[0]) if bias is None else bias
    parts = (part.unsqueeze(0) for part in (given, gate, weight, bias, start))
    path = Scan.apply(torch.is_grad_enabled(), backward, *parts)[0].squeeze(0)  # b n+1 d
    return (path[:, :-1], path[:, 0]) if backward else (path[:, 1:], path[:, -1])


def scan_plainly(
    given: Tensor, gate: Tensor, weight: Tensor, bias: Tensor | None, start: Tensor,
    *, backward: bool = False,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The same, step by step in torch's own operations."""
    hidden, states = start, []
    places = list(zip(given.unbind(1), gate.unsqueeze(-1).unbind(1)))  # b g d, b 1
    for came, open_to in reversed(places) if backward else places:
        back = nn.functional.linear(hidden, weight, bias).unflatten(-1, came.shape[-2:])
        hidden = hidden.lerp(gru_step(came, back, hidden), open_to)
        states.append(hidden)
    if backward:
        states.reverse()
    return torch.stack(states, 1) if states else start.unsqueeze(1)[:, :0], hidden


def few(given: Tensor) -> bool:
    """Whether ``relay`` is for this (b n d): few rows on a GPU, of which nothing is learnt."""
    batch, steps, width = given.shape
    if not given.is_cuda or torch.is_grad_enabled() or given.dtype != torch.float32:
        return False
    if not batch * steps or width not in RELAYED or not has_triton():
        return False
    from mnemic.kernels.gru_relay import programs

    cores = torch.cuda.get_device_properties(given.device).multi_processor_count
    return batch * programs(width) <= AT_ONCE * cores


def relay(
    given: Tensor, gate: Tensor, weight: Tensor, bias: Tensor, start: Tensor,
    *, backward: bool = False,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """As ``scan``, where rows are ``few``: all three parts, gates of 0 and 1, no gradients."""
    from mnemic.kernels.gru_relay import relay as by_kernel

    states = by_kernel(given, gate, weight, bias, start, backward=backward)
    return states, states[:, 0 if backward else -1]


def gru_step(given: Tensor, back: Tensor, hidden: Tensor) -> Tensor:
    """``given``, ``back`` … g d, ``hidden`` … d → … d; h̃ where z is not among the parts."""
    sizes = (given.shape[-2] - 1, 1)
    gates, new = given.split(sizes, -2)  # one split has one gradient, slices have one each
    gates_back, new_back = back.split(sizes, -2)
    reset, *keep = (gates + gates_back).sigmoid().unbind(-2)
    new = (new.squeeze(-2) + reset * new_back.squeeze(-2)).tanh()
    return new.lerp(hidden, keep[0]) if keep else new


@cache
def has_triton() -> bool:
    """Torch for CUDA brings it along, on Linux."""
    return find_spec("triton") is not None
