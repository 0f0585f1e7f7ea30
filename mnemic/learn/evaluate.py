"""How often a network answers wrongly, task by task.

Shapes: q questions; with many runs a runs axis in front.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from mnemic.data.stories.tensors import Stories

AT_ONCE = 500  # questions a batch: memory, not results, depends on it


@torch.no_grad()
def predict(network: nn.Module, stories: Stories, rows: Tensor) -> Tensor:
    """The answer's word id for each question in ``rows`` (q, or runs q for many runs)."""
    if not rows.numel():
        return rows
    was = network.training
    network.eval()
    compact = not stories.texts.is_cuda
    parts = [
        network(stories.batch(part, compact=compact).inputs).scores.squeeze(-2).argmax(-1)
        for part in rows.split(AT_ONCE, -1)
    ]
    network.train(was)
    return torch.cat(parts, -1)


def wrong(network: nn.Module, stories: Stories, rows: Tensor) -> Tensor:
    """True where the answer is not the right one."""
    return predict(network, stories, rows) != stories.answer[rows]


def task_errors(network: nn.Module, stories: Stories) -> dict[int, float]:
    """The error of each task in percent, for one network."""
    rows = torch.arange(len(stories), device=stories.answer.device)
    return by_task(wrong(network, stories, rows), stories.task)


def by_task(wrong: Tensor, tasks: Tensor) -> dict[int, float]:
    """Percent wrong, task by task."""
    found = {task: wrong[tasks == task] for task in tasks.unique().tolist()}
    return {task: 100 * int(own.sum()) / len(own) for task, own in found.items()}


def mean(errors: Sequence[float]) -> float:
    """The unweighted mean over tasks, as the papers print it."""
    return sum(errors) / len(errors)
