"""The runs of a table: each as if trained alone, none trained twice, and all go on after a stop."""

import shutil
from pathlib import Path
from shutil import copytree
from typing import NamedTuple

import pytest
from table_runs import SHORT, TASKS, stories, table_of, trained

from mnemic.checkpoint.folder import load_checkpoint
from mnemic.evaluate.error_rate import compute_task_errors
from mnemic.recipe import ConfigError
from mnemic.reproduce.babi_table import BabiTable, LapTimer, build_result, load_runs, train_missing_runs
from mnemic.train.run import fit, load_data

__all__ = ["stories"]  # a fixture


# How it is trained -----------------------------------------------------------------------------


def test_a_run_of_a_table_is_the_run_that_fit_trains(stories: Path, tmp_path: Path) -> None:
    table = table_of(stories, joint=True)
    trained(table, tmp_path)
    (recipe,) = table.build_recipes()
    for _ in fit(recipe, tmp_path / "run", seed=1):
        pass
    network, data = load_checkpoint(tmp_path / "run").network, load_data(recipe)
    row = load_runs(tmp_path)[table.hash_recipes()[0], 1]
    for split in ("train", "validation", "test"):
        errors = compute_task_errors(network, getattr(data, split))
        assert {int(task): error for task, error in row[split].items()} == pytest.approx(errors)


@pytest.mark.parametrize("joint", [True, False])
def test_runs_trained_at_once_are_runs_trained_one_by_one(stories: Path, tmp_path: Path, joint: bool) -> None:
    single_folder, pair_folder = tmp_path / "one", tmp_path / "both"
    single, pair = (table_of(stories, joint=joint, at_once=count) for count in (1, 2))
    trained(single, single_folder)
    trained(pair, pair_folder)
    assert load_runs(single_folder).keys() == load_runs(pair_folder).keys()
    for name, row in load_runs(single_folder).items():
        for split in ("train", "validation", "test"):
            assert load_runs(pair_folder)[name][split] == pytest.approx(row[split])


