"""What every objective returns: a sum, a count, and the state to carry on with."""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

Carried = dict[str, Tensor]  # by name, so that a checkpoint can hold it


class Loss(NamedTuple):
    """A summed loss and what it is a sum of; whoever trains divides, over all processes at once."""

    total: Tensor
    targets: Tensor  # how many were asked for
    carried: Carried | None = None  # for the next batch: a segment memory, a queue ...
    parts: Carried | None = None  # the mean of each loss of a sum of several, for the log


def weighted(losses: Mapping[str, Loss], weights: Mapping[str, float]) -> Loss:
    """The sum of mean losses, each times the weight of its name.

    It is told as a sum over the targets of the first loss, so that training, which divides by
    their number, gets the weighted means; over several batches or processes each counts by those
    targets. A loss that asked for nothing adds nothing. ``parts`` has each mean, for the log.
    """
    if unknown := [name for name in losses if name not in weights]:
        raise ValueError(f"no weight for the loss {unknown[0]!r}; weights: {sorted(weights)}")
    first = next(iter(losses.values()))
    targets = first.targets.clamp(min=1)
    means = {name: loss.total / loss.targets.clamp(min=1) for name, loss in losses.items()}
    total = torch.stack([weights[name] * mean for name, mean in means.items()]).sum()
    parts = {name: mean.detach() for name, mean in means.items()}
    return Loss(total * targets, targets, parts=parts)
