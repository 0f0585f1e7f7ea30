"""A GRU over few sequences on a GPU, its channels shared out among many programs.

One step of one sequence is too little work for a GPU, and to start it takes longer than to do it.
So every program stays from the first step to the last, with the weights of a few channels in its
registers: it reads the whole state, and stores its own channels of the next one. Nobody counts who
is done: where a state is not stored yet stands ``UNSEEN``, which no arithmetic gives, and is looked
at again. All programs must therefore run at once: they are launched so, as a cooperative grid, and
``scan.few`` sees to it that there is room for them.

Shapes: b batch (rows), n steps, d width, g parts: r, z and h̃.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

UNSEEN = 0x7FEDCBA9  # a NaN; that of arithmetic is another one
COLUMNS = 4  # channels of a program
CHANNELS = 256  # of the whole state that a warp reads


@triton.jit
def sigmoid(x):  # type: ignore[no-untyped-def]
    return 1.0 / (1.0 + tl.exp(-x))


@triton.jit
def fetch(given, gate, n, own, mine, width):  # type: ignore[no-untyped-def]
    came = given + n.to(tl.int64) * 3 * width + own
    r, z = tl.load(came, mine, 0.0), tl.load(came + width, mine, 0.0)
    return tl.load(gate + n), r, z, tl.load(came + 2 * width, mine, 0.0)


@triton.jit
def relay_kernel(  # type: ignore[no-untyped-def]
    given, gate, weight, bias, start,  # in
    path,  # out, as the integers that its numbers are stored as
    steps, width,
    columns: tl.constexpr, padded: tl.constexpr, backward: tl.constexpr, unseen: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(1).to(tl.int64)
    own, channel = tl.program_id(0) * columns + tl.arange(0, columns), tl.arange(0, padded)
    mine, inside = own < width, channel < width
    given, gate = given + row * steps * 3 * width, gate + row * steps
    path, start = path + row * steps * width, start + row * width
    square = mine[:, None] & inside[None, :]
    matrix, lean = weight + own[:, None] * width + channel[None, :], bias + own
    reset, reset_bias = tl.load(matrix, square, 0.0), tl.load(lean, mine, 0.0)
    matrix, lean = matrix + width * width, lean + width
    keep, keep_bias = tl.load(matrix, square, 0.0), tl.load(lean, mine, 0.0)
    matrix, lean = matrix + width * width, lean + width
    new, new_bias = tl.load(matrix, square, 0.0), tl.load(lean, mine, 0.0)
    h = tl.load(start + own, mine, 0.0)
    h = tl.where(h == h, h, float("nan"))  # of all NaNs the one that is not ``unseen``
    whole = tl.load(start + channel, inside, 0.0)
    first = steps * 0 + (steps - 1 if backward else 0)
    g, r, z, c = fetch(given, gate, first, own, mine, width)
    for count in range(steps):
        n = steps - 1 - count if backward else count
        r = sigmoid(r + reset_bias + tl.sum(reset * whole[None, :], 1))
        z = sigmoid(z + keep_bias + tl.sum(keep * whole[None, :], 1))
        p = new_bias + tl.sum(new * whole[None, :], 1)
        c = 2.0 * sigmoid(2.0 * (c + r * p)) - 1.0  # tanh
        h = tl.where(g != 0.0, c + z * (h - c), h)
        here = path + n.to(tl.int64) * width  # type: ignore[union-attr]
        tl.store(here + own, h.to(tl.int32, bitcast=True), mine)
        if count + 1 < steps:  # what comes next arrives while the others are waited for
            g, r, z, c = fetch(given, gate, n - 1 if backward else n + 1, own, mine, width)
        bits = tl.load(here + channel, inside, 0, volatile=True)
        while tl.max((bits == unseen).to(tl.int32), 0) > 0:
            bits = tl.load(here + channel, inside, 0, volatile=True)
        whole = bits.to(tl.float32, bitcast=True)


def programs(width: int) -> int:
    """How many of them a row has."""
    return triton.cdiv(width, COLUMNS)


def relay(
    given: Tensor, gate: Tensor, weight: Tensor, bias: Tensor, start: Tensor, *, backward: bool
) -> Tensor:  # fmt: skip
    """The states after each step, b n d; ``given`` b n g d, the gates b n are 0 or 1."""
    batch, steps, _, width = given.shape
    taken = [part.contiguous() for part in (given, gate, weight, bias, start)]
    path = torch.full((batch, steps, width), UNSEEN, dtype=torch.int32, device=given.device)
    padded = triton.next_power_of_2(width)
    relay_kernel[programs(width), batch](
        *taken, path, steps, width, columns=COLUMNS, padded=padded, backward=backward,
        unseen=UNSEEN, num_warps=max(1, padded // CHANNELS), launch_cooperative_grid=True,
    )  # fmt: skip
    return path.view(torch.float32)
