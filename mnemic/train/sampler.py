"""Which examples a step sees, and the random numbers it uses: a pure function of seed and epoch.

So a run can go on from any step without a saved generator, every process of a parallel run
draws the same batch, and a run draws the same whether it trains alone or among many.

Shapes: e steps of an epoch, b batch, r rolls; with several runs a runs axis before b.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import NamedTuple

import torch
from torch import Tensor

from mnemic.recipe import ConfigError

FINE = 512  # lengths that the choice of buckets tells apart


class Draw(NamedTuple):
    """One step's examples and its uniform random numbers."""

    rows: Tensor  # (runs) b
    rolls: Tensor | None  # (runs) b r, None where nothing is rolled
    most: int | None = None  # no example of this bucket is longer

    def part(self, number: int, count: int) -> "Draw":
        """One of ``count`` parts, each with every ``count``-th example."""
        rolls = None if self.rolls is None else self.rolls[..., number::count, :]
        return Draw(self.rows[..., number::count], rolls, self.most)


@dataclass(frozen=True, kw_only=True)
class Draws:
    """Batches of rows for one run (one pool) or several runs (a pool and a seed each).

    With ``replace`` each row is drawn anew (MemN2N); otherwise an epoch is a shuffle of the pool,
    without the last examples that fill no batch. With ``buckets`` a batch holds examples of about
    one length; which bucket a step has is the same for all runs.
    """

    pools: Sequence[Tensor]  # the rows each run may draw
    seeds: Sequence[int]
    batch: int
    phase: int = 0
    rolls: int = 0
    replace: bool = False
    stacked: bool = False  # keep the runs axis
    device: torch.device | str = "cpu"
    lengths: Tensor | None = None  # of all examples: what to sort into buckets by
    buckets: int = 1

    def __post_init__(self) -> None:
        if min(len(pool) for pool in self.pools) < self.batch:
            few = min(len(pool) for pool in self.pools)
            raise ConfigError(
                f"a batch of {self.batch} cannot be drawn from {few} training examples: lower it, "
                f"say --set train.batch={max(few // 4, 1)}, or get more of them"
            )
        if not self.stacked and len(self.pools) != 1:
            raise ValueError("several runs need a runs axis: stacked=True")

    @cached_property
    def parts(self) -> "list[Bucket]":
        """The pools, bucket by bucket; one that fills no batch is joined with its neighbour."""
        if self.lengths is None or self.buckets == 1:
            few = min(len(pool) for pool in self.pools)
            return [Bucket(None, list(self.pools), few // self.batch)]
        own = [self.lengths[pool] for pool in self.pools]
        *lower, most = edges(torch.cat(own), self.buckets)
        found: list[Bucket] = []
        for low in [*reversed(lower), -1]:
            inside = [p[(size > low) & (size <= most)] for p, size in zip(self.pools, own)]
            if steps := min(len(part) for part in inside) // self.batch:
                found.append(Bucket(most, inside, steps))
                most = low
        if most > -1:  # the shortest are too few
            bound = found.pop().most or most
            inside = [p[size <= bound] for p, size in zip(self.pools, own)]
            found.append(Bucket(bound, inside, min(len(part) for part in inside) // self.batch))
        return found

    @cached_property
    def epoch(self) -> int:
        """How many steps an epoch has."""
        return sum(part.steps for part in self.parts)

    def from_step(self, step: int) -> Iterator[Draw]:
        """All draws from this step on, without end; the next epoch is drawn beside this one."""
        number, skip = divmod(step, self.epoch)
        with ThreadPoolExecutor(1) as beside:
            drawn = beside.submit(self.draw, number)
            while True:
                rows, rolls, most = drawn.result()
                rows, rolls = rows.to(self.device), rolls.to(self.device)
                number += 1
                drawn = beside.submit(self.draw, number)
                for place in range(skip, self.epoch):
                    yield Draw(rows[place], rolls[place] if self.rolls else None, most[place])
                skip = 0

    def draw(self, number: int) -> tuple[Tensor, Tensor, list[int | None]]:
        """One whole epoch: rows, rolls and the buckets' bounds."""
        order = [place for place, part in enumerate(self.parts) for _ in range(part.steps)]
        if len(self.parts) > 1:
            dice = dice_of(0, "buckets", self.phase, "epoch", number)  # the same for every run
            order = [order[i] for i in torch.randperm(len(order), generator=dice).tolist()]
        drawn = [self.draw_one(run, number, order) for run in range(len(self.pools))]
        rows, rolls = (torch.stack(part, 1) for part in zip(*drawn))  # e runs b …
        most = [self.parts[place].most for place in order]
        return (rows, rolls, most) if self.stacked else (rows.squeeze(1), rolls.squeeze(1), most)

    def draw_one(self, run: int, number: int, order: Sequence[int]) -> tuple[Tensor, Tensor]:
        dice = dice_of(self.seeds[run], "phase", self.phase, "epoch", number)
        batches = [self.cut(part, run, dice) for part in self.parts]
        rows = torch.stack([next(batches[place]) for place in order])
        return rows, torch.rand(*rows.shape, self.rolls, generator=dice)

    def cut(self, part: "Bucket", run: int, dice: torch.Generator) -> Iterator[Tensor]:
        """The batches of one bucket, all drawn at once."""
        pool, shape = part.pools[run], (part.steps, self.batch)
        if self.replace:
            places = torch.randint(len(pool), shape, generator=dice)
        else:
            places = torch.randperm(len(pool), generator=dice)[: shape[0] * shape[1]].view(shape)
        return iter(pool[places])


class Bucket(NamedTuple):
    """Examples up to one length."""

    most: int | None  # None: of any length
    pools: list[Tensor]  # the rows of each run
    steps: int  # batches an epoch


def edges(lengths: Tensor, buckets: int) -> list[int]:
    """Upper bounds of ``buckets`` classes of lengths that leave the least padding in all.

    ``cost[k]`` is the least sum of bounds over all examples up to length k, one more bucket at
    each turn. Long lengths are only told apart as finely as ``FINE`` classes allow.
    """
    unit = max(-(-int(lengths.max()) // FINE), 1)
    counts = torch.bincount((lengths + unit - 1) // unit)
    below = counts.cumsum(0)  # examples of length k or less
    sizes = torch.arange(len(counts))
    cost, cuts = sizes * below, []
    for _ in range(min(buckets, int((counts > 0).sum())) - 1):
        # From the last bound j < k on: one bucket of bound k.
        whole = cost[None, :] + sizes[:, None] * (below[:, None] - below[None, :])  # k j
        whole = whole.masked_fill(sizes[None, :] >= sizes[:, None], whole.max() + 1)
        cost, last = whole.min(1)
        cuts.append(last)
    bound = len(counts) - 1
    found = [bound]
    for last in reversed(cuts):
        bound = int(last[bound])
        found.append(bound)
    return sorted({unit * bound for bound in found})


def dice_of(seed: int, *purpose: object) -> torch.Generator:
    """A generator of its own for each seed and purpose; the same on every machine."""
    text = "/".join(str(part) for part in (seed, *purpose))
    number = int.from_bytes(sha256(text.encode()).digest()[:8], "big") >> 1
    return torch.Generator().manual_seed(number)
