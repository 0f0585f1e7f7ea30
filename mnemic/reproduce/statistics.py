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


def summarize_runs(runs: Sequence[Run], num_seeds: int, split: str, *, joint: bool) -> dict[str, Any]:
    """Summarize the runs of a table; the best have the lowest error on ``split``.

    ``runs`` are in the order of tasks, then of seeds. A joint table, whose runs learn all tasks,
    has one best run; the others have one per task.
    """
    groups = [runs[first : first + num_seeds] for first in range(0, len(runs), num_seeds)]
    best_runs = [min(group, key=lambda run: mean_error(list(run[split].values()))) for group in groups]
    best = {task: error for run in best_runs for task, error in run["test"].items()}
    by_seed = [[error for group in groups for error in group[seed]["test"].values()] for seed in range(num_seeds)]
    rows: list[dict[str, Any]] = [{"seed": seed, "error": mean_error(row)} for seed, row in enumerate(by_seed)]
    if joint:
        for row, run in zip(rows, runs):
            row |= {"failed": count_failed_tasks(run["test"]), "seconds": run["seconds"]}
    return {
        **summarize_errors([row["error"] for row in rows]),
        "best": mean_error(list(best.values())),
        **({"best_seed": best_runs[0]["seed"]} if joint else {}),
        "failed": count_failed_tasks(best),
        "per_task": best,
        "per_task_mean": dict(zip(best, map(mean_error, zip(*by_seed)))),
        # Runs of earlier versions have no evidence.
        "evidence": {task: values for run in best_runs for task, values in run.get("evidence", {}).items()},
        "runs": rows,
    }


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
        **{key: table[key] for key in ("recipe", "size", "setting")},
        "published": paper.get("mean_error"),
        "published_failed": paper.get("failed"),
        **{key: results[key] for key in ("best", "failed", "mean_error", "std")},
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
