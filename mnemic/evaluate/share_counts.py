"""Count the examples that a share is a mean of.

Metrics that are means of values from 0 to 1 have an interval, which depends on their number.
Others, such as AUROC or a mean over tasks, have none.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from mnemic.data.multi_task.batches import MultiTaskDataset
from mnemic.data.pictures.alignment import AlignmentDataset
from mnemic.data.pictures.tasks import TaskDataset
from mnemic.data.text_tasks.batches import TextDataset
from mnemic.evaluate.answer_thresholds import SpanPrediction
from mnemic.evaluate.generation_metrics import EXACT, EXACT_BEAMS
from mnemic.evaluate.pictures.alignment import POINTING, POINTING_SMALLEST, RANKS
from mnemic.evaluate.view_metrics import RECALL_RANKS
from mnemic.respond.pictures.tasks import DETECTION, TASKS

Counts = dict[str, int]
RECALL_NAMES = tuple(f"recall@{top_k}{variant}" for variant in ("", ", whole") for top_k in RECALL_RANKS)


def count_shares(network: nn.Module, dataset: Any, predictions: Sequence[SpanPrediction]) -> Counts:
    """Count the examples of each metric that is a share; a reader has ``predictions``."""
    if dataset.metrics in COUNTERS:
        return COUNTERS[dataset.metrics](network, dataset)
    if dataset.metrics not in ("spans", "retrieval"):
        return dict.fromkeys(SHARES.get(dataset.metrics, ()), len(dataset))
    if dataset.metrics == "spans":
        counts = dict.fromkeys(("f1", "exact", "no answer"), len(predictions))
    else:  # answers of a retrieval set are of the questions that have one
        counts = dict.fromkeys(("f1", "exact"), sum(case.has_answer for case in predictions))
        if dataset.retrieval is not None:
            counts |= dict.fromkeys(RECALL_NAMES, len(dataset.retrieval.gold_texts))
    return counts | count_domains(predictions)


def count_domains(predictions: Sequence[SpanPrediction]) -> Counts:
    """Count the questions with an answer of each domain: F1 and exact match are theirs."""
    domains = Counter(case.domain for case in predictions if case.has_answer and case.domain)
    return {f"{name}, {domain}": count for domain, count in domains.items() for name in ("f1", "exact")}


def count_alignment(network: nn.Module, dataset: AlignmentDataset) -> Counts:
    """Count scenes, and the words that name an object."""
    batch = dataset.batch(torch.arange(len(dataset), device=dataset.device), compact=False)
    recall = {f"{name} r@{top_k}": len(dataset) for name in ("captions", "pictures") for top_k in RANKS}
    return recall | dict.fromkeys((POINTING, POINTING_SMALLEST), int((batch.objects >= 0).sum()))


def count_tasks(network: Any, dataset: TaskDataset) -> Counts:
    """Count the texts of each task, and the objects that a box is matched with."""
    counts = {name: int(texts.counts.sum()) for name, texts in zip(TASKS[1:], dataset.texts)}
    num_queries = len(network.respond.queries[DETECTION])
    return counts | {"colors": int(dataset.boxes.mask.sum(1).clamp(max=num_queries).sum())}


def count_multi_task(network: nn.Module, dataset: MultiTaskDataset) -> Counts:
    """Count the texts of the tasks that are measured by their accuracy."""
    tasks = zip(dataset.names, dataset.datasets)
    return {name: len(of_task) for name, of_task in tasks if of_task.metric == "accuracy"}


def count_views(network: nn.Module, dataset: TextDataset) -> Counts:
    """Count the texts whose partner is searched for."""
    assert dataset.retrieval is not None
    return dict.fromkeys((f"recall@{top_k}" for top_k in RECALL_RANKS), len(dataset.retrieval.gold_texts))


# By the name that a dataset has for its metrics; these are of all examples.
SHARES: dict[str, tuple[str, ...]] = {
    "captions": (EXACT,),
    "classes": ("accuracy",),
    "copies": ("whole texts",),
    "picture-classes": ("accuracy",),
    "seq2seq": (EXACT, EXACT_BEAMS),
}
COUNTERS: dict[str, Callable[[Any, Any], Counts]] = {
    "alignment": count_alignment,
    "multi-task": count_multi_task,
    "tasks": count_tasks,
    "views": count_views,
}
