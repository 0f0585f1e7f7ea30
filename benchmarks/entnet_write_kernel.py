"""Check EntNet's kernels against eager code on a GPU; count launches and time.

    python benchmarks/entnet_write_kernel.py [--runs 10] [--sentences 70] [--repeat 50]

Forward and backward are recorded as a CUDA graph, as in training. The last table tries other block
sizes, warps and precisions of the kernels; the best values belong in the kernels' constants.
"""

import argparse
from collections.abc import Callable, Sequence
from functools import partial

import torch
from cuda_graph_timing import count_launches, relative_difference, time_replay
from torch import Tensor
from torch.func import vmap

from mnemic.memory.parts.entnet_write import EntNetWrite, rewrite_slots, rewrite_slots_eager

try:
    from mnemic.kernels import entnet_write as kernel
except ImportError as error:
    raise SystemExit(f"this needs a GPU, and triton: {error}") from None

BATCH, SLOTS, WIDTH = 32, 20, 100
CONFIGURATIONS = [  # rows, warps, registers
    (16, 8, None), (16, 8, 128), (16, 8, 96), (16, 4, None), (16, 4, 168), (16, 4, 128),
    (32, 8, None), (32, 8, 128), (64, 8, None), (64, 16, None),
]  # fmt: skip
Write = Callable[..., tuple[Tensor, Tensor]]


def make_story(runs: int, sentences: int) -> EntNetWrite:
    """Make random inputs of EntNet's write on the GPU."""
    torch.manual_seed(0)
    b, n, s, d = BATCH, sentences, SLOTS, WIDTH
    shapes = [(b, s, d), (b, n, d), (b, n, d), (b, n, s), (b, n), (s, d), (d, d), (d,)]
    tensors = [0.3 * torch.randn(runs, *shape, device="cuda") for shape in shapes]
    lengths = torch.randint(1, n + 1, (runs, b, 1), device="cuda")
    tensors[4] = torch.arange(n, device="cuda") < lengths
    return EntNetWrite(*(tensor.requires_grad_() if tensor.is_floating_point() else tensor for tensor in tensors))


def write_eager(*parts: Tensor) -> tuple[Tensor, Tensor]:
    """Write with eager operations."""
    return rewrite_slots_eager(EntNetWrite(*parts))


def write_fused(*parts: Tensor) -> tuple[Tensor, Tensor]:
    """Write with the fused kernels."""
    return rewrite_slots(EntNetWrite(*parts))


def run_forward_backward(write: Write, write_inputs: EntNetWrite) -> list[Tensor]:
    """Run forward and backward; return slots, gates and all gradients."""
    slots, gates = vmap(write)(*write_inputs)
    leaves = [tensor for tensor in write_inputs if tensor.is_floating_point()]
    loss = (slots * write_inputs.slots.detach().flip(-1)).sum() + gates.square().sum()
    return [slots.detach(), gates.detach(), *torch.autograd.grad(loss, leaves)]


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--sentences", type=int, default=70)
    parser.add_argument("--repeat", type=int, default=50)
    args = parser.parse_args(argv)
    write_inputs = make_story(args.runs, args.sentences)
    for name, write in {"plain": write_eager, "fused": write_fused}.items():
        work = partial(run_forward_backward, write, write_inputs)
        replay_s = time_replay(work, args.repeat)
        print(
            f"{name}: {count_launches(work)} launches, {replay_s * 1e3:.3f} ms forward and backward, "
            f"{replay_s / args.sentences * 1e6:.1f} µs a sentence"
        )
    expected = run_forward_backward(write_eager, write_inputs)
    for precision in ("bf16", "bf16x3"):
        for kernel.BLOCK_ROWS, kernel.NUM_WARPS, kernel.MAX_REGISTERS in CONFIGURATIONS:
            kernel.PRECISION = precision
            configuration = f"{precision} rows {kernel.BLOCK_ROWS} warps {kernel.NUM_WARPS}"
            configuration += f" registers {kernel.MAX_REGISTERS or 'free'}"
            try:
                outputs = run_forward_backward(write_fused, write_inputs)
                replay_s = time_replay(partial(run_forward_backward, write_fused, write_inputs), args.repeat)
            except Exception as error:  # too large for the chip: triton has several kinds of it
                print(f"{configuration}: {type(error).__name__}")
                continue
            difference = relative_difference(outputs, expected)
            print(f"{configuration}: {replay_s / args.sentences * 1e6:.1f} µs a sentence, off by {difference:.1e}")


if __name__ == "__main__":
    main()
