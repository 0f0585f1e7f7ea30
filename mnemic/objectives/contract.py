"""What every objective returns: a sum, a count, and the state to carry on with."""

from typing import NamedTuple

from torch import Tensor

Carried = dict[str, Tensor]  # by name, so that a checkpoint can hold it


class Loss(NamedTuple):
    """A summed loss and what it is a sum of; whoever trains divides, over all processes at once."""

    total: Tensor
    targets: Tensor  # how many were asked for
    carried: Carried | None = None  # for the next batch: a segment memory, a queue ...
