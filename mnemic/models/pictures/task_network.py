"""A network that does several tasks with pictures and texts.

Shapes: b examples, c channels, y rows and x columns of pixels, n regions, m words, d width.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mnemic.models.contract import BaseNetwork
from mnemic.respond.pictures.tasks import TASKS, TaskDecoder, TaskLogits


class TaskInputs(NamedTuple):
    """A batch of one task: pictures, texts or both."""

    task: int  # its number in TASKS
    pictures: Tensor | None = None  # b c y x
    words: Tensor | None = None  # b m, ids
    mask: Tensor | None = None  # b m, True = a real word


class TaskOutput(NamedTuple):
    """What a network answers to one task."""

    logits: TaskLogits
    regions: Tensor | None = None  # b n d
    words: Tensor | None = None  # b m d


class TaskNetwork(BaseNetwork):
    """Encode pictures and words (I), and answer with the queries of a task (R).

    UniT (Hu and Singh 2021). A task's text begins with a token of its own, after the vocabulary,
    whose state is dropped.
    """

    def __init__(self, encode: Any, ask: Any, respond: TaskDecoder, first_task_id: int) -> None:
        super().__init__()
        self.encode, self.ask, self.respond, self.first_task_id = encode, ask, respond, first_task_id

    def dummy_inputs(self, sizes: Mapping[str, Any]) -> TaskInputs:
        """Make two pictures with questions."""
        words = torch.ones(2, sizes["max_length"], dtype=torch.long)
        pictures = torch.zeros(2, sizes["channels"], sizes["side"], sizes["side"])
        return TaskInputs(TASKS.index("questions"), pictures, words, words > 0)

    def forward(self, inputs: TaskInputs) -> TaskOutput:
        """Answer one task for a batch."""
        regions = None if inputs.pictures is None else self.encode(inputs.pictures)
        words = None
        if inputs.words is not None and inputs.mask is not None:
            task_ids = torch.full_like(inputs.words[:, :1], self.first_task_id + inputs.task)
            tokens = torch.cat([task_ids, inputs.words], 1)
            words = self.ask(tokens, torch.cat([torch.ones_like(inputs.mask[:, :1]), inputs.mask], 1))[:, 1:]
        return TaskOutput(self.respond(inputs.task, regions, words, inputs.mask), regions, words)
