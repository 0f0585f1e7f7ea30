"""Keep the weights that did best on the validation set, for one run or for many at once."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.recipe import ConfigError
from mnemic.train.phases import Phase


class Best:
    """The weights at the lowest validation error so far; of many runs each has its own best.

    Of equally good ones the later are kept. What is kept lies on the weights' own device.
    """

    def __init__(self) -> None:
        self.kept: dict[str, Tensor] = {}
        self.error: Tensor | None = None  # one number, or one a run
        self.waited = 0  # offers in a row that were better for no run

    @torch.no_grad()
    def offer(self, network: nn.Module, error: Tensor) -> None:
        """Keep the weights of those runs whose ``error`` (one number, or one a run) is lower."""
        now = {name: weight.detach() for name, weight in network.named_parameters()}
        if self.error is None:
            self.error, self.kept = error, {name: weight.clone() for name, weight in now.items()}
            return
        better = error <= self.error
        self.waited = 0 if (error < self.error).any() else self.waited + 1
        self.error = torch.where(better, error, self.error)
        for name, weight in now.items():
            chosen = better.view(*better.shape, *[1] * (weight.dim() - better.dim()))
            self.kept[name] = torch.where(chosen.to(weight.device), weight, self.kept[name])

    @torch.no_grad()
    def put_back(self, network: nn.Module) -> None:
        """Give the network what was kept, if anything was ever offered."""
        for name, weight in network.named_parameters():
            if name in self.kept:
                weight.copy_(self.kept[name])

    def stale(self, patience: int) -> bool:
        """Whether nothing has got better for so long that training may end; 0: never."""
        return 0 < patience <= self.waited

    def state(self) -> dict[str, Tensor]:
        """Everything as plain tensors, for a checkpoint: best.error, best.waited, best.weights.…"""
        if self.error is None:
            return {}
        weights = {f"best.weights.{name}": weight.cpu() for name, weight in self.kept.items()}
        told = {"best.error": self.error.cpu(), "best.waited": torch.tensor(self.waited)}
        return told | weights

    @classmethod
    def restored(cls, state: Mapping[str, Tensor], device: torch.device) -> "Best":
        """The inverse of ``state``; nothing is kept where nothing was."""
        best, start = cls(), "best.weights."
        best.error = state.get("best.error")
        best.waited = int(state.get("best.waited", 0))
        best.kept = {
            name.removeprefix(start): weight.to(device)
            for name, weight in state.items()
            if name.startswith(start)
        }
        return best


def check_keep(plan: Sequence[Phase], data: Any) -> None:
    """The best can only be kept where something was held back to tell it by."""
    if any(phase.settings.keep == "best" for phase in plan) and not len(data.validation):
        raise ConfigError(
            'train.keep = "best" needs validation questions: set data.validation above 0'
        )
