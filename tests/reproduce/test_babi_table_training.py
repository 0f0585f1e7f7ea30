"""The runs of a table: each as if trained alone, none trained twice, and all go on after a stop."""

import shutil
from pathlib import Path
from shutil import copytree

import pytest
from table_runs import SHORT, TASKS, stories, table_of, trained

from mnemic.checkpoint.folder import load
from mnemic.evaluate.error_rate import task_errors
from mnemic.recipe import ConfigError
from mnemic.reproduce.babi_table import Clock, kept, rebuild, result
from mnemic.train.run import data_of, fit

__all__ = ["stories"]  # a fixture


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
    monkeypatch.setattr("mnemic.reproduce.train_ensemble.SAVE_AFTER", 0.0)
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
    monkeypatch.setattr("mnemic.reproduce.timer.time.monotonic", lambda: now[0])
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
