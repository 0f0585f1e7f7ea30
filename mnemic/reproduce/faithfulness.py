"""Measure supporting facts and faithfulness on the bAbI tasks with labeled facts."""

from collections.abc import Sequence

import torch
from torch import Tensor

from mnemic.data.babi.batches import StoryDataset
from mnemic.evaluate.by_task import percent_by_task
from mnemic.evaluate.evidence import AblationResult, run_ablations
from mnemic.models import MemoryNetwork
from mnemic.reproduce.train_ensemble import stack_networks

SUPPORTED_TASKS = (1, 2, 3)  # with one, two and three supporting facts
MAX_QUESTIONS = 1000  # test questions per task, as many as in the official files


def measure_evidence_per_run(
    networks: Sequence[MemoryNetwork], dataset: StoryDataset, device: torch.device
) -> list[dict[int, dict[str, float]]]:
    """Measure each run's evidence on its ``SUPPORTED_TASKS``, in percent of the test questions.

    ``supporting``: the most-read sentence is a supporting fact. ``most_read``: the answer changes
    if that sentence is removed. ``other``: it changes if a random other sentence is removed.
    """
    rows = [(dataset.task == task).nonzero().squeeze(1)[:MAX_QUESTIONS] for task in SUPPORTED_TASKS]
    supported = dataset.select(torch.cat(rows))
    if not len(supported):
        return [{} for _ in networks]
    generator = torch.Generator().manual_seed(0)
    ablations = run_ablations(stack_networks(networks).to(device), supported.to(device), generator)
    tensors_by_run = (tensor.cpu().view(len(networks), -1) for tensor in ablations)
    return [compute_percentages(AblationResult(*run), supported.task.cpu()) for run in zip(*tensors_by_run)]


def measure_evidence(network: MemoryNetwork, dataset: StoryDataset) -> dict[int, dict[str, float]]:
    """Measure the evidence of one network, on its device; see ``measure_evidence_per_run``."""
    return measure_evidence_per_run([network], dataset, dataset.device)[0]


def compute_percentages(ablations: AblationResult, tasks: Tensor) -> dict[int, dict[str, float]]:
    """Compute one run's ablation results as percentages per task; ``tasks`` of the questions."""
    other_tasks = tasks[ablations.has_other]
    percentages = {
        "supporting": percent_by_task(ablations.is_supporting, tasks),
        "most_read": percent_by_task(ablations.changes_without_most_read[ablations.has_other], other_tasks),
        "other": percent_by_task(ablations.changes_without_random[ablations.has_other], other_tasks),
    }
    return {
        task: {name: percentage_by_task[task] for name, percentage_by_task in percentages.items()}
        for task in other_tasks.unique().tolist()
    }
