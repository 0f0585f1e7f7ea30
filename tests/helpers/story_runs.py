"""Make network inputs from stories of word ids, and train a small network."""

from collections.abc import Sequence
from typing import Any

import torch

from mnemic.models import MemoryNetwork, StoryInputs
from mnemic.reproduce.train_ensemble import create_networks, train_ensemble


def inputs_of(stories: Sequence[tuple[list[list[int]], list[int]]], *, width: int = 0, length: int = 0) -> StoryInputs:
    """Make inputs with one text per sentence and question, padded."""
    texts = [text for story, question in stories for text in (*story, question)]
    width = max(width, *(len(text) for text in texts))
    table = torch.tensor([text + [0] * (width - len(text)) for text in texts])
    max_sentences = max(length, *(len(story) for story, _ in stories))
    story_rows = torch.full((len(stories), max_sentences), -1)
    questions, row = [], 0
    for number, (story, _) in enumerate(stories):
        story_rows[number, : len(story)] = torch.arange(row, row + len(story))
        questions.append([row + len(story)])
        row += len(story) + 1
    return StoryInputs(table, table > 0, story_rows, torch.tensor(questions))


def trained(recipe: dict[str, Any], data: Any, seed: int) -> MemoryNetwork:
    networks = create_networks(recipe, data, [seed])
    pools = [torch.arange(len(data.train))]
    for _ in train_ensemble(recipe, data, networks, seeds=[seed], rows_per_run=pools, device=torch.device("cpu")):
        pass
    return networks[0]
