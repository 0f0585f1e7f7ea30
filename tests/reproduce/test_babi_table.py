"""A published table rebuilt on small generated stories: what is printed, and which run counts."""

import json
from pathlib import Path

import pytest
import torch
from table_runs import SHORT, stories, table_of, trained, write_runs

from mnemic.cli.main import main
from mnemic.reproduce import babi_table as tables
from mnemic.reproduce.babi_table import BabiTable, build_result, save_result
from mnemic.reproduce.statistics import SELECTION_RULES

__all__ = ["stories"]  # a fixture


# What is printed -------------------------------------------------------------------------------


@pytest.mark.parametrize("joint", [True, False])
def test_a_table_has_what_it_promises(stories: Path, tmp_path: Path, joint: bool) -> None:
    table = table_of(stories, joint=joint)
    runs = 2 if joint else 4  # two seeds, of all tasks or of each
    assert trained(table, tmp_path) == runs * 6
    table_json = save_result(table, tmp_path)
    assert json.loads((tmp_path / "table.json").read_text(encoding="utf-8")) == table_json
    assert table_json["setting"] == ("joint" if joint else "per task")
    results, published = table_json["ours"], table_json["published"]
    for name in ("mean_error", "std", "median", "best"):
        assert 0 <= results[name] <= 100
    assert set(results["per_task"]) == set(results["per_task_mean"]) == {"1", "6"}
    assert results["failed"] == sum(error > 5 for error in results["per_task"].values())
    assert results["best"] == pytest.approx(sum(results["per_task"].values()) / 2)
    assert len(results["runs"]) == 2
    errors = [run["error"] for run in results["runs"]]
    assert results["mean_error"] == pytest.approx(sum(errors) / 2)
    assert results["std"] == pytest.approx(abs(errors[0] - errors[1]) / 2**0.5)
    assert published["mean_error"] == (12.4 if joint else 13.9)
    assert published["failed"] == 11
    assert list(published["per_task"]) == [str(task) for task in range(1, 21)]
    assert table_json["overrides"] == SHORT
    assert table_json["selection"] == "lowest training error"
    assert table_json["generated_training_tasks"] == []
    assert table_json["versions"]["torch"] == torch.__version__


def test_every_published_column_adds_up() -> None:
    """Mean and failed tasks follow from the twenty errors, as far as those were rounded."""
    published = tables.tomllib.loads(tables.PUBLISHED.read_text(encoding="utf-8"))
    columns = [column for settings in published.values() for column in settings.values()]
    assert len(columns) >= 4
    for column in columns:
        errors = column["per_task"]
        assert len(errors) == 20
        assert sum(errors) / 20 == pytest.approx(column["mean_error"], abs=0.06)
        assert sum(error > 5 for error in errors) == column["failed"]
        assert column["source"]


def test_a_system_no_paper_printed_has_no_published_column(stories: Path, tmp_path: Path) -> None:
    """A recipe's own file: ours alone."""
    path = tmp_path / "mine.toml"
    path.write_text('# mine\nbase = "memn2n"\n', encoding="utf-8")
    table = table_of(stories, recipe=str(path), seeds=1, joint=True)
    trained(table, tmp_path)
    assert build_result(table, tmp_path)["published"] == {}


