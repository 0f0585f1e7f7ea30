"""Keep the best weights on the validation set, and decide when to stop early."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.checkpoint.folder import stored_tensors_of
from mnemic.checkpoint.tensors import select_tensors
from mnemic.recipe import ConfigError
from mnemic.train.optim.clipping import expand_runs
from mnemic.train.phases import Phase


class BestWeights:
    """The weights with the lowest validation error so far, per run.

    Several runs may be stacked in one network. Of equally good weights the later ones are kept.
    They stay on the device of the network.
    """

    def __init__(self) -> None:
        self.weights: dict[str, Tensor] = {}
        self.error: Tensor | None = None  # a scalar, or one per run
        self.bad_evals = 0  # evaluations in a row that were better for no run

    @torch.no_grad()
    def update(self, network: nn.Module, error: Tensor) -> None:
        """Keep the current weights of each run whose ``error`` is not higher than before.

        ``error`` is a scalar, or one number per run.
        """
        current = stored_tensors_of(network)
        if self.error is None:
            self.error, self.weights = (error, {name: weight.clone() for name, weight in current.items()})
            return
        better = error <= self.error
        self.bad_evals = 0 if (error < self.error).any() else self.bad_evals + 1
        self.error = torch.where(better, error, self.error)
        for name, weight in current.items():
            mask = expand_runs(better, weight).to(weight.device)
            self.weights[name] = torch.where(mask, weight, self.weights[name])

    @torch.no_grad()
    def copy_to(self, network: nn.Module) -> None:
        """Copy the best weights into the network, if there was any evaluation."""
        for name, weight in stored_tensors_of(network).items():
            if name in self.weights:
                weight.copy_(self.weights[name])

    def should_stop(self, patience: int) -> bool:
        """Whether ``patience`` evaluations in a row were no better; 0: never."""
        return 0 < patience <= self.bad_evals

    def state_dict(self) -> dict[str, Tensor]:
        """Return all tensors for a checkpoint: best.error, best.bad_evals, best.weights.*."""
        if self.error is None:
            return {}
        weights = {f"best.weights.{name}": weight.cpu() for name, weight in self.weights.items()}
        counters = {"best.error": self.error.cpu(), "best.bad_evals": torch.tensor(self.bad_evals)}
        return counters | weights

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Tensor], device: torch.device) -> "BestWeights":
        """Restore the best weights from ``state_dict``."""
        best = cls()
        best.error, best.bad_evals = state.get("best.error"), int(state.get("best.bad_evals", 0))
        best.weights = select_tensors(state, "best.weights.", device)
        return best


def check_validation_data(phases: Sequence[Phase], data: Any) -> None:
    """Raise an error if a phase keeps the best weights but has no validation data."""
    if any(phase.settings.keep == "best" for phase in phases) and not len(data.validation):
        raise ConfigError('train.keep = "best" needs validation questions: set data.validation above 0')
