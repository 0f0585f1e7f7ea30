"""A published table rebuilt on a folder of generated stories in the official layout."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
import torch

from mnemic.data.stories.folder import file_name
from mnemic.data.stories.format import render
from mnemic.data.stories.generate import generate
from mnemic.learn import tables
from mnemic.learn.__main__ import main
from mnemic.learn.checkpoint import load
from mnemic.learn.evaluate import task_errors
from mnemic.learn.figures import RULES
from mnemic.learn.fit import data_of, fit
from mnemic.learn.tables import BabiTable, Clock, kept, rebuild, result, save_result
from mnemic.recipe import ConfigError

TASKS = [1, 6]
# Three steps a phase: what is tested is the table, not the learning.
SHORT = ["model.width=5", "train.batch=8", "train.steps=3", "phases.0.train.steps=3"]


@pytest.fixture(scope="module")
def stories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tasks 1 and 6 as the official archive lays them out, but small."""
    root = tmp_path_factory.mktemp("stories")
    folder = root / "tasks_1-20_v1-2" / "en"
    folder.mkdir(parents=True)
    for task in TASKS:
        for number, split in enumerate(("train", "test")):
            made = generate(task, 40, seed=number)
            text = "".join(render(story) for story in made)
            (folder / file_name(task, split)).write_text(text, encoding="utf-8")
    return root


def table_of(stories: Path, **options: Any) -> BabiTable:
    given = {"recipe": "memn2n", "data": str(stories), "tasks": TASKS, "seeds": 2, "sets": SHORT}
    return BabiTable(**{**given, **options})


def trained(table: BabiTable, folder: Path) -> int:
    """Rebuild, and say how many steps that took."""
    return sum(1 for _ in rebuild(table, folder))


# What is printed -------------------------------------------------------------------------------


@pytest.mark.parametrize("joint", [True, False])
def test_a_table_has_what_it_promises(stories: Path, tmp_path: Path, joint: bool) -> None:
    table = table_of(stories, joint=joint)
    runs = 2 if joint else 4  # two seeds, of all tasks or of each
    assert trained(table, tmp_path) == runs * 6
    whole = save_result(table, tmp_path)
    assert json.loads((tmp_path / "table.json").read_text(encoding="utf-8")) == whole
    assert whole["setting"] == ("joint" if joint else "per task")
    ours, published = whole["ours"], whole["published"]
    for name in ("mean_error", "std", "median", "best"):
        assert 0 <= ours[name] <= 100
    assert set(ours["per_task"]) == set(ours["per_task_mean"]) == {"1", "6"}
    assert ours["failed"] == sum(error > 5 for error in ours["per_task"].values())
    assert ours["best"] == pytest.approx(sum(ours["per_task"].values()) / 2)
    assert len(ours["runs"]) == 2
    errors = [run["error"] for run in ours["runs"]]
    assert ours["mean_error"] == pytest.approx(sum(errors) / 2)
    assert ours["std"] == pytest.approx(abs(errors[0] - errors[1]) / 2**0.5)
    assert published["mean_error"] == (12.4 if joint else 13.9)
    assert published["failed"] == 11
    assert list(published["per_task"]) == [str(task) for task in range(1, 21)]
    assert whole["overrides"] == SHORT
    assert whole["selection"] == "lowest training error"
    assert whole["generated_training_tasks"] == []
    assert whole["versions"]["torch"] == torch.__version__


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
    assert result(table, tmp_path)["published"] == {}


# Which run counts ------------------------------------------------------------------------------


def by_hand(table: BabiTable, folder: Path, rows: Sequence[tuple[Any, ...]]) -> None:
    """Runs as if they had been trained: (recipe number, seed, train errors, test errors)."""
    recipes = table.recipes()
    tables.keep(
        folder,
        [
            {
                "recipe": table.run_keys()[number],
                "tasks": recipes[number]["data"]["tasks"],
                "seed": seed,
                "generated": [],
                "seconds": 1.5,
                "train": train,
                "validation": {},
                "test": test,
            }
            for number, seed, train, test in rows
        ],
    )


