"""The tables of docs/explain/results.md are the measured ones."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import results_page  # noqa: E402

PAGE = (ROOT / "docs" / "explain" / "results.md").read_text(encoding="utf-8")
NAMES = sorted(path.stem for path in (ROOT / "docs" / "results").glob("*.json"))
BABI = [name for name in NAMES if results_page.read_table(name)["table"] == "babi"]
WORDS = [name for name in NAMES if results_page.read_table(name)["table"] == "words"]


def test_the_page_is_written_from_the_measured_tables() -> None:
    assert results_page.fill_tables(PAGE) == PAGE, "run: python benchmarks/results_page.py"


@pytest.mark.parametrize("name", NAMES)
def test_every_measured_table_is_on_the_page(name: str) -> None:
    blocks = results_page.BLOCK.findall(PAGE)
    page_names = {word for _, _, names in blocks for word in results_page.parse_names(names)}
    assert name in page_names


@pytest.mark.parametrize("name", WORDS)
def test_a_table_of_language_models_adds_up(name: str) -> None:
    table = results_page.read_table(name)
    for row in table["rows"]:
        runs = [run["test"]["perplexity"] for run in row["runs"]]
        assert row["perplexity"] == pytest.approx(sum(runs) / len(runs))
        assert len(runs) == len(table["seeds"])
        assert row["words_read"] == table["rows"][0]["words_read"]  # or they could not be compared
        assert row["unknown %"] == pytest.approx(table["unigram"]["unknown %"])


@pytest.mark.parametrize("name", BABI)
def test_a_measured_table_adds_up(name: str) -> None:
    table = json.loads((ROOT / "docs" / "results" / f"{name}.json").read_text(encoding="utf-8"))
    results = table["ours"]
    errors = results["per_task"].values()
    assert results["best"] == pytest.approx(sum(errors) / len(errors), abs=1e-3)
    assert results["failed"] == sum(error > 5 for error in errors)
    runs = [run["error"] for run in results["runs"]]
    assert results["mean_error"] == pytest.approx(sum(runs) / len(runs))
    assert len(runs) == len(table["seeds"])


def with_evidence(name: str) -> dict[str, Any]:
    """Return a measured table with made-up evidence."""
    table = results_page.read_table(name)
    shares = {"supporting": 99.4, "most_read": 90.0, "other": 1.2}
    evidence = {"1": shares, "2": shares | {"supporting": 80.0}}
    return table | {"ours": table["ours"] | {"evidence": evidence}, "seconds": 90.0}


def test_what_was_read_is_shown_where_it_is_known() -> None:
    old = results_page.read_table("memn2n-joint-1k")
    assert not any("proof" in line for line in results_page.format_settings_table([old], [""]))
    head, rule, first, second = results_page.format_settings_table([with_evidence("memn2n-joint-1k"), old], ["", ""])
    assert "reads a proof" in head
    assert "| 99 / 80 | 90 / 90; 1 / 1 |" in first
    assert "| – | – |" in second
    assert head.count("|") == rule.count("|") == first.count("|") == second.count("|")


def test_networks_stand_beside_their_papers() -> None:
    lines = list(results_page.format_networks_table([with_evidence("memn2n-joint-1k")], ["MemN2N, joint"]))
    assert lines[2].startswith("| MemN2N, joint | 12.4 / 11 | **12.3 / 8** | 12.7 ± 1.2 | 10 |")
    assert "| 99 / 80 | 90 / 90; 1 / 1 | 2 |" in lines[2]
    assert len({line.count("|") for line in lines}) == 1
    page = "<!-- networks: memn2n-joint-1k -->\nold\n<!-- end -->"
    assert "12.4 / 11" in results_page.fill_tables(page)


def test_an_old_number_on_the_page_is_noticed() -> None:
    block = results_page.BLOCK.search(PAGE)
    assert block is not None
    stale = PAGE.replace(block[0], block[0].replace("| 0", "| 9", 1))
    assert stale != PAGE
    assert results_page.fill_tables(stale) == PAGE


def test_language_models_stand_below_guessing_by_frequency() -> None:
    metrics = {"perplexity": 99.5, "known words": 120.0, "unknown %": 8.0}
    settings = {"std": 0.0, "weights": 1234, "words_read": 50_000, "seconds": 61.0}
    table = {
        "unigram": metrics | {"perplexity": 700.0},
        "rows": [metrics | settings | {"recipe": "lstm-words"}],
        "seeds": [0],
        "words": {"train": 90_000, "test": 8_000},
        "vocab": 20_000,
        "overrides": ["train.epochs=1"],
        "hardware": "NVIDIA H200",
    }
    head, rule, unigram_row, network_row, _, command_line = results_page.format_words_table([table], [""])
    assert unigram_row.startswith("| word frequencies | 700.0 | 120.0 |")
    assert network_row == "| `lstm-words` | **99.5** | 120.0 | 1,234 | 50,000 | 61 | 0 | NVIDIA H200 |"
    assert len({line.count("|") for line in (head, rule, unigram_row, network_row)}) == 1
    assert "`mnemic table words --data DIR --set train.epochs=1`" in command_line


def test_lengths_are_means_over_seeds_and_ways_stand_apart() -> None:
    def run(way: str, *means: float) -> dict[str, Any]:
        rows = [
            {"tokens": 4000 * number, "questions": 50, "accuracy": {"1": accuracy, "2": accuracy}, "mean": accuracy}
            | {"tokens a second": 1000.0}
            for number, accuracy in enumerate(means)
        ]
        return {"way": way, "rows": rows}

    runs = [run("retrieval", 50.0), run("memory", 90.0, 80.0), run("memory", 92.0, 84.0)]
    _, _, *lines = results_page.format_long_table(runs)
    cells = [line.strip("| ").split(" | ") for line in lines]
    assert [line_cells[:4] for line_cells in cells] == [
        ["memory", "0", "91.0", "91.0"],
        ["memory", "4,000", "82.0", "82.0"],
        ["sentences most like it", "0", "50.0", "50.0"],
    ]
    assert [line_cells[4] for line_cells in cells] == ["**91.0** ± 1.4", "**82.0** ± 2.8", "**50.0**"]
    assert [line_cells[5] for line_cells in cells] == ["99.3", "98.1", "–"]
    assert [line_cells[7:] for line_cells in cells] == [["2", "25", "–"], ["2", "25", "1,000"], ["1", "25", "–"]]


def test_a_student_that_was_not_trained_has_a_dash() -> None:
    table = results_page.read_table("students")
    head, _, *lines = results_page.format_students_table([table], [""])
    assert "teacher, 33.8 MB" in head
    assert {line.count("|") for line in lines} == {head.count("|")}
    columns = [column.strip() for column in head.strip("|").split(" | ")]
    sst2 = dict(zip(columns, lines[0].strip("| ").split(" | ")))
    assert sst2["student, soft labels, 23.0 MB"] == "90.9"
    assert sst2["student, several teachers, 23.0 MB"] == "–"
