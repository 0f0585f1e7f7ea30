"""Time the relay kernel of a GRU against torch's kernel on few rows.

    python benchmarks/gru_relay_kernel.py [--widths 128 256 512] [--rows 1 2 4] [--steps 1024]
        [--repeat 20]

One text is one row: the case of a controller that reads a long text. Both kernels read the same, in
turns, without gradients. ``gated_gru.RELAY_WIDTHS`` are the widths at which the relay was faster.
"""

import argparse
import time
from collections.abc import Callable

import torch
from torch import nn

from mnemic.encode.gated_gru import has_triton, relay_gru
from mnemic.encode.recurrence import run_fused, run_loop


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--widths", type=int, nargs="+", default=[64, 128, 192, 256, 384, 512])
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--steps", type=int, default=1024)
    parser.add_argument("--repeat", type=int, default=20)
    args = parser.parse_args()
    if not torch.cuda.is_available() or not has_triton():
        raise SystemExit("this needs a GPU, and triton")
    for width in args.widths:
        for rows in args.rows:
            print(compare_kernels(width, rows, args), flush=True)


@torch.no_grad()
def compare_kernels(width: int, num_rows: int, args: argparse.Namespace) -> str:
    """Time both kernels at one size, and format the comparison."""
    torch.manual_seed(0)
    network = nn.GRU(width, width, batch_first=True).cuda()
    x = torch.randn(num_rows, args.steps, width, device="cuda")
    mask, state = torch.ones_like(x[..., 0], dtype=torch.bool), (x.new_zeros(num_rows, width),)

    kernels: dict[str, Callable[[], torch.Tensor]] = {
        "torch": lambda: run_fused(network, x, mask, state, False)[0],
        "relay": lambda: run_loop(network, relay_gru, x, mask, state, False)[0],
    }
    states = [run_kernel() for run_kernel in kernels.values()]
    spent = dict.fromkeys(kernels, 0.0)
    for _ in range(args.repeat):
        for name, run_kernel in kernels.items():
            torch.cuda.synchronize()
            started = time.perf_counter()
            run_kernel()
            torch.cuda.synchronize()
            spent[name] += time.perf_counter() - started
    us_per_step = {name: 1e6 * seconds / args.repeat / args.steps for name, seconds in spent.items()}
    difference = (states[0] - states[1]).abs().max().item()
    return (
        f"width {width}, {num_rows} rows: torch {us_per_step['torch']:.2f}, relay {us_per_step['relay']:.2f} µs a "
        f"step, {us_per_step['torch'] / us_per_step['relay']:.2f} times as fast, at most {difference:.0e} apart"
    )


if __name__ == "__main__":
    main()