def test_the_command_prints_the_table_as_json(
    stories: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sets = [word for text in SHORT for word in ("--set", text)]
    words = ["table", "babi", "--recipe", "memn2n", "--data", str(stories), "--joint"]
    words += ["--seeds", "1", "--tasks", "1,6", "--out", str(tmp_path), "--device", "cpu", "--json", *sets]
    assert main(words) == 0
    output = capsys.readouterr()
    printed = json.loads(output.out)
    assert printed == json.loads((tmp_path / "table.json").read_text(encoding="utf-8"))
    assert set(printed["ours"]["per_task"]) == {"1", "6"}
    assert printed["ours"]["std"] == 0.0  # one seed


def test_a_folder_without_stories_is_one_line_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["table", "babi", "--recipe", "memn2n", "--data", str(tmp_path / "none")]
    assert main([*words, "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


# Which run counts ------------------------------------------------------------------------------


def test_the_best_joint_run_is_the_one_that_fits_its_training_set(stories: Path, tmp_path: Path) -> None:
    """Not the one that does best on the test set."""
    table = table_of(stories, joint=True, seeds=3)
    rows = [
        (0, 0, {"1": 3.0, "6": 3.0}, {"1": 0.0, "6": 1.0}),  # the best test error, 0.5
        (0, 1, {"1": 0.0, "6": 1.0}, {"1": 4.0, "6": 6.0}),  # the best training error
        (0, 2, {"1": 9.0, "6": 9.0}, {"1": 10.0, "6": 20.0}),
    ]
    write_runs(table, tmp_path, rows)
    results = build_result(table, tmp_path)["ours"]
    assert (results["best"], results["best_seed"], results["failed"]) == (5.0, 1, 1)
    assert results["per_task"] == {"1": 4.0, "6": 6.0}
    assert results["mean_error"] == pytest.approx((0.5 + 5 + 15) / 3)
    assert results["median"] == 5.0
    assert results["std"] == pytest.approx(7.4, abs=0.05)
    assert results["per_task_mean"] == pytest.approx({"1": 14 / 3, "6": 9.0})
    assert [run["failed"] for run in results["runs"]] == [0, 1, 2]


def test_each_task_has_a_best_run_of_its_own(stories: Path, tmp_path: Path) -> None:
    table = table_of(stories, seeds=2)
    rows = [
        (0, 0, {"1": 0.0}, {"1": 7.0}),
        (0, 1, {"1": 1.0}, {"1": 2.0}),
        (1, 0, {"6": 5.0}, {"6": 20.0}),
        (1, 1, {"6": 4.0}, {"6": 30.0}),
    ]
    write_runs(table, tmp_path, rows)
    results = build_result(table, tmp_path)["ours"]
    assert results["per_task"] == {"1": 7.0, "6": 30.0}
    assert (results["best"], results["failed"]) == (18.5, 2)
    assert [run["error"] for run in results["runs"]] == [13.5, 16.0]
    assert (results["mean_error"], results["median"]) == (14.75, 14.75)
    assert results["per_task_mean"] == {"1": 4.5, "6": 25.0}


def test_the_published_table_says_by_what_the_best_run_is_chosen(stories: Path, tmp_path: Path) -> None:
    """By validation error where its paper did so; by training error where nothing is said.

    Without a paper it is as weights are selected during training.
    """
    selections = {}
    for recipe in ("entnet", "memn2n", "slot-rewriting"):
        table, folder = table_of(stories, recipe=recipe, tasks=[1], sets=[]), tmp_path / recipe
        row = {"recipe": table.hash_recipes()[0], "tasks": [1], "generated": [], "seconds": 1.0}
        fits = {"seed": 0, "train": {"1": 0.0}, "validation": {"1": 9.0}, "test": {"1": 8.0}}
        holds = {"seed": 1, "train": {"1": 1.0}, "validation": {"1": 2.0}, "test": {"1": 3.0}}
        tables.append_runs(folder, [row | fits, row | holds])
        result = build_result(table, folder)
        selections[recipe] = (result["selection"], result["ours"]["best"])
    assert selections["entnet"] == ("lowest validation error", 3.0)
    assert selections["memn2n"] == ("lowest training error", 8.0)
    assert selections["slot-rewriting"] == selections["entnet"]


def test_every_published_selection_is_a_rule() -> None:
    published = tables.tomllib.loads(tables.PUBLISHED.read_text(encoding="utf-8"))
    columns = [column for settings in published.values() for column in settings.values()]
    assert {column.get("selection", "train") for column in columns} <= SELECTION_RULES.keys()


def test_a_task_may_have_a_recipe_of_its_own(stories: Path) -> None:
    table = BabiTable(recipe="entnet", data=str(stories), tasks=[2, 3])
    assert [recipe["data"]["sentences"] for recipe in table.build_recipes()] == [70, 130]
    joint = BabiTable(recipe="entnet", data=str(stories), tasks=[3], joint=True)
    assert [recipe["data"]["sentences"] for recipe in joint.build_recipes()] == [70]
