"""Format a table of objectives, from its JSON, for a terminal or a page.

Headers with ``>`` in front are those of numbers.
"""

from collections.abc import Mapping, Sequence
from math import exp
from typing import Any

from mnemic.recipe import join_words
from mnemic.reproduce.objectives.report import GLUE
from mnemic.reproduce.objectives.rows import BASELINE, BATCHES

DASH = "–"
TITLES = {"tokens": "equal tokens", "seconds": "equal seconds"}
COMPARABLE = "masked tokens"  # the loss that most rows are measured by
MARKS = "¹²³⁴⁵"  # of losses that are of something else

Lines = list[list[str]]


def format_budget(result: Mapping[str, Any], budget: str) -> tuple[list[str], Lines]:
    """Format the rows at a budget: headers and one line per row."""
    tasks = {name: task for name, task in result["tasks"].items() if "reason" not in task}
    headers = ["objective", ">held-out loss", *(f">{format_task(task)}" for task in tasks.values())]
    headers += [">GLUE mean", ">M tokens", ">seconds", ">tokens a second"]
    marks = mark_losses(result)
    lines = []
    for row in result["rows"]:
        network = row["budgets"].get(budget, {})
        if "metrics" not in network:
            lines.append([row["title"], *([DASH] * (len(headers) - 1))])
            continue
        cells = [format_cell(network["tasks"][name]) for name in tasks]
        glue = network[GLUE]
        speed = network["tokens_per_second"]
        lines.append(
            [
                row["title"],
                f"{network['metrics']['loss']:.3f}{marks.get(row['loss'], '')}",
                *cells,
                DASH if glue is None else f"{glue:.1f}",
                f"{network['tokens'] / 1e6:,.1f}",
                f"{network['seconds']:,.0f}",
                DASH if speed is None else f"{speed:,.0f}",
            ]
        )
    return headers, lines


def format_task(task: Mapping[str, Any]) -> str:
    """Format the title of a task with its metric."""
    return f"{task['title']}, {task['metric']}"


def format_cell(cell: Mapping[str, Any]) -> str:
    """Format a mean with its deviation over seeds; a dash without one."""
    if "mean" not in cell:
        return DASH
    spread = f" ± {cell['std']:.1f}" if len(cell["runs"]) > 1 else ""
    return f"{cell['mean']:.1f}{spread}"


def mark_losses(result: Mapping[str, Any]) -> dict[str, str]:
    """Return a mark for each loss that is not one of masked tokens."""
    names = list(dict.fromkeys(row["loss"] for row in result["rows"] if row["loss"] != COMPARABLE))
    return dict(zip(names, MARKS, strict=False))


def format_pairs(result: Mapping[str, Any], budget: str) -> tuple[list[str], Lines]:
    """Format how well rows with two texts tell what follows, and their order."""
    lines = []
    for row in result["rows"]:
        metrics = row["budgets"].get(budget, {}).get("metrics", {})
        if "next sentence" in metrics or "order" in metrics:
            values = [f"{metrics[name]:.1f}" if name in metrics else DASH for name in ("next sentence", "order")]
            lines.append([row["title"], *values])
    return ["objective", ">next sentence, accuracy", ">order, accuracy"], lines


def format_batches(result: Mapping[str, Any], budget: str) -> tuple[list[str], Lines]:
    """Format rows that compare batches: sizes, steps, rates and perplexity of masked tokens."""
    rows = [row for row in result["rows"] if row["name"] == BASELINE or row.get("group") == BATCHES]
    lines = []
    for row in rows:
        network = row["budgets"].get(budget, {})
        if "metrics" in network:
            cells = [f"{row.get('batch', 1)}", f"{network['step']:,}", f"{row.get('rate', 1.0):g}"]
            lines.append([row["title"], *cells, f"{exp(network['metrics']['loss']):.1f}"])
    return ["objective", ">batch, times", ">steps", ">rate, times", ">perplexity"], lines if len(lines) > 1 else []


def format_reasons(result: Mapping[str, Any]) -> list[str]:
    """Format why cells are empty, and which losses are of something else."""
    lines = [f"{mark} the loss of {loss}: not comparable with others" for loss, mark in mark_losses(result).items()]
    lines += [f"{task['title']}: {task['reason']}" for task in result["tasks"].values() if "reason" in task]
    reasons: dict[str, list[str]] = {}
    for row in result["rows"]:
        for budget, network in row["budgets"].items():
            if "reason" in network:
                reasons.setdefault(f"{TITLES[budget]}: {network['reason']}", []).append(row["title"])
            for name, cell in network.get("tasks", {}).items():
                title = f"{TITLES[budget]}, {result['tasks'][name]['title']}"
                if "reason" in cell:
                    reasons.setdefault(f"{title}: {cell['reason']}", []).append(row["title"])
                elif cell["missing_seeds"]:
                    count = len(cell["runs"])
                    reasons.setdefault(f"{title}: {count} of {count + cell['missing_seeds']} seeds", []).append(
                        row["title"]
                    )
    return lines + [f"{reason}: {join_words(rows)}" for reason, rows in reasons.items()]


def list_budgets(result: Mapping[str, Any]) -> Sequence[str]:
    """List the budgets of a table."""
    return list(result["rows"][0]["budgets"]) if result["rows"] else []
