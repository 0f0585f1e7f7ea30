"""The weight of a teacher's loss, step by step."""

import torch

from mnemic.objectives.contract import CarriedState
from mnemic.recipe import ConfigError


class SoftLossSchedule:
    """Weigh a teacher's loss: 0 for ``delay`` steps, then growing for ``ramp_up`` steps.

    A teacher that learns beside its student knows nothing at first: Algorithm 1 of Xu et al. 2020
    (arXiv:1907.05171) leaves its loss out for k steps, which is ``delay``. ``name`` is that of the
    counter of steps in the carried state, which has none where the weight never changes.
    """

    def __init__(self, weight: float, *, delay: int, ramp_up: int, name: str) -> None:
        if delay < 0 or ramp_up < 0:
            raise ConfigError(f"delay and ramp_up are numbers of steps from 0 on, not {delay} and {ramp_up}")
        self.weight, self.delay, self.ramp_up, self.name = weight, delay, ramp_up, name

    @property
    def counts_steps(self) -> bool:
        """Whether the weight depends on the step."""
        return self.delay + self.ramp_up > 0

    def at_step(self, step: int) -> float:
        """Return the weight of a step, counted from 0.

        >>> weight = SoftLossSchedule(0.6, delay=2, ramp_up=3, name="step")
        >>> [round(weight.at_step(step), 1) for step in range(6)]
        [0.0, 0.0, 0.2, 0.4, 0.6, 0.6]
        """
        if step < self.delay:
            return 0.0
        return self.weight * min(step - self.delay + 1, self.ramp_up) / self.ramp_up if self.ramp_up else self.weight

    def read(self, carried: CarriedState | None) -> float:
        """Return the weight of the step that ``carried`` comes to."""
        return self.at_step(self.read_step(carried))

    def count(self, carried: CarriedState | None) -> CarriedState | None:
        """Return the carried state of the next step."""
        if not self.counts_steps:
            return carried
        return {**(carried or {}), self.name: torch.tensor(self.read_step(carried) + 1)}

    def read_step(self, carried: CarriedState | None) -> int:
        """Read the number of steps so far."""
        return int(carried[self.name]) if carried and self.name in carried else 0