def test_finished_runs_are_not_trained_again(stories: Path, tmp_path: Path) -> None:
    table = table_of(stories)
    assert trained(table, tmp_path) == 24
    before = load_runs(tmp_path)
    assert trained(table, tmp_path) == 0
    lines = (tmp_path / "runs.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line]
    torn = [*rows[:2], rows[2][: len(rows[2]) // 2]]  # killed while the third was written
    (tmp_path / "runs.jsonl").write_text("\n".join(torn), encoding="utf-8")
    assert trained(table, tmp_path) == 12
    after = load_runs(tmp_path)
    assert after.keys() == before.keys()
    for name, row in after.items():
        assert {**row, "seconds": 0} == {**before[name], "seconds": 0}
    assert trained(table_of(stories, seeds=3), tmp_path) == 12  # only the new seed
    changed_table = table_of(stories, sets=[*SHORT, "model.memory.hops=1"])
    with pytest.raises(ConfigError, match="runs of another recipe or other settings"):
        trained(changed_table, tmp_path)  # its best networks would stand where these do


@pytest.mark.parametrize("at_once", [1, 2])
def test_the_best_network_of_each_task_is_kept(stories: Path, tmp_path: Path, at_once: int) -> None:
    table = table_of(stories, at_once=at_once)
    trained(table, tmp_path)
    for task in TASKS:
        runs = [run for run in load_runs(tmp_path).values() if run["tasks"] == [task]]
        best = min(runs, key=lambda run: run["train"][str(task)])
        checkpoint = load_checkpoint(tmp_path / "best" / f"task{task}")
        assert checkpoint.seed == best["seed"]
        errors = compute_task_errors(checkpoint.network, load_data(checkpoint.recipe).test)
        assert errors == {task: best["test"][str(task)]}


def test_lanes_change_nothing_but_the_order(stories: Path, tmp_path: Path) -> None:
    in_turn, concurrent = tmp_path / "in turn", tmp_path / "beside"
    trained(table_of(stories), in_turn)
    trained(table_of(stories, lanes=3), concurrent)
    assert load_runs(in_turn).keys() == load_runs(concurrent).keys()
    for name, row in load_runs(concurrent).items():
        assert {**row, "seconds": 0} == {**load_runs(in_turn)[name], "seconds": 0}


class FinishedTable(NamedTuple):
    """A table of two lanes, so that two groups are half trained at once, and its runs."""

    table: BabiTable
    folder: Path
    num_steps: int


KEEP_BEST = [*SHORT, "train.keep=best", "train.validate=1"]


@pytest.fixture(scope="module", params=[(SHORT, 1), (SHORT, 2), (KEEP_BEST, 1), (KEEP_BEST, 2)])
def finished_table(
    stories: Path, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> FinishedTable:
    sets, at_once = request.param
    table, folder = table_of(stories, joint=True, sets=sets, at_once=at_once, lanes=2), tmp_path_factory.mktemp("whole")
    return FinishedTable(table, folder, trained(table, folder))


@pytest.mark.parametrize("after", [1, 4, 8, 10])
def test_a_table_stopped_in_the_middle_of_a_run_goes_on_there(
    finished_table: FinishedTable, tmp_path: Path, after: int
) -> None:
    """Stopped in either phase of either group."""
    (table, complete, steps), stopped = finished_table, tmp_path / "stopped"
    steps_of_table = train_missing_runs(table, stopped)
    for _ in range(min(after, steps - 1)):
        next(steps_of_table)
    steps_of_table.close()
    assert trained(table, stopped) == steps - min(after, steps - 1)
    for name, row in load_runs(stopped).items():
        assert {**row, "seconds": 0} == {**load_runs(complete)[name], "seconds": 0}
    assert not list((stopped / "going").iterdir())


def test_a_table_that_was_killed_goes_on_at_its_last_save(
    stories: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody closes it: what stands on the disk in the middle of a run is all there is."""
    monkeypatch.setattr("mnemic.reproduce.train_ensemble.SAVE_INTERVAL_S", 0.0)
    table = table_of(stories, joint=True, sets=[*SHORT, "train.batch=32", "train.steps=9"])
    complete, killed, resumed = tmp_path / "whole", tmp_path / "killed", tmp_path / "left"
    steps = trained(table, complete)
    steps_of_table = train_missing_runs(table, killed)
    for _ in range(steps - 2):
        next(steps_of_table)
    copytree(killed, resumed)
    steps_of_table.close()
    assert 2 <= trained(table, resumed) < steps // 2
    for name, row in load_runs(resumed).items():
        assert {**row, "seconds": 0} == {**load_runs(complete)[name], "seconds": 0}


def test_the_time_of_a_stopped_table_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a run, a night, the other half: the night is no training."""
    now = [100.0]
    monkeypatch.setattr("mnemic.reproduce.timer.time.monotonic", lambda: now[0])
    timer = LapTimer(tmp_path / "going" / "seconds.json")
    now[0] += 7
    assert timer.lap() == 7
    now[0] += 5
    timer.stop()
    now[0] += 30_000
    again = LapTimer(tmp_path / "going" / "seconds.json")
    now[0] += 2
    assert again.lap() == 7
    assert not list((tmp_path / "going").iterdir())


def test_joint_runs_use_the_joint_recipe_and_all_tasks(stories: Path) -> None:
    joint, single = table_of(stories, joint=True, sets=[]), table_of(stories, sets=[])
    (recipe,) = joint.build_recipes()
    assert recipe["model"]["width"] == 50
    assert recipe["data"]["tasks"] == TASKS
    assert [recipe["data"]["tasks"] for recipe in single.build_recipes()] == [[1], [6]]
    assert single.build_recipes()[0]["model"]["width"] == 20
    assert joint.hash_recipes()[0] not in single.hash_recipes()


def test_a_missing_training_file_is_generated_and_said(stories: Path, tmp_path: Path) -> None:
    """As the 10k file of task 3 is."""
    folder = tmp_path / "en"
    folder.mkdir()
    for path in (stories / "tasks_1-20_v1-2" / "en").iterdir():
        if "qa6" not in path.name or "test" in path.name:
            (folder / path.name).write_bytes(path.read_bytes())
    table = table_of(tmp_path, seeds=1, joint=True)
    trained(table, tmp_path / "out")
    assert build_result(table, tmp_path / "out")["generated_training_tasks"] == [6]


def test_runs_belong_to_the_stories_and_not_to_their_folder(stories: Path, tmp_path: Path) -> None:
    """A folder may be moved; a file that changed makes other runs."""
    out = tmp_path / "out"
    table = table_of(stories, seeds=1, joint=True)
    assert trained(table, out) == 6
    moved = table_of(Path(shutil.copytree(stories, tmp_path / "moved")), seeds=1, joint=True)
    assert trained(moved, out) == 0
    first = build_result(moved, out)
    assert first == build_result(table, out)
    path = next((tmp_path / "moved" / "tasks_1-20_v1-2" / "en").glob("qa1_*_train.txt"))
    path.write_bytes(path.read_bytes().replace(b"John", b"Mary", 1))
    with pytest.raises(ConfigError, match="runs of another recipe or other settings"):
        trained(moved, out)
    assert trained(moved, tmp_path / "other") == 6
    assert build_result(moved, tmp_path / "other")["data_sha256"] != first["data_sha256"]
