"""Dataset of several tasks, whose batches say which task each text is of.

Shapes: e texts of all tasks, w windows, t tokens, b texts of a batch.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor

from mnemic.data.text_tasks.batches import TextBatch, TextDataset

SEPARATOR = ": "  # between a task and its class, in the name of an output


class TaskOutputs(NamedTuple):
    """The outputs for one task: ``num_outputs`` logits from ``first`` on, or one number."""

    first: int
    num_outputs: int
    is_number: bool


class MultiTaskTargets(NamedTuple):
    """The targets of a batch of several tasks."""

    values: Tensor  # b, a class of the task or a number; IGNORE where the class is unknown
    first: Tensor  # b, the first output of the text's task
    num_outputs: Tensor  # b, how many outputs it has
    is_number: Tensor  # b


@dataclass(frozen=True, kw_only=True)
class MultiTaskDataset(TextDataset):
    """The texts of several tasks, one task after the other.

    ``datasets`` are those of the tasks by themselves, which networks are measured on.
    """

    groups: Tensor  # e, the number of each text's task
    outputs: Tensor  # 3 tasks: first, num_outputs, is_number
    datasets: tuple[TextDataset, ...]
    names: tuple[str, ...]

    @property
    def num_unknown(self) -> int:
        """Count the texts whose label does not occur in training."""
        return sum(dataset.num_unknown for dataset in self.datasets)

    def batch(
        self, rows: Tensor, uniforms: Tensor | None = None, *, compact: bool = True, max_length: int | None = None
    ) -> TextBatch:
        """Return the texts ``rows`` (b) with all their windows, and the targets of their tasks."""
        batch = super().batch(rows, uniforms, compact=compact, max_length=max_length)
        first, num_outputs, is_number = self.outputs[:, self.groups[rows]]
        targets = MultiTaskTargets(self.targets[rows], first, num_outputs, is_number.bool())
        return batch._replace(targets=targets)


def join_datasets(datasets: Mapping[str, TextDataset], outputs: Mapping[str, TaskOutputs]) -> MultiTaskDataset:
    """Join the datasets of tasks, in the order of their names."""
    texts = list(datasets.values())
    counts = [len(dataset) for dataset in texts]
    tokens = list(accumulate((len(dataset.tokens) for dataset in texts), initial=0))
    windows = list(accumulate((len(dataset.text_start) for dataset in texts), initial=0))

    def concatenate(name: str) -> Tensor:
        return torch.cat([getattr(dataset, name) for dataset in texts])

    starts = [dataset.window_starts[:-1] + offset for dataset, offset in zip(texts, tokens)]
    firsts = [dataset.first_window[:-1] + offset for dataset, offset in zip(texts, windows)]
    return MultiTaskDataset(
        metrics="multi-task",
        metric="mean",
        examples=[example for dataset in texts for example in dataset.examples],
        tokenizer=texts[0].tokenizer,
        labels=name_outputs(datasets),
        targets=torch.cat([dataset.targets.float() for dataset in texts]),
        window_starts=torch.cat([*starts, torch.tensor([tokens[-1]])]),
        first_window=torch.cat([*firsts, torch.tensor([windows[-1]])]),
        groups=torch.arange(len(texts)).repeat_interleave(torch.tensor(counts)),
        outputs=torch.tensor([outputs[name] for name in datasets], dtype=torch.long).mT,
        datasets=tuple(texts),
        names=tuple(datasets),
        tokens=concatenate("tokens"),
        segments=concatenate("segments"),
        answer_mask=concatenate("answer_mask"),
        text_start=concatenate("text_start"),
        token_range=concatenate("token_range"),
        token_counts=concatenate("token_counts"),
    )


def name_outputs(datasets: Mapping[str, TextDataset]) -> tuple[str, ...]:
    """Name the outputs of all tasks: those of classes, and one for a number."""
    return tuple(
        f"{name}{SEPARATOR}{label}" for name, dataset in datasets.items() for label in dataset.labels or ("number",)
    )
