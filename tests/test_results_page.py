"""The tables of docs/results.md are the measured ones."""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

import results_page  # noqa: E402

PAGE = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
NAMES = sorted(path.stem for path in (ROOT / "docs" / "results").glob("*.json"))


def test_the_page_is_written_from_the_measured_tables() -> None:
    assert results_page.filled(PAGE) == PAGE, "run: python benchmarks/results_page.py"


@pytest.mark.parametrize("name", NAMES)
def test_every_measured_table_is_on_the_page(name: str) -> None:
    blocks = results_page.BLOCK.findall(PAGE)
    shown = {word for _, _, names in blocks for word in results_page.labelled(names)}
    assert name in shown


@pytest.mark.parametrize("name", NAMES)
def test_a_measured_table_adds_up(name: str) -> None:
    table = json.loads((ROOT / "docs" / "results" / f"{name}.json").read_text(encoding="utf-8"))
    ours = table["ours"]
    errors = ours["per_task"].values()
    assert ours["best"] == pytest.approx(sum(errors) / len(errors), abs=1e-3)
    assert ours["failed"] == sum(error > 5 for error in errors)
    runs = [run["error"] for run in ours["runs"]]
    assert ours["mean_error"] == pytest.approx(sum(runs) / len(runs))
    assert len(runs) == len(table["seeds"])


def test_an_old_number_on_the_page_is_noticed() -> None:
    found = results_page.BLOCK.search(PAGE)
    assert found is not None
    stale = PAGE.replace(found[0], found[0].replace("| 0", "| 9", 1))
    assert stale != PAGE
    assert results_page.filled(stale) == PAGE
