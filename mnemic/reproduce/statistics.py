"""The figures of a table from its finished runs: which run counts, and what is said of it.

A run is the row that ``tables`` keeps of it: its seed, its errors on each part of the data, task by
task, and what it read (``evidence``), which rows of earlier versions do not have.
"""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from mnemic.evaluate.error_rate import mean

Run = Mapping[str, Any]

FAILED = 5.0  # a task with a larger error in percent has failed
RULES = {"train": "lowest training error", "validation": "lowest validation error"}


def joint_figures(runs: Sequence[Run], part: str) -> dict[str, Any]:
    """Each run answers all tasks; the best run is the one with the lowest error on ``part``."""
    errors = [mean(list(run["test"].values())) for run in runs]
    best = min(range(len(runs)), key=lambda run: mean(list(runs[run][part].values())))
    return {
        **spread(errors),
        "best": errors[best],
        "best_seed": runs[best]["seed"],
        "failed": failed(runs[best]["test"]),
        "per_task": runs[best]["test"],
        "per_task_mean": {t: mean([run["test"][t] for run in runs]) for t in runs[0]["test"]},
        "evidence": evidence_of([runs[best]]),
        "runs": [
            {
                "seed": run["seed"],
                "error": error,
                "failed": failed(run["test"]),
                "seconds": run["seconds"],
            }
            for run, error in zip(runs, errors)
        ],
    }


def task_figures(runs: Sequence[Run], seeds: int, part: str) -> dict[str, Any]:
    """Each task has runs of its own; its best is the one with the lowest error on ``part``."""
    tasks = [runs[first : first + seeds] for first in range(0, len(runs), seeds)]
    names = [str(own[0]["tasks"][0]) for own in tasks]
    chosen = [min(own, key=lambda run: mean(list(run[part].values()))) for own in tasks]
    best = {name: run["test"][name] for name, run in zip(names, chosen)}
    table = [[run["test"][name] for run in own] for name, own in zip(names, tasks)]  # task, seed
    by_seed = [mean([row[seed] for row in table]) for seed in range(seeds)]
    return {
        **spread(by_seed),
        "best": mean(list(best.values())),
        "failed": failed(best),
        "per_task": best,
        "per_task_mean": {name: mean(row) for name, row in zip(names, table)},
        "evidence": evidence_of(chosen),
        "runs": [{"seed": seed, "error": error} for seed, error in enumerate(by_seed)],
    }


def evidence_of(chosen: Sequence[Run]) -> dict[str, dict[str, float]]:
    """What the chosen runs read, task by task; nothing of runs that were not asked."""
    return {task: own for run in chosen for task, own in run.get("evidence", {}).items()}


def spread(errors: Sequence[float]) -> dict[str, float]:
    """Mean, deviation and median over seeds."""
    deviation = statistics.stdev(errors) if len(errors) > 1 else 0.0
    return {"mean_error": mean(errors), "std": deviation, "median": statistics.median(errors)}


def failed(errors: Mapping[str, float]) -> int:
    return sum(error > FAILED for error in errors.values())


def summary_of(whole: Mapping[str, Any]) -> dict[str, Any]:
    """A whole table (``tables.result``) as one line: published beside ours.

    A table of some tasks or with overrides is not the paper's: nothing published stands beside it.
    """
    ours, paper = whole["ours"], whole["published"]
    if whole["overrides"] or len(ours["per_task"]) < len(paper.get("per_task", ())):
        paper = {}
    return {
        "recipe": whole["recipe"],
        "size": whole["size"],
        "setting": whole["setting"],
        "published": paper.get("mean_error"),
        "published_failed": paper.get("failed"),
        "best": ours["best"],
        "failed": ours["failed"],
        "mean_error": ours["mean_error"],
        "std": ours["std"],
        "seeds": len(whole["seeds"]),
        "tasks": len(ours["per_task"]),
        "selection": whole["selection"],
        "evidence": ours.get("evidence", {}),
        "minutes": round(whole["seconds"] / 60, 2),
        "hardware": whole["hardware"],
    }


def evidence_line(evidence: Mapping[str, Mapping[str, float]], key: str) -> str:
    """One number a task, ``99 / 87 / 60``; a dash where none was asked."""
    return " / ".join(f"{own[key]:.0f}" for own in evidence.values()) or "–"
