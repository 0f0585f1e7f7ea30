"""Save a table of objectives as JSON: means, deviations, and the reasons of empty cells."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from mnemic.checkpoint.atomic_files import write_json
from mnemic.recipe import join_words
from mnemic.reproduce.objectives.rows import BASELINE, ObjectiveRow
from mnemic.reproduce.objectives.sequences import find_reason
from mnemic.reproduce.objectives.table import DATA_FOLDER, ObjectivesTable, load_failures, load_lines
from mnemic.reproduce.rows import describe_versions
from mnemic.reproduce.student_tasks import TASKS

UNFINISHED = "not measured yet"
GLUE = "glue"  # the mean of all tasks but questions
Lines = Mapping[str, Mapping[str, Any]]


def save_table(table: ObjectivesTable, folder: Path) -> dict[str, Any]:
    """Save all finished cells, and the reasons of the others, as ``table.json``."""
    lines, failures = load_lines(folder), load_failures(folder)
    rows = [describe_row(row, table, folder, lines, failures) for row in table.selected_rows.values()]
    cells = [cell for row in rows for budget in row["budgets"].values() for cell in budget.get("tasks", {}).values()]
    hardware = [line["hardware"] for line in lines.values()]
    baseline = next((row for row in rows if row["name"] == BASELINE), None)
    if baseline is not None:
        for row in rows:
            add_differences(row, baseline)
    result = {
        "table": "objectives",
        "command": table.command,
        "scale": table.scale_name,
        "settings": table.scale.describe(),
        "overrides": list(table.sets),
        "tasks": {name: describe_task(name, table) for name in (*table.measured_tasks, *table.reasons)},
        "rows": rows,
        "unfinished": sum(cell.get("reason") == UNFINISHED for cell in cells)
        + sum(budget.get("reason") == UNFINISHED for row in rows for budget in row["budgets"].values()),
        "hardware": join_words(sorted(set(hardware))),
        "versions": describe_versions(),
        "seconds": round(sum(line["seconds"] for line in lines.values()), 1),
    }
    write_json(folder / "table.json", result)
    return result


def describe_task(name: str, table: ObjectivesTable) -> dict[str, Any]:
    """Describe a task: title, metric, seeds, and why it is not measured."""
    about = {"title": TASKS[name].title, "metric": TASKS[name].metrics[0]}
    if name in table.reasons:
        return about | {"reason": table.reasons[name]}
    return about | {"seeds": list(table.seeds_of(name)), "sets": list(table.scale.task_settings(name).sets)}


def describe_row(
    row: ObjectiveRow, table: ObjectivesTable, folder: Path, lines: Lines, failures: Mapping[str, str]
) -> dict[str, Any]:
    """Describe a row: its parts, and its network at each budget."""
    budgets = {}
    for budget in table.selected_budgets:
        name = f"{row.name}-{budget if row.trained else table.selected_budgets[0]}"
        if reason := find_reason(row, table.data, folder / DATA_FOLDER):
            budgets[budget] = {"reason": reason}
        elif name in lines:
            budgets[budget] = describe_network(name, table, lines, failures)
        else:
            budgets[budget] = {"reason": f"failed: {failures[name]}" if name in failures else UNFINISHED}
    about: dict[str, Any] = {
        "name": row.name,
        "title": row.title,
        "recipe": row.recipe,
        "sets": list(row.sets),
        "loss": row.loss,
    }
    about |= {"format": row.format, "words": row.words, "group": row.group, "batch": row.batch}
    return about | {"rate": row.rate, "budgets": budgets}


def describe_network(name: str, table: ObjectivesTable, lines: Lines, failures: Mapping[str, str]) -> dict[str, Any]:
    """Summarize a network: its pre-training, and its tasks over seeds."""
    line = lines[name]
    tasks = {
        task: describe_cell(f"{name}-{task}", table.seeds_of(task), lines, failures) for task in table.measured_tasks
    }
    means = [cell["mean"] for task, cell in tasks.items() if "mean" in cell and TASKS[task].subfolder]
    is_complete = means and len(means) == sum(bool(TASKS[task].subfolder) for task in table.measured_tasks)
    return {
        "metrics": line["metrics"],
        "step": line["step"],
        "tokens": line["tokens"],
        "seconds": line["seconds"],
        "tokens_per_second": line["tokens"] / line["seconds"] if line["seconds"] else None,
        "weights": line["weights"],
        "hardware": line["hardware"],
        "tasks": tasks,
        GLUE: mean(means) if is_complete else None,
    }


def describe_cell(name: str, seeds: Sequence[int], lines: Lines, failures: Mapping[str, str]) -> dict[str, Any]:
    """Summarize a task over the seeds that are finished, or say why it is empty."""
    runs = [lines[f"{name}-{seed}"] for seed in seeds if f"{name}-{seed}" in lines]
    failed = [failures[f"{name}-{seed}"] for seed in seeds if f"{name}-{seed}" in failures]
    if not runs:
        return {"reason": f"failed: {failed[0]}" if failed else UNFINISHED}
    values = [run["value"] for run in runs]
    run_keys = ("seed", "value", "metrics", "examples", "steps", "seconds", "hardware")
    return {
        "mean": mean(values),
        "std": stdev(values) if len(values) > 1 else 0.0,
        "missing_seeds": len(seeds) - len(runs),
        "runs": [{key: run[key] for key in run_keys} for run in runs],
    }


def add_differences(row: dict[str, Any], baseline: Mapping[str, Any]) -> None:
    """Add to each task its difference from the baseline, over seeds of both."""
    for budget, network in row["budgets"].items():
        for task, cell in network.get("tasks", {}).items():
            peer = baseline["budgets"][budget].get("tasks", {}).get(task, {})
            values = {run["seed"]: run["value"] for run in peer.get("runs", ())}
            differences = [run["value"] - values[run["seed"]] for run in cell.get("runs", ()) if run["seed"] in values]
            if differences:
                spread = stdev(differences) if len(differences) > 1 else 0.0
                cell["difference"] = {"mean": mean(differences), "std": spread, "seeds": len(differences)}
