"""What the runs of a table read: proof and faithfulness on the tasks that have single facts."""

from collections.abc import Sequence
from typing import Any

import torch

from mnemic.data.babi.batches import Stories
from mnemic.evaluate.error_rate import by_task
from mnemic.evaluate.evidence import Trial, trials
from mnemic.models import Network
from mnemic.recipe import Recipe
from mnemic.reproduce.train_ensemble import together
from mnemic.train.initialize import same_weights

PROVEN = (1, 2, 3)  # one, two and three sentences of a story prove the answer
ENOUGH = 1000  # test questions a task, as many as the official files have


def read_many(
    recipe: Recipe, data: Any, networks: Sequence[Network], device: torch.device
) -> list[dict[int, dict[str, float]]]:
    """Of every run, for each of the ``PROVEN`` tasks it answers, in percent of the test questions:

    ``supporting``: the most-read sentence proves the answer. ``most_read``: the answer changes if
    that sentence is taken out. ``other``: it changes if another one is, as the dice fall.
    """
    stories = proven(data.test)
    if not len(stories):
        return [{} for _ in networks]
    own = [same_weights(recipe["model"], data.sizes, network) for network in networks]
    dice = torch.Generator().manual_seed(0)
    found = trials(together(own).to(device), stories.to(device), dice)
    parts = (part.cpu().view(len(own), -1) for part in found)
    return [shares(Trial(*run), stories) for run in zip(*parts)]


def read_network(network: Network, asked: Stories) -> dict[int, dict[str, float]]:
    """The same of one network, where it is."""
    stories = proven(asked)
    if not len(stories):
        return {}
    return shares(trials(network, stories, torch.Generator().manual_seed(0)), stories)


def proven(stories: Stories) -> Stories:
    """The questions that are asked: of each of the ``PROVEN`` tasks the first ``ENOUGH``."""
    rows = [(stories.task == task).nonzero().squeeze(1)[:ENOUGH] for task in PROVEN]
    return stories.only(torch.cat(rows))


def shares(tried: Trial, stories: Stories) -> dict[int, dict[str, float]]:
    """One run's trials as percentages, task by task."""
    rest = stories.task[tried.asked]
    figures = {
        "supporting": by_task(tried.proves, stories.task),
        "most_read": by_task(tried.most_read[tried.asked], rest),
        "other": by_task(tried.other[tried.asked], rest),
    }
    tasks = rest.unique().tolist()
    return {task: {name: own[task] for name, own in figures.items()} for task in tasks}