def test_the_best_joint_run_is_the_one_that_fits_its_training_set(
    stories: Path, tmp_path: Path
) -> None:
    """Not the one that does best on the test set."""
    table = table_of(stories, joint=True, seeds=3)
    rows = [
        (0, 0, {"1": 3.0, "6": 3.0}, {"1": 0.0, "6": 1.0}),  # the best test error, 0.5
        (0, 1, {"1": 0.0, "6": 1.0}, {"1": 4.0, "6": 6.0}),  # the best training error
        (0, 2, {"1": 9.0, "6": 9.0}, {"1": 10.0, "6": 20.0}),
    ]
    by_hand(table, tmp_path, rows)
    ours = result(table, tmp_path)["ours"]
    assert (ours["best"], ours["best_seed"], ours["failed"]) == (5.0, 1, 1)
    assert ours["per_task"] == {"1": 4.0, "6": 6.0}
    assert ours["mean_error"] == pytest.approx((0.5 + 5 + 15) / 3)
    assert ours["median"] == 5.0
    assert ours["std"] == pytest.approx(7.4, abs=0.05)
    assert ours["per_task_mean"] == pytest.approx({"1": 14 / 3, "6": 9.0})
    assert [run["failed"] for run in ours["runs"]] == [0, 1, 2]


def test_each_task_has_a_best_run_of_its_own(stories: Path, tmp_path: Path) -> None:
    table = table_of(stories, seeds=2)
    rows = [
        (0, 0, {"1": 0.0}, {"1": 7.0}),
        (0, 1, {"1": 1.0}, {"1": 2.0}),
        (1, 0, {"6": 5.0}, {"6": 20.0}),
        (1, 1, {"6": 4.0}, {"6": 30.0}),
    ]
    by_hand(table, tmp_path, rows)
    ours = result(table, tmp_path)["ours"]
    assert ours["per_task"] == {"1": 7.0, "6": 30.0}
    assert (ours["best"], ours["failed"]) == (18.5, 2)
    assert [run["error"] for run in ours["runs"]] == [13.5, 16.0]
    assert (ours["mean_error"], ours["median"]) == (14.75, 14.75)
    assert ours["per_task_mean"] == {"1": 4.5, "6": 25.0}


def test_the_published_table_says_by_what_the_best_run_is_chosen(
    stories: Path, tmp_path: Path
) -> None:
    """By validation error where its paper did so; by training error where nothing is said."""
    chosen = {}
    for recipe in ("entnet", "memn2n"):
        table, folder = table_of(stories, recipe=recipe, tasks=[1], sets=[]), tmp_path / recipe
        row = {"recipe": table.run_keys()[0], "tasks": [1], "generated": [], "seconds": 1.0}
        fits = {"seed": 0, "train": {"1": 0.0}, "validation": {"1": 9.0}, "test": {"1": 8.0}}
        holds = {"seed": 1, "train": {"1": 1.0}, "validation": {"1": 2.0}, "test": {"1": 3.0}}
        tables.keep(folder, [row | fits, row | holds])
        whole = result(table, folder)
        chosen[recipe] = (whole["selection"], whole["ours"]["best"])
    assert chosen["entnet"] == ("lowest validation error", 3.0)
    assert chosen["memn2n"] == ("lowest training error", 8.0)


def test_every_published_selection_is_a_rule() -> None:
    published = tables.tomllib.loads(tables.PUBLISHED.read_text(encoding="utf-8"))
    columns = [column for settings in published.values() for column in settings.values()]
    assert {column.get("selection", "train") for column in columns} <= RULES.keys()


def test_a_task_may_have_a_recipe_of_its_own(stories: Path) -> None:
    table = BabiTable(recipe="entnet", data=str(stories), tasks=[2, 3])
    assert [recipe["data"]["sentences"] for recipe in table.recipes()] == [70, 130]
    joint = BabiTable(recipe="entnet", data=str(stories), tasks=[3], joint=True)
    assert [recipe["data"]["sentences"] for recipe in joint.recipes()] == [70]


# How it is trained -----------------------------------------------------------------------------


