"""The loss of several tasks: each text counts by its task's outputs.

Shapes: b texts, c outputs of all tasks.
"""

from typing import Any

import torch
from torch import Tensor, nn

from mnemic.data.multi_task.batches import MultiTaskTargets
from mnemic.memory.contract import MASKED_SCORE
from mnemic.models import IGNORE
from mnemic.objectives.answer import cross_entropy
from mnemic.objectives.contract import CarriedState, Loss
from mnemic.respond.merge_windows import average_windows


class MultiTaskLoss:
    """Cross-entropy of classes and squared error of numbers, task by task (MT-DNN).

    Liu et al. 2019, arXiv:1901.11504, Algorithm 1. Each text counts once. A batch is of one task;
    the loss is the same if texts of several are in it.
    """

    def __call__(self, network: nn.Module, batch: Any, carried: CarriedState | None = None) -> Loss:
        targets: MultiTaskTargets = batch.targets
        logits = average_windows(network(batch.inputs).logits, batch.owner, len(targets.values))  # b c
        has_target = targets.values != IGNORE
        columns = targets.values.long() + targets.first
        columns = columns.masked_fill(targets.is_number | ~has_target, IGNORE)
        class_loss, num_classes = cross_entropy(hide_other_tasks(logits, targets), columns)
        numbers = logits.gather(1, targets.first.unsqueeze(1)).squeeze(1)  # b
        is_number = targets.is_number & has_target
        number_loss = ((numbers - targets.values).square() * is_number).sum()
        return Loss(class_loss + number_loss, num_classes + is_number.sum(), carried)


def hide_other_tasks(logits: Tensor, targets: MultiTaskTargets) -> Tensor:
    """Hide the outputs of other tasks than each text's own: b c → b c."""
    columns = torch.arange(logits.shape[1], device=logits.device)
    first, num_outputs = targets.first.unsqueeze(1), targets.num_outputs.unsqueeze(1)
    return logits.masked_fill((columns < first) | (columns >= first + num_outputs), MASKED_SCORE)
