"""Format the table of long-context stories in docs/explain/results.md."""

from collections.abc import Iterator, Sequence
from statistics import mean, stdev
from typing import Any

# Published on BABILong (Kuratov et al. 2024, arXiv:2406.10149; Rodkin et al. 2024), 137M weights,
# one network per task: mean accuracy of tasks 1-5 by tokens.
ARMT = {0: 99.3, 4000: 98.1, 32_000: 98.0, 128_000: 96.9, 1_000_000: 93.4, 10_000_000: 76.6}
RMT = {0: 99.4, 4000: 92.3, 32_000: 77.9, 128_000: 58.5, 1_000_000: 42.8, 10_000_000: 33.8}
ANSWER_SOURCES = {"memory": "memory", "window": "the last window", "retrieval": "sentences most like it"}


def format_long_table(runs: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Format one line per source of answers and length: the mean over all seeds."""
    yield (
        "| answered from | tokens | 1 | 2 | 3 | 4 | 5 | mean ± deviation | ARMT | RMT | seeds "
        "| questions a task | tokens a second |"
    )
    yield "| --- |" + " ---: |" * 12
    for (way, tokens), rows in sorted(group_by_length(runs).items(), key=sort_key_of):
        means, tasks = [row["mean"] for row in rows], list(rows[0]["accuracy"])
        spread = f" ± {stdev(means):.1f}" if len(means) > 1 else ""
        published = (ARMT, RMT) if way == "memory" else ({}, {})
        cells = [
            ANSWER_SOURCES[way],
            f"{tokens:,}",
            *(f"{mean(row['accuracy'][task] for row in rows):.1f}" for task in tasks),
            f"**{mean(means):.1f}**{spread}",
            *(str(accuracies.get(tokens, "–")) for accuracies in published),
            str(len(rows)),
            str(rows[0]["questions"] // len(tasks)),
            format_pace(rows) if tokens and way != "window" else "–",
        ]
        yield "| " + " | ".join(cells) + " |"


def format_pace(rows: Sequence[dict[str, Any]]) -> str:
    """Format the mean tokens per second, if all runs read all tokens."""
    paces = [row["tokens a second"] for row in rows if "tokens a second" in row]
    return f"{mean(paces):,.0f}" if len(paces) == len(rows) else "–"


def group_by_length(runs: Sequence[dict[str, Any]]) -> dict[tuple[str, int], list[dict[str, Any]]]:
    """Group the rows of all runs by source of answers and number of tokens."""
    rows_by_length: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for run in runs:
        for row in run["rows"]:
            rows_by_length.setdefault((run["way"], row["tokens"]), []).append(row)
    return rows_by_length


def sort_key_of(group: tuple[tuple[str, int], Any]) -> tuple[int, int]:
    """Return the key that sorts groups by source of answers, then by length."""
    (way, tokens), _ = group
    return list(ANSWER_SOURCES).index(way), tokens
