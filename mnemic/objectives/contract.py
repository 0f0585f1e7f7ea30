"""The result of every objective: a summed loss, a count of targets, and carried state.

An objective is called with ``(network, batch, carried)`` and returns a ``Loss``. Class attribute
``replaces``, if it has one: the kind of objective whose data and responses fit it, too.
``needs_teacher``: its constructor takes ``teachers``, the networks of a recipe's ``[teacher]``;
``needs_trained_teacher``: none of them learns beside the student.
``ranks_texts``: some of them score a question with a text. ``wraps``: its option that is another
objective, which decides what data fits. ``contrasts_batch``: its loss compares all examples of a
batch. ``train.accumulate`` then divides the work and not the loss: the constructor takes the number
of ``shards``, and the ``batch`` size. ``fits_layout``: the layout of all data that fits, whatever
its targets. An objective may be a module with weights, which are trained with the network's; its
constructor then takes ``network``. ``needs_generator``: the network has a ``generator``, too.
``single_process``: it cannot be trained by several processes.
The table of objectives is ``OBJECTIVES`` in
``mnemic.objectives``.
"""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

CarriedState = dict[str, Tensor]  # by name, so that a checkpoint can store it


class Loss(NamedTuple):
    """A summed loss and its number of targets.

    The training loop divides one by the other, over all processes at once.
    """

    total: Tensor
    num_targets: Tensor
    carried: CarriedState | None = None  # for the next batch: a segment memory, a queue ...
    means: CarriedState | None = None  # of each loss by name, where there are several, for the log


def sum_weighted(losses: Mapping[str, Loss], weights: Mapping[str, float]) -> Loss:
    """Sum the mean losses, each times the weight of its name.

    The result is scaled by the number of targets of the first loss. Training divides by that number
    and so gets the sum of weighted means; over several batches or processes each batch counts by
    those targets. A loss without targets adds nothing. ``means`` has each mean, for the log.
    """
    num_targets = next(iter(losses.values())).num_targets.clamp(min=1)
    means = {name: loss.total / loss.num_targets.clamp(min=1) for name, loss in losses.items()}
    total = torch.stack([weights[name] * mean for name, mean in means.items()]).sum()
    detached_means = {name: mean.detach() for name, mean in means.items()}
    return Loss(total * num_targets, num_targets, means=detached_means)
