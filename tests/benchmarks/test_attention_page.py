"""The tables of docs/explain/attention.md are the measured ones."""

import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import attention_page  # noqa: E402

from mnemic.reproduce.attention.rows import load_rows  # noqa: E402

PAGE = (ROOT / "docs" / "explain" / "attention.md").read_text(encoding="utf-8")


def make_table() -> dict[str, Any]:
    """Make a table of two rows: one is measured, the other has reasons."""
    column = {"title": "IMDB, accuracy", "unit": "%", "decimals": 1, "seeds": [0, 1]}
    runs = [{"value": 80.0}, {"value": 82.0}]
    lengths = [
        {"tokens": 512, "seconds": 0.0123, "saved_mib": 1.5, "ratio": 1.0, "saved_mib_by_depth": {"2": 2.0, "8": 8.0}},
        {"tokens": 2048, "reason": "about 9 s a pass at 2,048 tokens, over 8 s"},
    ]
    full = {
        "name": "full", "title": "full", "can": {"causal": True, "cross": False}, "cannot": "end",
        "cells": {"imdb": {"mean": 81.0, "std": 1.4, "runs": runs}}, "cost": {"cpu": {"lengths": lengths}},
    }  # fmt: skip
    other = full | {
        "title": "other",
        "cells": {"imdb": {"reason": "not causal"}},
        "cost": {"cpu": {"reason": "as full"}},
    }
    settings = {"width": 8, "depth": 1, "heads": 2, "cost": {"width": 4, "depth": 1, "depth_length": 2048}}
    return {
        "columns": {"imdb": column}, "rows": [full, other], "settings": settings, "command": "mnemic table attention",
        "hardware": "CPU", "seconds": 90.0,
    }  # fmt: skip


def test_the_page_is_written_from_the_measured_table() -> None:
    table = attention_page.read_table()
    assert attention_page.fill_page(PAGE, table) == PAGE, "run: python benchmarks/attention_page.py"
    assert {part for _, part in attention_page.BLOCK.findall(PAGE)} == {*attention_page.PARTS}
    assert (table is None) != attention_page.PICTURE.is_file()


def test_a_measured_table_has_every_row() -> None:
    table = attention_page.read_table()
    if table is None:
        pytest.skip("docs/results/attention/table.json is not there")
    assert [row["name"] for row in table["rows"]] == list(load_rows())
    assert table["unfinished"] == 0


def test_every_cell_has_a_number_or_a_reason() -> None:
    text = attention_page.fill_page(PAGE, make_table())
    assert "| full | 81.0 ± 1.4 |" in text
    assert "| other | – |" in text
    assert "- IMDB, accuracy: not causal: other" in text
    assert "| full | 12.3 | – | – | 1.50 | – | – | 2.00 / 8.00 |" in text
    assert "- cost, cpu: full: about 9 s a pass at 2,048 tokens, over 8 s" in text
    assert "| full | causal | end |" in text
    assert attention_page.NOT_MEASURED not in text
