"""Supporting facts and faithfulness per task: what tables report, computed plainly."""

from typing import NamedTuple

import torch
from torch import nn

from mnemic.data.babi.batches import StoryDataset
from mnemic.evaluate.by_task import percent_by_task
from mnemic.evaluate.evidence import find_most_read, run_ablations
from mnemic.models.evaluating import evaluating


class Faithfulness(NamedTuple):
    """How often the answer changes if a sentence is removed, in percent per task."""

    most_read: dict[int, float]
    random_other: dict[int, float]  # a random one of the other sentences


def measure_supporting_facts(network: nn.Module, dataset: StoryDataset) -> dict[int, float]:
    """Measure how often the most-read sentence is a supporting fact, in percent per task.

    A question counts even if no supporting fact is left in memory.
    """
    inputs = dataset.batch(torch.arange(len(dataset))).inputs
    with evaluating(network), torch.no_grad():
        sentence_ids = find_most_read(network(inputs), inputs.story)  # q 1
    return percent_by_task(dataset.facts.gather(1, sentence_ids).squeeze(1), dataset.task)


def measure_faithfulness(network: nn.Module, dataset: StoryDataset, generator: torch.Generator) -> Faithfulness:
    """Measure how often the answer changes without the most-read, or a random other, sentence.

    The sentence is removed from the story before it is written. Questions with a single sentence
    in memory are skipped. ``generator`` is on the CPU, whatever the device of the stories.
    """
    ablations = run_ablations(network, dataset, generator)
    task = dataset.task[ablations.has_other]
    percentages = (
        percent_by_task(is_changed[ablations.has_other], task)
        for is_changed in (ablations.changes_without_most_read, ablations.changes_without_random)
    )
    return Faithfulness(*percentages)
