"""Which examples a step sees, and the random numbers it uses: a pure function of seed and epoch.

So a run can go on from any step without a saved generator, every process of a parallel run
draws the same batch, and a run draws the same whether it trains alone or among many.

Shapes: e steps of an epoch, b batch, r rolls; with several runs a runs axis before b.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple

import torch
from torch import Tensor

from mnemic.recipe import ConfigError


class Draw(NamedTuple):
    """One step's examples and its uniform random numbers."""

    rows: Tensor  # (runs) b
    rolls: Tensor | None  # (runs) b r, None where nothing is rolled


@dataclass(frozen=True, kw_only=True)
class Draws:
    """Batches of rows for one run (one pool) or several runs (a pool and a seed each).

    With ``replace`` each row is drawn anew (MemN2N); otherwise an epoch is a shuffle of the pool,
    without the last examples that fill no batch.
    """

    pools: Sequence[Tensor]  # the rows each run may draw
    seeds: Sequence[int]
    batch: int
    phase: int = 0
    rolls: int = 0
    replace: bool = False
    stacked: bool = False  # keep the runs axis
    device: torch.device | str = "cpu"

    def __post_init__(self) -> None:
        if min(len(pool) for pool in self.pools) < self.batch:
            few = min(len(pool) for pool in self.pools)
            raise ConfigError(
                f"a batch of {self.batch} cannot be drawn from {few} training questions; lower "
                "train.batch, or get more through data.tasks, data.count or data.validation"
            )
        if not self.stacked and len(self.pools) != 1:
            raise ValueError("several runs need a runs axis: stacked=True")

    @property
    def epoch(self) -> int:
        """How many steps an epoch has."""
        return min(len(pool) for pool in self.pools) // self.batch

    def from_step(self, step: int) -> Iterator[Draw]:
        """All draws from this step on, without end; the next epoch is drawn beside this one."""
        number, skip = divmod(step, self.epoch)
        with ThreadPoolExecutor(1) as beside:
            drawn = beside.submit(self.draw, number)
            while True:
                rows, rolls = (part.to(self.device) for part in drawn.result())
                number += 1
                drawn = beside.submit(self.draw, number)
                for place in range(skip, self.epoch):
                    yield Draw(rows[place], rolls[place] if self.rolls else None)
                skip = 0

    def draw(self, number: int) -> tuple[Tensor, Tensor]:
        """One whole epoch."""
        drawn = [self.draw_one(*own, number) for own in zip(self.pools, self.seeds)]
        rows, rolls = (torch.stack(part, 1) for part in zip(*drawn))  # e runs b …
        return (rows, rolls) if self.stacked else (rows.squeeze(1), rolls.squeeze(1))

    def draw_one(self, pool: Tensor, seed: int, number: int) -> tuple[Tensor, Tensor]:
        dice = dice_of(seed, "phase", self.phase, "epoch", number)
        shape = (self.epoch, self.batch)
        if self.replace:
            places = torch.randint(len(pool), shape, generator=dice)
        else:
            places = torch.randperm(len(pool), generator=dice)[: shape[0] * shape[1]].view(shape)
        return pool[places], torch.rand(*shape, self.rolls, generator=dice)


def dice_of(seed: int, *purpose: object) -> torch.Generator:
    """A generator of its own for each seed and purpose; the same on every machine."""
    text = "/".join(str(part) for part in (seed, *purpose))
    number = int.from_bytes(sha256(text.encode()).digest()[:8], "big") >> 1
    return torch.Generator().manual_seed(number)
