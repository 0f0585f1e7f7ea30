"""Learning-rate schedules: ``schedule(step, steps_per_epoch, total_steps)`` is a factor.

``step`` counts from 0; ``total_steps`` are the steps of the phase.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import cos, pi, sqrt
from typing import Any


class ConstantRate:
    """Keep the learning rate constant."""

    def __call__(self, step: int, steps_per_epoch: int, total_steps: int) -> float:
        return 1.0


@dataclass(frozen=True)
class HalvingDecay:
    """Halve the rate at the start of epochs ``every``, 2 · ``every``, …, counted from 1."""

    every: int = 25

    def __post_init__(self) -> None:
        if self.every < 1:
            raise ValueError(f"halving.every is at least 1 epoch, not {self.every}")

    def __call__(self, step: int, steps_per_epoch: int, total_steps: int) -> float:
        return 0.5 ** ((step // steps_per_epoch + 1) // self.every)


@dataclass(frozen=True)
class LinearDecay:
    """Linear warmup over the first ``warmup`` share of steps, then linear decay to 0."""

    warmup: float = 0.1

    def __call__(self, step: int, steps_per_epoch: int, total_steps: int) -> float:
        warmup_steps = round(self.warmup * total_steps)
        if step < warmup_steps:
            return (step + 1) / (warmup_steps + 1)
        return self.decay((total_steps - step) / max(total_steps - warmup_steps, 1))

    def decay(self, remaining: float) -> float:
        """Return the factor when this share of the steps after the warmup remains."""
        return remaining


class CosineDecay(LinearDecay):
    """Linear warmup over the first ``warmup`` share of steps, then cosine decay to 0."""

    def decay(self, remaining: float) -> float:
        return (1 - cos(pi * remaining)) / 2


@dataclass(frozen=True)
class InverseRootDecay:
    """Linear warmup over the first ``warmup`` share of steps, then decay by 1 / √step.

    Vaswani et al. 2017, arXiv:1706.03762, equation 3, as a share of the highest rate; they warmed
    up for 4,000 of 100,000 steps.
    """

    warmup: float = 0.04

    def __call__(self, step: int, steps_per_epoch: int, total_steps: int) -> float:
        warmup_steps = round(self.warmup * total_steps)
        return min((step + 1) / (warmup_steps + 1), sqrt((warmup_steps + 1) / (step + 1)))


@dataclass(frozen=True)
class SlantedTriangle:
    """A short linear rise from 1 / ``ratio``, then a long linear fall back to it.

    Howard and Ruder 2018, arXiv:1801.06146, equation 3. The rise is the first ``cut`` of all steps.
    """

    cut: float = 0.1
    ratio: float = 32.0

    def __post_init__(self) -> None:
        if not 0 <= self.cut <= 1 or not self.ratio >= 1:
            raise ValueError(f"slanted takes a cut from 0 to 1 and a ratio ≥ 1, not {self.cut} and {self.ratio}")

    def __call__(self, step: int, steps_per_epoch: int, total_steps: int) -> float:
        peak = int(self.cut * total_steps)
        height = step / peak if step < peak else 1 - (step - peak) / (total_steps - peak)
        return (1 + height * (self.ratio - 1)) / self.ratio


@dataclass(frozen=True)
class TriangularRate:
    """Triangular cyclical rate between ``low`` and 1, with a period of ``every`` epochs.

    Smith 2017. A high rate leaves a poor minimum; the low rate after it settles in a better one.
    """

    low: float = 0.02
    every: int = 20

    def __post_init__(self) -> None:
        if self.every < 1 or not 0 < self.low <= 1:
            values = f"every = {self.every}, low = {self.low}"
            raise ValueError(f"triangle takes every ≥ 1 epoch and 0 < low ≤ 1, not {values}")

    def __call__(self, step: int, steps_per_epoch: int, total_steps: int) -> float:
        cycle = self.every * steps_per_epoch
        height = 1 - abs(2 * (step % cycle) / cycle - 1)  # 0 at the ends, 1 in the middle
        return self.low + (1 - self.low) * height


SCHEDULES: dict[str, Callable[..., Any]] = {
    "constant": ConstantRate,
    "halving": HalvingDecay,
    "linear": LinearDecay,
    "cosine": CosineDecay,
    "triangle": TriangularRate,
    "inverse-root": InverseRootDecay,
    "slanted": SlantedTriangle,
}
