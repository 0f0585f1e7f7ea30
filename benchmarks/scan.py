"""Check the scan's kernels against the plain loop on a GPU, count launches, and time a sequence.

    python benchmarks/scan.py [--runs 10] [--rows 100] [--steps 130] [--width 80] [--repeat 20]

Forward and backward are recorded as a CUDA graph, as in training. DMN+ has the default sizes; the
WMN reads its sentences with ``--rows 31744 --steps 10 --width 30``. ``--parts 2`` is DMN+'s GRU
over facts. The last table tries other sizes of the kernels; what is best there belongs in their
constants.
"""

import argparse
from collections.abc import Callable, Sequence
from functools import partial

import torch
from recorded import far, launches, seconds
from torch import Tensor
from torch.func import vmap

from mnemic.encode.gated_gru import scan_at_once, scan_plainly

try:
    from mnemic.kernels import gru_scan as kernel
except ImportError as error:
    raise SystemExit(f"this needs a GPU, and triton: {error}") from None

Scanning = Callable[..., tuple[Tensor, Tensor]]
TRIED: list[dict[str, int | str]] = [  # each alone; the first stays as the kernels have it
    {},
    {"STAGES": 1},
    {"STAGES": 2},
    {"STAGES": 4},
    {"STAGES": 5},
    {"DEPTH": 32},
    {"DEPTH": 32, "STAGES": 2},
    {"COLUMNS": 8, "WARPS": 8},
    {"COLUMNS": 32},
    {"COLUMNS": 32, "WARPS": 2},
    {"ROWS": 32},
    {"ROWS": 32, "COLUMNS": 8, "WARPS": 8},
    {"ROWS": 64, "COLUMNS": 8, "WARPS": 8},
    {"PRECISION": "bf16x3"},
    {"PRECISION": "tf32"},
]


def sequences(asked: argparse.Namespace) -> list[Tensor]:
    """Given, gates, weight, bias and start; one step in five is padding."""
    torch.manual_seed(0)
    b, n, g, d = asked.rows, asked.steps, asked.parts, asked.width
    shapes = [(b, n, g, d), (b, n), (g * d, d), (g * d,), (b, d)]
    made = [torch.randn(asked.runs, *shape, device="cuda") for shape in shapes]
    made[1] = (torch.rand_like(made[1]) > 0.2).float()
    made[2] *= d**-0.5
    return [part.requires_grad_() for part in made]


def both_ways(function: Scanning, taken: list[Tensor]) -> list[Tensor]:
    """States, last state and all gradients."""
    states, last = vmap(function)(*taken)
    loss = states.square().sum() + (last * taken[4].detach()).sum()
    return [states.detach(), last.detach(), *torch.autograd.grad(loss, taken)]


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    sizes = {"runs": 10, "rows": 100, "steps": 130, "width": 80, "parts": 3, "repeat": 20}
    for name, size in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=size)
    parser.add_argument("--once", action="store_true", help="try no other sizes")
    asked = parser.parse_args(words)
    taken = sequences(asked)
    wanted, found = both_ways(scan_plainly, taken), both_ways(scan_at_once, taken)
    took = {}
    for name, function in {"plain": scan_plainly, "kernels": scan_at_once}.items():
        work = partial(both_ways, function, taken)
        took[name] = seconds(work, asked.repeat)
        print(
            f"{name}: {launches(work)} launches, {took[name] * 1e3:.3f} ms forward and "
            f"backward, {took[name] / asked.steps * 1e6:.1f} µs a step"
        )
    ratio = took["plain"] / took["kernels"]
    print(f"kernels are {ratio:.1f} times as fast, off by {far(found, wanted):.1e}")
    names = {name for changes in TRIED for name in changes}
    usual = {name: getattr(kernel, name) for name in sorted(names)}
    for changes in [] if asked.once else TRIED:
        for name, value in (usual | changes).items():
            setattr(kernel, name, value)
        where = " ".join(f"{name} {value}" for name, value in (usual | changes).items())
        try:
            off = far(both_ways(scan_at_once, taken), wanted)
            again = seconds(partial(both_ways, scan_at_once, taken), asked.repeat)
        except Exception as error:  # too large for the chip: triton has several kinds of it
            print(f"{where}: {type(error).__name__}")
            continue
        print(f"{where}: {again / asked.steps * 1e6:.1f} µs a step, off by {off:.1e}", flush=True)


if __name__ == "__main__":
    main()
