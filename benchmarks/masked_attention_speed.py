"""Time a layer of masked self-attention against a layer of full attention.

Forward and backward, at several lengths, 15 % of the positions masked; the median of ``--repeats``.

    python benchmarks/masked_attention_speed.py --device cpu
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from mnemic.encode.attention import FullAttention
from mnemic.encode.masked_layer import MaskedLayer, find_masked_positions
from mnemic.encode.stacks.block import AddNorm, EncoderBlock, FeedForward

KEY_KINDS = ("others", "masked", "all")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--tokens", type=int, default=4096, help="tokens of a batch")
    parser.add_argument("--lengths", type=int, nargs="+", default=[128, 512, 2048])
    parser.add_argument("--rate", type=float, default=0.15)
    parser.add_argument("--repeats", type=int, default=7)
    args = parser.parse_args()
    torch.manual_seed(0)
    rows = [measure_length(args, length) for length in args.lengths]
    print(json.dumps({"torch": torch.__version__, **vars(args), "rows": rows}, indent=1))


def measure_length(args: argparse.Namespace, length: int) -> dict[str, float]:
    """Measure milliseconds per step of each layer, and the speedup over full attention."""
    batch = max(args.tokens // length, 1)
    states = torch.randn(batch, length, args.width, device=args.device, requires_grad=True)
    mask = torch.ones(batch, length, dtype=torch.bool, device=args.device)
    masked_positions = find_masked_positions(torch.rand(batch, length, device=args.device) < args.rate)
    full = make_full_layer(args.width).to(args.device)
    times = {"length": length, "full": time_step(lambda: full(states, mask[:, None, None]), args)}
    for keys in KEY_KINDS:
        attention = {"kind": "masked", "heads": 4, "keys": keys}
        layer = MaskedLayer(args.width, attention=attention).to(args.device)
        times[keys] = time_step(partial(layer, states, mask, masked_positions), args)
        times[f"{keys}, times faster"] = round(times["full"] / times[keys], 2)
    return times


def make_full_layer(width: int) -> nn.Module:
    """Make an encoder layer with full attention of the same size."""

    def make_add_norm() -> AddNorm:
        return AddNorm(width, norm="post", epsilon=1e-5, dropout=0.0)

    feed_forward = FeedForward(width, 4 * width, "gelu")
    return EncoderBlock(FullAttention(width, heads=4), feed_forward, make_add_norm)


def time_step(forward: Callable[[], Tensor], args: argparse.Namespace) -> float:
    """Return the median milliseconds of a step, after two warm-up steps."""
    times_ms = []
    for number in range(args.repeats + 2):
        synchronize(args.device)
        start = time.perf_counter()
        forward().sum().backward()
        synchronize(args.device)
        if number > 1:
            times_ms.append(1000 * (time.perf_counter() - start))
    return round(statistics.median(times_ms), 3)


def synchronize(device: str) -> None:
    """Wait until a GPU has finished its work."""
    if device.startswith("cuda"):
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