def test_a_run_of_a_table_is_the_run_that_fit_trains(stories: Path, tmp_path: Path) -> None:
    table = table_of(stories, joint=True)
    trained(table, tmp_path)
    (recipe,) = table.recipes()
    for _ in fit(recipe, tmp_path / "run", seed=1):
        pass
    network, data = load(tmp_path / "run").network, data_of(recipe)
    row = kept(tmp_path)[table.run_keys()[0], 1]
    for part in ("train", "validation", "test"):
        errors = task_errors(network, getattr(data, part))
        assert {int(task): error for task, error in row[part].items()} == pytest.approx(errors)


@pytest.mark.parametrize("joint", [True, False])
def test_runs_trained_at_once_are_runs_trained_one_by_one(
    stories: Path, tmp_path: Path, joint: bool
) -> None:
    one, both = tmp_path / "one", tmp_path / "both"
    single, pair = (table_of(stories, joint=joint, at_once=count) for count in (1, 2))
    trained(single, one)
    trained(pair, both)
    assert kept(one).keys() == kept(both).keys()
    for name, row in kept(one).items():
        for part in ("train", "validation", "test"):
            assert kept(both)[name][part] == pytest.approx(row[part])


def test_finished_runs_are_not_trained_again(stories: Path, tmp_path: Path) -> None:
    table = table_of(stories)
    assert trained(table, tmp_path) == 24
    before = kept(tmp_path)
    assert trained(table, tmp_path) == 0
    lines = (tmp_path / "runs.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line]
    torn = [*rows[:2], rows[2][: len(rows[2]) // 2]]  # killed while the third was written
    (tmp_path / "runs.jsonl").write_text("\n".join(torn), encoding="utf-8")
    assert trained(table, tmp_path) == 12
    after = kept(tmp_path)
    assert after.keys() == before.keys()
    for name, row in after.items():
        assert {**row, "seconds": 0} == {**before[name], "seconds": 0}
    assert trained(table_of(stories, seeds=3), tmp_path) == 12  # only the new seed
    other = table_of(stories, sets=[*SHORT, "model.memory.hops=1"])
    with pytest.raises(ConfigError, match="runs of another recipe or other settings"):
        trained(other, tmp_path)  # its best networks would stand where these do


@pytest.mark.parametrize("at_once", [1, 2])
def test_the_best_network_of_each_task_is_kept(stories: Path, tmp_path: Path, at_once: int) -> None:
    table = table_of(stories, at_once=at_once)
    trained(table, tmp_path)
    for task in TASKS:
        runs = [run for run in kept(tmp_path).values() if run["tasks"] == [task]]
        best = min(runs, key=lambda run: run["train"][str(task)])
        checkpoint = load(tmp_path / "best" / f"task{task}")
        assert checkpoint.seed == best["seed"]
        errors = task_errors(checkpoint.network, data_of(checkpoint.recipe).test)
        assert errors == {task: best["test"][str(task)]}


def test_lanes_change_nothing_but_the_order(stories: Path, tmp_path: Path) -> None:
    in_turn, beside = tmp_path / "in turn", tmp_path / "beside"
    trained(table_of(stories), in_turn)
    trained(table_of(stories, lanes=3), beside)
    assert kept(in_turn).keys() == kept(beside).keys()
    for name, row in kept(beside).items():
        assert {**row, "seconds": 0} == {**kept(in_turn)[name], "seconds": 0}


@pytest.mark.parametrize("sets", [SHORT, [*SHORT, "train.keep=best", "train.validate=1"]])
@pytest.mark.parametrize("at_once", [1, 2])
@pytest.mark.parametrize("after", [1, 4, 8, 10])
def test_a_table_stopped_in_the_middle_of_a_run_goes_on_there(
    stories: Path, tmp_path: Path, sets: list[str], at_once: int, after: int
) -> None:
    """Stopped in either phase of either group; two lanes, so that two groups are half trained."""
    given = {"sets": sets, "at_once": at_once, "lanes": 2}
    table = table_of(stories, joint=True, **given)
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    steps = trained(table, whole)
    going = rebuild(table, stopped)
    for _ in range(min(after, steps - 1)):
        next(going)
    going.close()
    assert trained(table, stopped) == steps - min(after, steps - 1)
    for name, row in kept(stopped).items():
        assert {**row, "seconds": 0} == {**kept(whole)[name], "seconds": 0}
    assert not list((stopped / "going").iterdir())


def test_a_table_that_was_killed_goes_on_at_its_last_save(
    stories: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody closes it: what stands on the disk in the middle of a run is all there is."""
    monkeypatch.setattr("mnemic.learn.fit_many.SAVE_AFTER", 0.0)
    table = table_of(stories, joint=True, sets=[*SHORT, "train.batch=32", "train.steps=9"])
    whole, killed, left = tmp_path / "whole", tmp_path / "killed", tmp_path / "left"
    steps = trained(table, whole)
    going = rebuild(table, killed)
    for _ in range(steps - 2):
        next(going)
    copytree(killed, left)
    going.close()
    assert 2 <= trained(table, left) < steps // 2
    for name, row in kept(left).items():
        assert {**row, "seconds": 0} == {**kept(whole)[name], "seconds": 0}


def test_the_time_of_a_stopped_table_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a run, a night, the other half: the night is no training."""
    now = [100.0]
    monkeypatch.setattr("mnemic.learn.clock.time.monotonic", lambda: now[0])
    clock = Clock(tmp_path / "going" / "seconds.json")
    now[0] += 7
    assert clock.lap() == 7
    now[0] += 5
    clock.stop()
    now[0] += 30_000
    again = Clock(tmp_path / "going" / "seconds.json")
    now[0] += 2
    assert again.lap() == 7
    assert not list((tmp_path / "going").iterdir())


def test_joint_runs_use_the_joint_recipe_and_all_tasks(stories: Path) -> None:
    joint, single = table_of(stories, joint=True, sets=[]), table_of(stories, sets=[])
    (whole,) = joint.recipes()
    assert whole["model"]["width"] == 50
    assert whole["data"]["tasks"] == TASKS
    assert [recipe["data"]["tasks"] for recipe in single.recipes()] == [[1], [6]]
    assert single.recipes()[0]["model"]["width"] == 20
    assert joint.run_keys()[0] not in single.run_keys()


def test_a_missing_training_file_is_generated_and_said(stories: Path, tmp_path: Path) -> None:
    """As the 10k file of task 3 is."""
    folder = tmp_path / "en"
    folder.mkdir()
    for path in (stories / "tasks_1-20_v1-2" / "en").iterdir():
        if "qa6" not in path.name or "test" in path.name:
            (folder / path.name).write_bytes(path.read_bytes())
    table = table_of(tmp_path, seeds=1, joint=True)
    trained(table, tmp_path / "out")
    assert result(table, tmp_path / "out")["generated_training_tasks"] == [6]


def test_runs_belong_to_the_stories_and_not_to_their_folder(stories: Path, tmp_path: Path) -> None:
    """A folder may be moved; a file that changed makes other runs."""
    out = tmp_path / "out"
    table = table_of(stories, seeds=1, joint=True)
    assert trained(table, out) == 6
    moved = table_of(Path(shutil.copytree(stories, tmp_path / "moved")), seeds=1, joint=True)
    assert trained(moved, out) == 0
    first = result(moved, out)
    assert first == result(table, out)
    path = next((tmp_path / "moved" / "tasks_1-20_v1-2" / "en").glob("qa1_*_train.txt"))
    path.write_bytes(path.read_bytes().replace(b"John", b"Mary", 1))
    with pytest.raises(ConfigError, match="runs of another recipe or other settings"):
        trained(moved, out)
    assert trained(moved, tmp_path / "other") == 6
    assert result(moved, tmp_path / "other")["data_sha256"] != first["data_sha256"]


def test_the_command_prints_the_table_as_json(
    stories: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sets = [word for text in SHORT for word in ("--set", text)]
    words = ["table", "babi", "--recipe", "memn2n", "--data", str(stories), "--joint"]
    words += ["--seeds", "1", "--tasks", "1", "6", "--out", str(tmp_path), *sets]
    assert main(words) == 0
    said = capsys.readouterr()
    printed = json.loads(said.out)
    assert printed == json.loads((tmp_path / "table.json").read_text(encoding="utf-8"))
    assert set(printed["ours"]["per_task"]) == {"1", "6"}
    assert printed["ours"]["std"] == 0.0  # one seed


def test_a_folder_without_stories_is_one_line_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["table", "babi", "--recipe", "memn2n", "--data", str(tmp_path / "none")]
    assert main([*words, "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
