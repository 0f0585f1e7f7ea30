"""The tables of published systems and what they reach here, from docs/results."""

import shlex
from functools import cache
from pathlib import Path
from typing import Any

import mnemic
from mnemic.files import read_json
from mnemic.reproduce.commands import format_babi_command
from mnemic.web.schemas.networks import ResultRow, ResultTable

RESULTS = Path(mnemic.__file__).parent / "docs" / "results"
BABI_TITLE = "bAbI: mean error over the tasks, best run"
WORDS_TITLE = "Language models: perplexity per word"
TUNING_TITLE = "Fine-tuned text encoders: score on the test set"


@cache
def list_tables() -> list[ResultTable]:
    """List all tables that were measured."""
    measured = [read_json(path) for path in sorted(RESULTS.glob("*.json"))]
    tables = [
        ResultTable(
            name="babi", title=BABI_TITLE, rows=[make_babi_row(table) for table in measured if table["table"] == "babi"]
        ),
        ResultTable(
            name="words",
            title=WORDS_TITLE,
            rows=[
                make_words_row(table, row) for table in measured if table["table"] == "words" for row in table["rows"]
            ],
        ),
        ResultTable(name="fine-tuning", title=TUNING_TITLE, rows=list_tuning_rows()),
    ]
    return [table for table in tables if table.rows]


def make_babi_row(table: dict[str, Any]) -> ResultRow:
    """Make the row of one network on bAbI."""
    from mnemic.reproduce.statistics import summarize_table

    row = summarize_table(table)
    changes = f", {', '.join(table['overrides'])}" if table["overrides"] else ""
    spread = f" ± {row['std']:.1f}" if row["seeds"] > 1 else ""
    return ResultRow(
        system=f"{row['recipe']}, {row['size']} {row['setting']}{changes}",
        published=row["published"],
        ours=row["best"],
        unit="% error",
        command=format_babi_command(table),
        note=f"{row['tasks']} tasks; mean {row['mean_error']:.1f}{spread} of {row['seeds']} seeds; {row['hardware']}",
    )


def make_words_row(table: dict[str, Any], row: dict[str, Any]) -> ResultRow:
    """Make the row of one language model."""
    return ResultRow(
        system=row["recipe"],
        published=None,
        ours=row["perplexity"],
        unit="perplexity",
        command=f"mnemic table words --recipe {row['recipe']} --data DIR",
        note=f"{row['words_read']:,} words read, {row['weights']:,} weights; {table['hardware']}",
    )


def list_tuning_rows() -> list[ResultRow]:
    """List a row per task: the mean over its seeds."""
    runs: dict[str, list[dict[str, Any]]] = {}
    for path in sorted((RESULTS / "fine-tuning").glob("*.json")):
        runs.setdefault(path.stem.rpartition("-")[0], []).append(read_json(path))
    rows = []
    for group in runs.values():
        first = group[0]
        name, scores = next(iter(first["test"])), [next(iter(run["test"].values())) for run in group]
        before = f" after {first['before']}" if first["before"] else ""
        rows.append(
            ResultRow(
                system=f"{first['title']}{before}",
                published=None,
                ours=sum(scores) / len(scores),
                unit=name,
                command=f"mnemic train {shlex.join([first['recipe'], *first['sets']])} --data DIR",
                note=f"mean of {len(scores)} seeds; {first['hardware']}",
            )
        )
    return rows
