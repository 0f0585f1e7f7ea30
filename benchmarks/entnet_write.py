"""Check EntNet's kernels against the plain loop on a GPU, count launches, and time a story.

    python benchmarks/entnet_write.py [--runs 10] [--sentences 70] [--repeat 50]

Forward and backward are recorded as a CUDA graph, as in training. The last table tries other
block sizes, warps and precisions of the kernels; what is best there belongs in their constants.
"""

import argparse
from collections.abc import Callable, Sequence
from functools import partial

import torch
from recorded import far, launches, seconds
from torch import Tensor
from torch.func import vmap

from mnemic.memory.parts.entnet_write import Rewriting, rewrite, rewrite_plainly

try:
    from mnemic.kernels import entnet_write as kernel
except ImportError as error:
    raise SystemExit(f"this needs a GPU, and triton: {error}") from None

BATCH, SLOTS, WIDTH = 32, 20, 100
TRIED = [  # rows, warps, registers
    (16, 8, None), (16, 8, 128), (16, 8, 96), (16, 4, None), (16, 4, 168), (16, 4, 128),
    (32, 8, None), (32, 8, 128), (64, 8, None), (64, 16, None),
]  # fmt: skip
Write = Callable[..., tuple[Tensor, Tensor]]


def story(runs: int, sentences: int) -> Rewriting:
    torch.manual_seed(0)
    b, n, s, d = BATCH, sentences, SLOTS, WIDTH
    shapes = [(b, s, d), (b, n, d), (b, n, d), (b, n, s), (b, n), (s, d), (d, d), (d,)]
    parts = [0.3 * torch.randn(runs, *shape, device="cuda") for shape in shapes]
    lengths = torch.randint(1, n + 1, (runs, b, 1), device="cuda")
    parts[4] = torch.arange(n, device="cuda") < lengths
    return Rewriting(*(p.requires_grad_() if p.is_floating_point() else p for p in parts))


def plain(*parts: Tensor) -> tuple[Tensor, Tensor]:
    return rewrite_plainly(Rewriting(*parts))


def fused(*parts: Tensor) -> tuple[Tensor, Tensor]:
    return rewrite(Rewriting(*parts))


def both_ways(write: Write, given: Rewriting) -> list[Tensor]:
    """Slots, gates and all gradients."""
    slots, gates = vmap(write)(*given)
    leaves = [part for part in given if part.is_floating_point()]
    loss = (slots * given.slots.detach().flip(-1)).sum() + gates.square().sum()
    return [slots.detach(), gates.detach(), *torch.autograd.grad(loss, leaves)]


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--sentences", type=int, default=70)
    parser.add_argument("--repeat", type=int, default=50)
    asked = parser.parse_args(words)
    given = story(asked.runs, asked.sentences)
    for name, write in {"plain": plain, "fused": fused}.items():
        work = partial(both_ways, write, given)
        took = seconds(work, asked.repeat)
        print(
            f"{name}: {launches(work)} launches, {took * 1e3:.3f} ms forward and backward, "
            f"{took / asked.sentences * 1e6:.1f} µs a sentence"
        )
    expected = both_ways(plain, given)
    for precision in ("bf16", "bf16x3"):
        for kernel.ROWS, kernel.WARPS, kernel.REGISTERS in TRIED:
            kernel.PRECISION = precision
            where = f"{precision} rows {kernel.ROWS} warps {kernel.WARPS}"
            where += f" registers {kernel.REGISTERS or 'free'}"
            try:
                found = both_ways(fused, given)
                took = seconds(partial(both_ways, fused, given), asked.repeat)
            except Exception as error:  # too large for the chip: triton has several kinds of it
                print(f"{where}: {type(error).__name__}")
                continue
            off = far(found, expected)
            print(f"{where}: {took / asked.sentences * 1e6:.1f} µs a sentence, off by {off:.1e}")


if __name__ == "__main__":
    main()
