"""Check the GRU scan's kernels against eager code on a GPU; count launches and time.

    python benchmarks/gru_scan_kernel.py [--runs 10] [--rows 100] [--steps 130] [--width 80]
        [--repeat 20]

Forward and backward are recorded as a CUDA graph, as in training. DMN+ has the default sizes; the
WMN reads its sentences with ``--rows 31744 --steps 10 --width 30``. ``--parts 2`` is DMN+'s GRU
over facts. The last table tries other sizes of the kernels; the best values belong in the kernels'
constants.
"""

import argparse
from collections.abc import Callable, Sequence
from functools import partial

import torch
from cuda_graph_timing import count_launches, relative_difference, time_replay
from torch import Tensor
from torch.func import vmap

from mnemic.encode.gated_gru import scan_stepwise, scan_with_kernel

try:
    from mnemic.kernels import gru_scan as kernel
except ImportError as error:
    raise SystemExit(f"this needs a GPU, and triton: {error}") from None

ScanFunction = Callable[..., tuple[Tensor, Tensor]]
CONFIGURATIONS: list[dict[str, int | str]] = [  # of the kernels; the first is the default
    {},
    {"NUM_STAGES": 1},
    {"NUM_STAGES": 2},
    {"NUM_STAGES": 4},
    {"NUM_STAGES": 5},
    {"BLOCK_DEPTH": 32},
    {"BLOCK_DEPTH": 32, "NUM_STAGES": 2},
    {"CHANNELS_PER_WARP": 8, "MIN_WARPS": 8},
    {"CHANNELS_PER_WARP": 32},
    {"CHANNELS_PER_WARP": 32, "MIN_WARPS": 2},
    {"BLOCK_ROWS": 32},
    {"BLOCK_ROWS": 32, "CHANNELS_PER_WARP": 8, "MIN_WARPS": 8},
    {"BLOCK_ROWS": 64, "CHANNELS_PER_WARP": 8, "MIN_WARPS": 8},
    {"PRECISION": "bf16x3"},
    {"PRECISION": "tf32"},
]


def make_inputs(args: argparse.Namespace) -> list[Tensor]:
    """Make random inputs, gates, weight, bias and initial state; a fifth is padding."""
    torch.manual_seed(0)
    b, n, g, d = args.rows, args.steps, args.parts, args.width
    shapes = [(b, n, g, d), (b, n), (g * d, d), (g * d,), (b, d)]
    tensors = [torch.randn(args.runs, *shape, device="cuda") for shape in shapes]
    tensors[1] = (torch.rand_like(tensors[1]) > 0.2).float()
    tensors[2] *= d**-0.5
    return [tensor.requires_grad_() for tensor in tensors]


def run_forward_backward(scan: ScanFunction, inputs: list[Tensor]) -> list[Tensor]:
    """Run forward and backward; return states, last state and all gradients."""
    states, last = vmap(scan)(*inputs)
    loss = states.square().sum() + (last * inputs[4].detach()).sum()
    return [states.detach(), last.detach(), *torch.autograd.grad(loss, inputs)]


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    sizes = {"runs": 10, "rows": 100, "steps": 130, "width": 80, "parts": 3, "repeat": 20}
    for name, size in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=size)
    parser.add_argument("--once", action="store_true", help="try no other sizes")
    args = parser.parse_args(argv)
    inputs = make_inputs(args)
    expected, kernel_outputs = (
        run_forward_backward(scan_stepwise, inputs),
        run_forward_backward(scan_with_kernel, inputs),
    )
    replay_s = {}
    for name, function in {"plain": scan_stepwise, "kernels": scan_with_kernel}.items():
        work = partial(run_forward_backward, function, inputs)
        replay_s[name] = time_replay(work, args.repeat)
        print(
            f"{name}: {count_launches(work)} launches, {replay_s[name] * 1e3:.3f} ms forward and "
            f"backward, {replay_s[name] / args.steps * 1e6:.1f} µs a step"
        )
    ratio = replay_s["plain"] / replay_s["kernels"]
    print(f"kernels are {ratio:.1f} times as fast, off by {relative_difference(kernel_outputs, expected):.1e}")
    names = {name for changes in CONFIGURATIONS for name in changes}
    default_values = {name: getattr(kernel, name) for name in sorted(names)}
    for changes in [] if args.once else CONFIGURATIONS:
        for name, value in (default_values | changes).items():
            setattr(kernel, name, value)
        configuration = " ".join(f"{name} {value}" for name, value in (default_values | changes).items())
        try:
            difference = relative_difference(run_forward_backward(scan_with_kernel, inputs), expected)
            configuration_s = time_replay(partial(run_forward_backward, scan_with_kernel, inputs), args.repeat)
        except Exception as error:  # too large for the chip: triton has several kinds of it
            print(f"{configuration}: {type(error).__name__}")
            continue
        print(
            f"{configuration}: {configuration_s / args.steps * 1e6:.1f} µs a step, off by {difference:.1e}", flush=True
        )


if __name__ == "__main__":
    main()
