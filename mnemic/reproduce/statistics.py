"""Summarize the finished runs of a table: best run, mean and deviation.

A run is a row of ``runs.jsonl``: its seed, its errors per split and task, and its ``evidence``,
which rows of earlier versions lack.
"""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from mnemic.evaluate.by_task import mean_error

Run = Mapping[str, Any]

FAILURE_THRESHOLD = 5.0  # a task with a larger error in percent has failed
SELECTION_RULES = {"train": "lowest training error", "validation": "lowest validation error"}


def summarize_joint_runs(runs: Sequence[Run], split: str) -> dict[str, Any]:
    """Summarize runs over all tasks; the best has the lowest error on ``split``."""
    errors = [mean_error(list(run["test"].values())) for run in runs]
    best = min(range(len(runs)), key=lambda run: mean_error(list(runs[run][split].values())))
    return {
        **summarize_errors(errors),
        "best": errors[best],
        "best_seed": runs[best]["seed"],
        "failed": count_failed_tasks(runs[best]["test"]),
        "per_task": runs[best]["test"],
        "per_task_mean": {task: mean_error([run["test"][task] for run in runs]) for task in runs[0]["test"]},
        "evidence": merge_evidence([runs[best]]),
        "runs": [
            {"seed": run["seed"], "error": error, "failed": count_failed_tasks(run["test"]), "seconds": run["seconds"]}
            for run, error in zip(runs, errors)
        ],
    }


def summarize_task_runs(runs: Sequence[Run], num_seeds: int, split: str) -> dict[str, Any]:
    """Summarize runs per task; each task's best run has the lowest error on ``split``."""
    tasks = [runs[first : first + num_seeds] for first in range(0, len(runs), num_seeds)]
    names = [str(task_runs[0]["tasks"][0]) for task_runs in tasks]
    best_runs = [min(task_runs, key=lambda run: mean_error(list(run[split].values()))) for task_runs in tasks]
    best = {name: run["test"][name] for name, run in zip(names, best_runs)}
    errors = [[run["test"][name] for run in task_runs] for name, task_runs in zip(names, tasks)]  # task, seed
    by_seed = [mean_error([row[seed] for row in errors]) for seed in range(num_seeds)]
    return {
        **summarize_errors(by_seed),
        "best": mean_error(list(best.values())),
        "failed": count_failed_tasks(best),
        "per_task": best,
        "per_task_mean": {name: mean_error(row) for name, row in zip(names, errors)},
        "evidence": merge_evidence(best_runs),
        "runs": [{"seed": seed, "error": error} for seed, error in enumerate(by_seed)],
    }


def merge_evidence(runs: Sequence[Run]) -> dict[str, dict[str, float]]:
    """Merge the evidence of runs by task; runs without evidence add nothing."""
    return {task: percentages for run in runs for task, percentages in run.get("evidence", {}).items()}


def summarize_errors(errors: Sequence[float]) -> dict[str, float]:
    """Compute mean, standard deviation and median of errors over seeds."""
    deviation = statistics.stdev(errors) if len(errors) > 1 else 0.0
    return {"mean_error": mean_error(errors), "std": deviation, "median": statistics.median(errors)}


def count_failed_tasks(errors: Mapping[str, float]) -> int:
    """Count the tasks with an error above ``FAILURE_THRESHOLD`` percent."""
    return sum(error > FAILURE_THRESHOLD for error in errors.values())


def summarize_table(table: Mapping[str, Any]) -> dict[str, Any]:
    """Summarize a table (``babi_table.build_result``) as one row, next to the published error.

    A table of some tasks only, or with overrides, is not the paper's: its published error is None.
    """
    results, paper = table["ours"], table["published"]
    if table["overrides"] or len(results["per_task"]) < len(paper.get("per_task", ())):
        paper = {}
    return {
        "recipe": table["recipe"],
        "size": table["size"],
        "setting": table["setting"],
        "published": paper.get("mean_error"),
        "published_failed": paper.get("failed"),
        "best": results["best"],
        "failed": results["failed"],
        "mean_error": results["mean_error"],
        "std": results["std"],
        "seeds": len(table["seeds"]),
        "tasks": len(results["per_task"]),
        "selection": table["selection"],
        "evidence": results.get("evidence", {}),
        "minutes": round(table["seconds"] / 60, 2),
        "hardware": table["hardware"],
    }


def format_evidence(evidence: Mapping[str, Mapping[str, float]], metric: str) -> str:
    """Format one number per task, ``99 / 87 / 60``; a dash without evidence."""
    return " / ".join(f"{percentages[metric]:.0f}" for percentages in evidence.values()) or "–"
