"""How the learning rate moves: ``schedule(step, epoch, total)`` is its factor at a step.

``step`` counts from 0, ``epoch`` is the number of steps an epoch has, ``total`` of the phase.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import cos, pi
from typing import Any, Protocol


class Schedule(Protocol):
    def __call__(self, step: int, epoch: int, total: int) -> float: ...


@dataclass(frozen=True)
class Constant:
    """The rate as it is."""

    def __call__(self, step: int, epoch: int, total: int) -> float:
        return 1.0


@dataclass(frozen=True)
class Halving:
    """Half the rate at the start of epochs ``every``, 2 · ``every`` …, counted from 1."""

    every: int = 25

    def __post_init__(self) -> None:
        if self.every < 1:
            raise ValueError(f"halving.every is at least 1 epoch, not {self.every}")

    def __call__(self, step: int, epoch: int, total: int) -> float:
        return 0.5 ** ((step // epoch + 1) // self.every)


@dataclass(frozen=True)
class Linear:
    """Up from 0 over the first ``warmup`` share of all steps, then down to 0 in a straight line."""

    warmup: float = 0.1

    def __call__(self, step: int, epoch: int, total: int) -> float:
        return ramp(step, total, self.warmup, lambda left: left)


@dataclass(frozen=True)
class Cosine:
    """As ``Linear``, but down along half a cosine."""

    warmup: float = 0.1

    def __call__(self, step: int, epoch: int, total: int) -> float:
        return ramp(step, total, self.warmup, lambda left: (1 - cos(pi * left)) / 2)


@dataclass(frozen=True)
class Triangle:
    """Up from ``low`` to 1 and down again in straight lines, once in ``every`` epochs (Smith 2017).

    A high rate leaves a poor minimum, the low one after it settles in a better one.
    """

    low: float = 0.02
    every: int = 20

    def __post_init__(self) -> None:
        if self.every < 1 or not 0 < self.low <= 1:
            came = f"every = {self.every}, low = {self.low}"
            raise ValueError(f"triangle takes every ≥ 1 epoch and 0 < low ≤ 1, not {came}")

    def __call__(self, step: int, epoch: int, total: int) -> float:
        cycle = self.every * epoch
        share = 1 - abs(2 * (step % cycle) / cycle - 1)  # 0 at the ends, 1 in the middle
        return self.low + (1 - self.low) * share


SCHEDULES: dict[str, Callable[..., Any]] = {
    "constant": Constant,
    "halving": Halving,
    "linear": Linear,
    "cosine": Cosine,
    "triangle": Triangle,
}


def ramp(step: int, total: int, warmup: float, down: Callable[[float], float]) -> float:
    """Rise for a share of the steps, then fall as ``down`` maps the share that is left."""
    rising = round(warmup * total)
    if step < rising:
        return (step + 1) / (rising + 1)
    return down((total - step) / max(total - rising, 1))
