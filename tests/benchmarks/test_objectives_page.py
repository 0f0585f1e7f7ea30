"""The tables of docs/explain/objectives.md are the measured ones."""

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import objectives_page  # noqa: E402

from mnemic.reproduce.objectives.rows import load_rows  # noqa: E402


def make_table() -> dict[str, Any]:
    """Make a table of three rows: measured, measured by another loss, and not at all."""
    cell = {"mean": 60.04, "std": 1.26, "missing_seeds": 1, "runs": [{"seed": 0}, {"seed": 1}]}
    network = {"tokens": 2e6, "seconds": 100.0, "tokens_per_second": 2e4, "glue": 60.04, "tasks": {"rte": cell}}
    measured = network | {"metrics": {"loss": 3.5, "order": 86.5, "next sentence": 78.9}}
    other = network | {"metrics": {"loss": 4.5}, "tasks": {"rte": {"reason": "not measured yet"}}, "glue": None}
    return {
        "tasks": {"rte": {"title": "RTE", "metric": "accuracy"}, "squad": {"title": "SQuAD", "reason": "no folder"}},
        "rows": [
            {"title": "order", "loss": "masked tokens", "budgets": {"tokens": measured}},
            {"title": "next", "loss": "next tokens", "budgets": {"tokens": other}},
            {"title": "names", "loss": "masked tokens", "budgets": {"tokens": {"reason": "needs texts"}}},
        ],
        "settings": {"width": 8, "depth": 1, "heads": 2, "vocab": 8000, "length": 64, "batch_tokens": 2048},
        "command": "mnemic table objectives --data enwiki", "hardware": "CPU", "seconds": 90.0,
    }  # fmt: skip


def test_every_part_is_filled() -> None:
    blocks = "\n".join(f"<!-- objectives: {part} -->\nstale\n<!-- end -->" for part in objectives_page.PARTS)
    page = objectives_page.fill_page(blocks, make_table())
    assert "stale" not in page
    for line in (
        "| order | 3.500 | 60.0 ± 1.3 | 60.0 | 2.0 | 100 | 20,000 |",
        "| next | 4.500¹ | – | – | 2.0 | 100 | 20,000 |",
        "| names | – | – | – | – | – | – |",
        "| order | 78.9 | 86.5 |",
        "- ¹ the loss of next tokens: not comparable with others",
        "- SQuAD: no folder",
        "- equal tokens, RTE: 2 of 3 seeds: order",
        "- equal tokens, RTE: not measured yet: next",
        "- equal tokens: needs texts: names",
        "mnemic table objectives --data enwiki",
    ):
        assert line in page
    assert "Not measured yet." in page  # equal seconds
    assert objectives_page.fill_page(page, make_table()) == page


def test_the_page_has_the_measured_table() -> None:
    page, table = (path.read_text(encoding="utf-8") for path in (objectives_page.PAGE, objectives_page.TABLE))
    assert objectives_page.fill_page(page, json.loads(table)) == page
    assert {row["name"] for row in json.loads(table)["rows"]} <= {*load_rows()}
