"""Tasks of sequences: each learns one beside masked tokens (ERNIE 2).

Shapes: b batch, n tokens.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from mnemic.models import IGNORE, WindowBatch
from mnemic.objectives.pretraining.views import check_positive_shares
from mnemic.objectives.uniforms import draw_choices
from mnemic.recipe import ConfigError, join_words

TASK_KEY = 0x65726E6965  # so that tasks are independent of masks
# By the name of their loss; their places are the numbers of their vectors.
PRETRAINING_TASKS = ("mlm", "repeats", "nsp")


class SequenceTasks:
    """Draw one task for each sequence, and put its number into the input (ERNIE 2).

    Sun et al. 2020, arXiv:1907.12412, section 4.1: an embedding of the task is added to those of
    token, segment and position. ``shares`` say how often each task is drawn. Every sequence has
    masked tokens, as in the authors' code; the loss of another task counts in its sequences alone.
    Where we differ: tasks are drawn for sequences, not for batches.
    """

    def __init__(self, shares: Mapping[str, float], weights: Mapping[str, float], network: Any = None) -> None:
        if unknown := [name for name in shares if name not in PRETRAINING_TASKS]:
            raise ConfigError(f"objective.tasks has no {unknown[0]!r}; it has {join_words(PRETRAINING_TASKS)}")
        check_positive_shares("tasks", shares)
        for name in PRETRAINING_TASKS[1:]:
            if (weights[name] > 0) != (shares.get(name, 0) > 0):
                raise ConfigError(
                    f"objective.{name} is {weights[name]}, and its share of objective.tasks {shares.get(name, 0)}: "
                    "a task has both above 0, or neither"
                )
        if network is not None and getattr(network.encode, "num_tasks", 0) != len(PRETRAINING_TASKS):
            raise ConfigError(
                f"objective.tasks tells tasks by vectors: set model.encode.embeddings.tasks={len(PRETRAINING_TASKS)}"
            )
        self.shares = torch.tensor([shares.get(name, 0.0) for name in PRETRAINING_TASKS], dtype=torch.float64)

    def draw(self, seeds: Tensor) -> Tensor:
        """Draw the number of a task for each sequence by its seed, b."""
        return draw_choices(seeds ^ TASK_KEY, self.shares)


def add_task_ids(inputs: WindowBatch, task_numbers: Tensor | int) -> WindowBatch:
    """Add the number of each sequence's task, b or one for all, to inputs."""
    numbers = torch.as_tensor(task_numbers, device=inputs.tokens.device).view(-1, 1)
    return inputs._replace(task_ids=numbers.expand_as(inputs.tokens))


def keep_task(batch: Any, task_numbers: Tensor) -> Any:
    """Keep the labels of next sentences where they are a sequence's task."""
    is_other = task_numbers != PRETRAINING_TASKS.index("nsp")
    return batch._replace(next_sentence_labels=batch.next_sentence_labels.masked_fill(is_other, IGNORE))


def hide_other_texts(batch: Any, task_numbers: Tensor) -> Any:
    """Make all tokens special in sequences without the task of repeated tokens."""
    is_other = task_numbers != PRETRAINING_TASKS.index("repeats")
    return batch._replace(unmaskable=batch.unmaskable | is_other.unsqueeze(1))
