"""Time the relay of a GRU's steps among programs against torch's own kernel, for few rows on a GPU.

    python benchmarks/relay.py [--widths 128 256 512] [--rows 1 2 4] [--steps 1024] [--repeat 20]

One text is one row: the case of a controller that reads on and on. Both read the same, in turns,
without gradients. ``scan.RELAYED`` are the widths at which the relay is faster here.
"""

import argparse
import time
from collections.abc import Callable

import torch
from torch import nn

from mnemic.encode.gated_gru import has_triton, relay
from mnemic.encode.recurrence import run_fused, run_plain
from mnemic.encode.recurrent import scan_real


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--widths", type=int, nargs="+", default=[64, 128, 192, 256, 384, 512])
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--steps", type=int, default=1024)
    parser.add_argument("--repeat", type=int, default=20)
    given = parser.parse_args()
    if not torch.cuda.is_available() or not has_triton():
        raise SystemExit("this needs a GPU, and triton")
    for width in given.widths:
        for rows in given.rows:
            print(compared(width, rows, given), flush=True)


@torch.no_grad()
def compared(width: int, rows: int, given: argparse.Namespace) -> str:
    torch.manual_seed(0)
    network = nn.GRU(width, width, batch_first=True).cuda()
    x = torch.randn(rows, given.steps, width, device="cuda")
    mask, state = torch.ones_like(x[..., 0], dtype=torch.bool), (x.new_zeros(rows, width),)

    def relayed(*taken):  # type: ignore[no-untyped-def]
        return scan_real(relay, *taken)

    ways: dict[str, Callable[[], torch.Tensor]] = {
        "torch": lambda: run_fused(network, x, mask, state, False)[0],
        "relay": lambda: run_plain(network, relayed, x, mask, state, False)[0],
    }
    states = [way() for way in ways.values()]
    spent = dict.fromkeys(ways, 0.0)
    for _ in range(given.repeat):
        for name, way in ways.items():
            torch.cuda.synchronize()
            began = time.perf_counter()
            way()
            torch.cuda.synchronize()
            spent[name] += time.perf_counter() - began
    each = {name: 1e6 * own / given.repeat / given.steps for name, own in spent.items()}
    off = (states[0] - states[1]).abs().max().item()
    return (
        f"width {width}, {rows} rows: torch {each['torch']:.2f}, relay {each['relay']:.2f} µs a "
        f"step, {each['torch'] / each['relay']:.2f} times as fast, at most {off:.0e} apart"
    )


if __name__ == "__main__":
    main()
