"""Compute error rates per task, and the validation error that selects the best weights.

Shapes: q questions; stacked networks have a leading axis of runs.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from mnemic.data.contract import Dataset, QuestionDataset
from mnemic.data.long_context.batches import TOKEN_TARGETS
from mnemic.evaluate.by_task import count_by_task, mean_error, percent_by_task
from mnemic.evaluate.generation_metrics import select_generation_metric
from mnemic.evaluate.intervals import Bounds, Share, bound_shares
from mnemic.evaluate.long_context import compute_recall_errors
from mnemic.evaluate.text_metrics import compute_metrics
from mnemic.models.evaluating import evaluating

QUESTIONS_PER_BATCH = 500  # changes memory use, not results


def predict_answers(network: nn.Module, dataset: QuestionDataset, rows: Tensor) -> Tensor:
    """Predict the word id of each answer: ``rows`` is q, or runs q."""
    return map_questions(network, dataset, rows, lambda logits, _: logits.argmax(-1))


def find_wrong_answers(network: nn.Module, dataset: QuestionDataset, rows: Tensor) -> Tensor:
    """Return a mask of the questions in ``rows`` that are answered wrongly."""
    return map_questions(network, dataset, rows, dataset.is_wrong).bool()


@torch.no_grad()
def map_questions(
    network: nn.Module, dataset: QuestionDataset, rows: Tensor, map_logits: Callable[[Tensor, Tensor], Tensor]
) -> Tensor:
    """Apply ``map_logits(logits, rows)`` to all questions in ``rows``, batch by batch."""
    if not rows.numel():
        return rows
    with evaluating(network):
        compact = dataset.device.type != "cuda"
        batch_results = [
            map_logits(network(dataset.batch(batch_rows, compact=compact).inputs).logits.squeeze(-2), batch_rows)
            for batch_rows in rows.split(QUESTIONS_PER_BATCH, -1)
        ]
    return torch.cat(batch_results, -1)


def evaluate_network(network: nn.Module, dataset: Dataset) -> tuple[float, dict[str, float]]:
    """Evaluate a network: return the error that selects the best weights, and all metrics.

    The error is the mean over tasks for questions, 100 minus the main metric for texts, and the
    perplexity (no percentage) for running text.
    """
    if dataset.metrics in TASK_ERRORS:
        return mean_error(list(compute_task_errors(network, dataset).values())), {}
    metrics = SELECTIONS.get(dataset.metrics, compute_metrics)(network, dataset)
    name, value = next(iter(metrics.items()))
    return value if name == "perplexity" else 100 - value, metrics


def compute_task_errors(network: nn.Module, dataset: Dataset) -> dict[int, float]:
    """Compute the error of each task in percent, for one network."""
    return TASK_ERRORS[dataset.metrics](network, dataset)


def bound_task_errors(errors: dict[int, float], dataset: Any, num_models: int = 1) -> tuple[Bounds, Bounds]:
    """Compute the intervals of errors in percent, and bounds for the best of several networks.

    Errors that are of words, not of questions, have none.
    """
    if dataset.metrics == "recall" and dataset.target in TOKEN_TARGETS:
        return {}, {}
    counts = count_by_task(dataset.task)
    return bound_shares({str(task): Share(error / 100, counts[task]) for task, error in errors.items()}, num_models)


def compute_question_errors(network: nn.Module, dataset: QuestionDataset) -> dict[int, float]:
    """Compute the error of each task of questions that are answered with one word."""
    rows = torch.arange(len(dataset), device=dataset.device)
    return percent_by_task(find_wrong_answers(network, dataset, rows), dataset.task)


# Metrics of a validation in training where all of them take long.
SELECTIONS: dict[str, Callable[[nn.Module, Any], dict[str, float]]] = {"seq2seq": select_generation_metric}
# By the name that a dataset has for its metrics.
TASK_ERRORS: dict[str, Callable[[nn.Module, Any], dict[int, float]]] = {
    "questions": compute_question_errors,
    "recall": compute_recall_errors,
}
