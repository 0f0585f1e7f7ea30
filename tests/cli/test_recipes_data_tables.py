"""Recipes, stories and tables from the command line."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from app_runs import run, sets

from mnemic import recipe
from mnemic.cli.tables import babi_table
from mnemic.data.babi.folder import load_task
from mnemic.recipe.to_toml import format_toml


def test_every_recipe_is_listed_with_its_paper() -> None:
    rows = run("recipes", "--json").json["recipes"]
    assert [row["name"] for row in rows] == recipe.recipe_names()
    assert all("Published" in row["about"] for row in rows)
    output = run("recipes").out
    assert all(name in output for name in recipe.recipe_names())


@pytest.mark.parametrize("name", recipe.recipe_names())
def test_a_recipe_is_shown_whole_and_can_be_read_back(name: str) -> None:
    full_recipe = recipe.load_recipe(name)
    assert tomllib.loads(format_toml(full_recipe)) == full_recipe
    if tasks := recipe.load_task_settings(name):
        full_recipe |= {"tasks": tasks}
    output = run("recipes", name).out
    toml = output[output.index("\n[") : output.index("┏")]
    assert tomllib.loads(toml) == full_recipe
    report = run("recipes", name, "--json").json
    assert report["recipe"] == full_recipe


def test_options_come_from_the_signatures() -> None:
    options = {option["option"]: option for option in run("recipes", "memn2n", "--json").json["options"]}
    hops, width = options["model.memory.hops"], options["model.width"]
    assert hops == {"option": "model.memory.hops", "takes": "a whole number", "default": 3}
    assert width["value"] == 20
    assert "default" not in options["data.folder"]
    assert options["train.clip.kind"]["value"] == "spectral"
    assert "model.encode.vocab" not in options


def list_settings(section: dict[str, Any], name: str) -> Iterator[str]:
    """List the dotted keys of a recipe section; a table with numeric keys counts once."""
    for key, value in section.items():
        inner = isinstance(value, dict) and not all(inner_key.isdigit() for inner_key in value)
        yield from list_settings(value, f"{name}.{key}") if inner else [f"{name}.{key}"]


@pytest.mark.parametrize("name", recipe.recipe_names())
def test_whatever_a_recipe_sets_is_among_its_options(name: str) -> None:
    options = {option["option"]: option for option in run("recipes", name, "--json").json["options"]}
    for section in ("model", "data", "objective", "train"):
        keys = list(list_settings(recipe.load_recipe(name)[section], section))
        assert [key for key in keys if "value" not in options.get(key, {})] == []
    assert {"model.ask.kind", "model.fuse.kind"} <= options.keys()


def test_a_part_inside_a_part_has_its_own_options() -> None:
    options = {option["option"]: option for option in run("recipes", "kv-memnn", "--json").json["options"]}
    assert options["model.memory.update.kind"]["value"] == "rotate"
    plain = {option["option"]: option for option in run("recipes", "memnn", "--json").json["options"]}
    assert plain["model.memory.match.kind"] == {
        "option": "model.memory.match.kind",
        "takes": "linear, tanh",
        "default": "linear",
    }
    assert "model.memory.update.kind" not in plain  # it takes none


def test_toml_keeps_odd_texts_and_keys() -> None:
    odd = {"data": {"kind": 'a "b"\n\\c', "a b": [1, 2.5, True], "in": {"x": {}}}, "phases": [{}]}
    assert tomllib.loads(format_toml(odd)) == odd


def test_stories_are_written_in_the_official_layout(tmp_path: Path) -> None:
    files = ("data", "stories", "--task", "1", "--task", "3-4", "--count", "25", "--out", tmp_path)
    report = run(*files, "--json").json
    assert [file["task"] for file in report["files"]] == [1, 3, 4]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "qa1_single-supporting-fact_train.txt",
        "qa3_three-supporting-facts_train.txt",
        "qa4_two-arg-relations_train.txt",
    ]
    assert all(len(load_task(tmp_path, task, "train")) == 25 for task in (1, 3, 4))
    before = (tmp_path / "qa1_single-supporting-fact_train.txt").read_bytes()
    again = run(*files)
    assert again.code == 2
    assert "is there already; give another --out, or --force" in again.err
    assert run(*files, "--force", "--seed", "1").code == 0
    assert (tmp_path / "qa1_single-supporting-fact_train.txt").read_bytes() != before


def test_training_and_test_stories_are_others(tmp_path: Path) -> None:
    for split in ("train", "test"):
        run("data", "stories", "--task", "1", "--count", "50", "--split", split, "--out", tmp_path)
    assert load_task(tmp_path, 1, "train") != load_task(tmp_path, 1, "test")


def test_stopped_writing_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("mnemic.cli.render.progress.ProgressBars.show", stop)
    done = run("data", "stories", "--task", "all", "--out", tmp_path)
    assert done.code == 130
    assert done.err == f"stopped; to go on: mnemic data stories --task all --out {tmp_path}\n"
    assert list(tmp_path.iterdir()) == []


def test_show_one_story() -> None:
    report = run("data", "show", "--task", "15", "--json").json
    assert report["name"] == "basic-deduction"
    assert {"number", "text", "answer", "facts"} == set(report["story"][-1])
    output = run("data", "show", "--task", "15").out
    assert report["story"][0]["text"] in output
    assert report["story"][-1]["answer"] in output


@pytest.fixture
def babi(tmp_path: Path) -> Path:
    """Write a small folder in the official layout."""
    for split in ("train", "test"):
        arguments = ("--task", "1,2", "--count", "200", "--split", split, "--out", tmp_path / "babi")
        assert run("data", "stories", *arguments).code == 0
    return tmp_path / "babi"


@pytest.mark.parametrize("joint", [False, True])
def test_a_table_sets_ours_beside_the_published_one(
    joint: bool, babi: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ["table", "babi", "--data", babi, "--tasks", "1-2", "--seeds", "2", "--device", "cpu"]
    arguments += [*sets("train.epochs=2", "phases.0.train.epochs=1"), *(["--joint"] if joint else [])]
    done = run(*arguments, "--json")
    results, paper = done.json["ours"], done.json["published"]
    assert done.code == 0
    assert {"mean_error", "std", "median", "best", "failed", "per_task"} <= results.keys()
    assert (paper["mean_error"], paper["failed"]) == ((12.4, 11) if joint else (13.9, 11))
    assert done.err.count("runs ") == (2 if joint else 4)
    output = run(*arguments)
    assert output.err == ""  # every run was kept
    assert f"2 seeds: mean error {results['mean_error']:.1f} ± {results['std']:.1f} %" in output.out
    assert "the best is chosen by lowest training error" in output.out
    assert set(results["evidence"]) == {"1", "2"}
    assert "reads a proof" in output.out
    assert f"{results['evidence']['1']['supporting']:.1f}" in output.out
    assert Path(f"runs/table-babi-memn2n-1k{'-joint' if joint else ''}/table.json").is_file()


def test_all_tables_end_in_one_line_a_network(babi: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ["table", "babi", "--recipe", "all", "--joint", "--data", babi, "--tasks", "1-2"]
    arguments += ["--seeds", "1", "--device", "cpu", *sets("train.steps=3")]
    done = run(*arguments)
    assert done.code == 0, done.err
    assert "table 1 of 2: memn2n-1k-joint" in done.err
    assert "memn2n-lw joint" in done.out
    assert "needs another" in done.out
    summary = run(*arguments, "--json")
    assert "runs 1" not in summary.err  # all were kept
    assert [row["recipe"] for row in summary.json["rows"]] == ["memn2n", "memn2n-lw"]
    folder = Path("runs/table-babi-all-1k-joint")
    assert (folder / "summary.json").is_file()
    assert (folder / "memn2n-lw-1k-joint" / "table.json").is_file()


def test_a_stopped_table_keeps_its_finished_runs(babi: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ("table", "babi", "--data", babi, "--tasks", "1", "--seeds", "2", "--device", "cpu",
             *sets("train.epochs=1", "phases=[{}]"), "--out", tmp_path / "table")  # fmt: skip
    show_original = babi_table.ProgressBars.show
    done: list[float] = []

    def show(bars: babi_table.ProgressBars, name: str, num_finished: float, *rest: object) -> None:
        show_original(bars, name, num_finished, *rest)  # type: ignore[arg-type]
        done.append(num_finished)

    monkeypatch.setattr(babi_table, "defer_interrupts", lambda: Pressed(done))
    monkeypatch.setattr(babi_table.ProgressBars, "show", show)
    stopped = run(*arguments)
    assert stopped.code == 130
    message = f"1 finished runs and the state of the others are kept in {tmp_path / 'table'}"
    assert f"stopped; {message}; to go on:" in stopped.err
    monkeypatch.undo()
    resumed = run(*arguments)
    assert resumed.code == 0
    assert resumed.err == "runs 2 to 2 of 2, from step 2 of phase 1\n"


class Pressed:
    """Simulate Ctrl-C as soon as the second run has started."""

    def __init__(self, done: list[float]) -> None:
        self.done = done

    def __enter__(self) -> "object":
        return lambda: max(self.done, default=0) > 1

    def __exit__(self, *error: object) -> None:
        pass
