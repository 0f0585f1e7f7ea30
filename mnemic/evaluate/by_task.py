"""Errors by task, and their mean."""

from collections.abc import Sequence

from torch import Tensor


def percent_by_task(flags: Tensor, tasks: Tensor) -> dict[int, float]:
    """Compute the percentage of true ``flags`` (q) for each task."""
    flags_by_task = {task: flags[tasks == task] for task in tasks.unique().tolist()}
    return {task: 100 * int(task_flags.sum()) / len(task_flags) for task, task_flags in flags_by_task.items()}


def count_by_task(tasks: Tensor) -> dict[int, int]:
    """Count the questions of each task (q)."""
    return {task: int((tasks == task).sum()) for task in tasks.unique().tolist()}


def mean_error(task_errors: Sequence[float]) -> float:
    """Compute the unweighted mean error over tasks, as the papers report it."""
    return sum(task_errors) / len(task_errors)
