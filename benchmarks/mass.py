"""What masked self-attention saves: one layer of it against one layer of full attention.

Forward and backward, at several lengths, 15 % of the positions masked; the median of ``--repeats``.

    python benchmarks/mass.py --device cpu
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
from mnemic.encode.block import AddNorm, EncoderBlock, FeedForward
from mnemic.encode.masked_layer import MaskedLayer, places_of

KEYS = ("others", "masked", "all")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--tokens", type=int, default=4096, help="tokens of a batch")
    parser.add_argument("--lengths", type=int, nargs="+", default=[128, 512, 2048])
    parser.add_argument("--rate", type=float, default=0.15)
    parser.add_argument("--repeats", type=int, default=7)
    given = parser.parse_args()
    torch.manual_seed(0)
    rows = [measure(given, length) for length in given.lengths]
    print(json.dumps({"torch": torch.__version__, **vars(given), "rows": rows}, indent=1))


def measure(given: argparse.Namespace, length: int) -> dict[str, float]:
    """Milliseconds of a step of each layer, and how many times faster than the full one."""
    batch = max(given.tokens // length, 1)
    states = torch.randn(batch, length, given.width, device=given.device, requires_grad=True)
    mask = torch.ones(batch, length, dtype=torch.bool, device=given.device)
    places = places_of(torch.rand(batch, length, device=given.device) < given.rate)
    full = full_layer(given.width).to(given.device)
    found = {"length": length, "full": timed(lambda: full(states, mask[:, None, None]), given)}
    for keys in KEYS:
        attention = {"kind": "masked", "heads": 4, "keys": keys}
        layer = MaskedLayer(given.width, attention=attention).to(given.device)
        found[keys] = timed(partial(layer, states, mask, places), given)
        found[f"{keys}, times faster"] = round(found["full"] / found[keys], 2)
    return found


def full_layer(width: int) -> nn.Module:
    """As a layer of an encoder, of the same parts."""

    def around() -> AddNorm:
        return AddNorm(width, norm="post", epsilon=1e-5, dropout=0.0)

    feed = FeedForward(width, 4 * width, "gelu")
    return EncoderBlock(FullAttention(width, heads=4), feed, around)


def timed(forward: Callable[[], Tensor], given: argparse.Namespace) -> float:
    """The median of some steps, in milliseconds; two before them warm up."""
    taken = []
    for number in range(given.repeats + 2):
        wait(given.device)
        start = time.perf_counter()
        forward().sum().backward()
        wait(given.device)
        if number > 1:
            taken.append(1000 * (time.perf_counter() - start))
    return round(statistics.median(taken), 3)


def wait(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
