"""What the runs of a table read, and all tables of a size by one command."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from evidence_by_task import measure_faithfulness, measure_supporting_facts
from table_runs import SHORT, stories, table_of, trained, write_runs

from mnemic.checkpoint.folder import load_checkpoint
from mnemic.cli.main import main
from mnemic.reproduce import babi_table as tables
from mnemic.reproduce.all_tables import check_tables, list_tables, table_folder_of
from mnemic.reproduce.babi_table import BabiTable, build_result, load_runs
from mnemic.reproduce.statistics import format_evidence, summarize_table
from mnemic.train.run import fit, load_data

__all__ = ["stories"]  # a fixture


# What was read ---------------------------------------------------------------------------------


def test_every_run_says_what_it_read_on_the_tasks_that_have_proofs(stories: Path, tmp_path: Path) -> None:
    """As the functions for a single network say; task 6 has proofs too, but is not asked."""
    table = table_of(stories, joint=True, at_once=2)
    trained(table, tmp_path)
    (recipe,) = table.build_recipes()
    for _ in fit(recipe, tmp_path / "run", seed=1):
        pass
    network, data = load_checkpoint(tmp_path / "run").network, load_data(recipe)
    row = load_runs(tmp_path)[table.hash_recipes()[0], 1]["evidence"]
    assert set(row) == {"1"}
    first = data.test.select((data.test.task == 1).nonzero().squeeze(1))
    needs = measure_faithfulness(network, first, torch.Generator().manual_seed(0))
    assert row["1"] == pytest.approx(
        {
            "supporting": measure_supporting_facts(network, first)[1],
            "most_read": needs.most_read[1],
            "other": needs.random_other[1],
        }
    )


def test_a_table_shows_what_its_best_runs_read(stories: Path, tmp_path: Path) -> None:
    """Not what the best reader read: the run is chosen by its error alone."""

    def read(share: float) -> dict[str, dict[str, float]]:
        return {"1": {"supporting": share, "most_read": share, "other": 0.0}}

    single, joint = table_of(stories, tasks=[1]), table_of(stories, joint=True)
    for table, folder in ((single, tmp_path / "single"), (joint, tmp_path / "joint")):
        row = {"recipe": table.hash_recipes()[0], "tasks": [1], "generated": [], "seconds": 60.0}
        errors = {split: {"1": 9.0} for split in ("validation", "test")}
        worse = {"seed": 0, "train": {"1": 3.0}, "evidence": read(90.0)}
        better = {"seed": 1, "train": {"1": 2.0}, "evidence": read(40.0)}
        tables.append_runs(folder, [row | errors | worse, row | errors | better])
        result = build_result(table, folder)
        assert result["ours"]["evidence"] == read(40.0)
        assert summarize_table(result)["evidence"] == read(40.0)
        assert summarize_table(result)["minutes"] == 2.0
    assert format_evidence(read(40.0), "supporting") == "40"


def test_rows_that_were_kept_before_there_was_evidence_are_read(stories: Path, tmp_path: Path) -> None:
    table = table_of(stories, tasks=[1], seeds=1)
    write_runs(table, tmp_path, [(0, 0, {"1": 0.0}, {"1": 7.0})])
    result = build_result(table, tmp_path)
    assert result["ours"]["evidence"] == {}
    assert format_evidence(result["ours"]["evidence"], "supporting") == "–"


# Settings of single tasks ----------------------------------------------------------------------


def test_a_task_is_trained_with_its_own_settings_unless_the_table_is_joint(stories: Path) -> None:
    third, sixth = table_of(stories, recipe="entnet", tasks=[3, 6], sets=[]).build_recipes()
    assert (third["data"]["sentences"], sixth["data"]["sentences"]) == (130, 70)
    (joint,) = table_of(stories, recipe="entnet", tasks=[3, 6], sets=[], joint=True).build_recipes()
    assert joint["data"]["sentences"] == 70
    assert not [recipe for recipe in (third, sixth, joint) if "tasks" in recipe]


# All tables of a size --------------------------------------------------------------------------


def names_of(tables: Sequence[BabiTable]) -> list[tuple[str, bool]]:
    return [(table.recipe, table.joint) for table in tables]


def test_a_network_that_learns_from_augmented_stories_is_there_twice(stories: Path) -> None:
    """Compared with the same paper, which has nothing of the kind."""
    large = list_tables(table_of(stories, size="10k"))
    names = [table.recipe for table in large]
    augmented = [table for table in large if table.recipe.endswith("-augmented")]
    assert {"entnet-augmented", "wmn-augmented"} <= {table.recipe for table in augmented}
    for table in augmented:
        plain = large[names.index(table.recipe.removesuffix("-augmented"))]
        assert plain.joint == table.joint
        published, paper = table.load_published(), plain.load_published()
        assert published.pop("source") == f"{paper.pop('source')}, no story told again"
        assert published == paper
        old_name = replace(table, recipe=table.recipe.replace("-augmented", "-retold"), sets=())
        assert old_name.load_published() == table.load_published()
        assert old_name.selection_split() == table.selection_split()
        assert old_name.build_recipes() == replace(table, sets=()).build_recipes()
    assert not [table for table in list_tables(table_of(stories)) if "augmented" in table.recipe]


def test_all_are_the_published_ones_each_as_its_paper_did_it(stories: Path) -> None:
    large = names_of(list_tables(table_of(stories, recipe="all", size="10k")))
    assert len(large) == len(set(large))
    assert {("entnet", False), ("wmn", True), ("memn2n", False), ("memn2n", True)} <= set(large)
    assert not {("wmn", False), ("memnn-am-ng-nl", False), ("entnet", True)} & set(large)
    small = list_tables(table_of(stories, recipe="all", size="1k", seeds=7))
    assert {("dmn", False), ("memnn-am-ng-nl", False)} <= set(names_of(small))
    assert all(table.load_published() and table.seeds == 7 for table in small)
    joint = names_of(list_tables(table_of(stories, recipe="all", size="1k", joint=True)))
    assert joint == [pair for pair in names_of(small) if pair[1]]


def test_a_slip_is_noticed_before_the_first_network_is_trained(
    stories: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["table", "babi", "--recipe", "all", "--data", str(stories), "--tasks", "1"]
    words += ["--seeds", "1", "--out", str(tmp_path / "out"), "--set", "model.memory.passes=2"]
    assert main(words) == 2
    assert "passes" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_what_is_augmented_of_other_tasks_is_left_out(stories: Path) -> None:
    settings = {"recipe": "wmn-augmented", "data": str(stories), "size": "10k", "joint": True}
    all_tasks, two_tasks, one_task = (BabiTable(**settings, tasks=tasks) for tasks in ([1, 2, 3, 17, 19], [1, 3], [1]))
    (first,), (second,), (third,) = (table.build_recipes() for table in (all_tasks, two_tasks, one_task))
    assert set(second["data"]["interchangeable"]) == {"3"} < set(first["data"]["interchangeable"])
    assert second["data"]["interchangeable"]["3"] == first["data"]["interchangeable"]["3"]
    assert (third["data"]["interchangeable"], third["data"]["augment"]) == ({}, 0)
    check_tables([all_tasks, two_tasks, one_task])


def test_one_command_rebuilds_all_and_goes_on_where_it_was(
    stories: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Joint alone, since that is two small tables; stopped after the first."""
    sets = [word for text in SHORT for word in ("--set", text)]
    words = ["table", "babi", "--recipe", "all", "--joint", "--data", str(stories), "--seeds", "1"]
    words += ["--tasks", "1,6", "--out", str(tmp_path), "--device", "cpu", "--json", *sets]
    first = list_tables(table_of(stories, recipe="all", joint=True, seeds=1))[0]
    assert trained(first, table_folder_of(first, tmp_path)) == 6
    before = (table_folder_of(first, tmp_path) / "runs.jsonl").read_bytes()
    assert main(words) == 0
    output = capsys.readouterr()
    printed = json.loads(output.out)
    assert printed == json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))
    assert (table_folder_of(first, tmp_path) / "runs.jsonl").read_bytes() == before
    assert "table 2 of 2: memn2n-lw-1k-joint" in output.err
    rows = {row["folder"]: row for row in printed["rows"]}
    assert list(rows) == ["memn2n-1k-joint", "memn2n-lw-1k-joint"]
    for name, row in rows.items():
        table = json.loads((tmp_path / name / "table.json").read_text(encoding="utf-8"))
        assert row["best"] == table["ours"]["best"]
        assert row["published"] is None  # two tasks and overrides: not the paper's table
        assert set(row["evidence"]) == {"1"}
        assert row["hardware"].startswith("CPU")


def test_a_summary_sets_the_paper_beside_a_table_that_is_the_papers(stories: Path) -> None:
    published = {"mean_error": 12.4, "failed": 11, "per_task": {str(t): 1.0 for t in range(20)}}
    results = {"best": 9.0, "failed": 2, "mean_error": 9.5, "std": 0.1, "evidence": {}}
    table = {
        "recipe": "memn2n",
        "size": "1k",
        "setting": "joint",
        "overrides": [],
        "seeds": [0, 1],
        "selection": "lowest training error",
        "ours": results | {"per_task": published["per_task"]},
        "published": published,
        "hardware": "CPU",
        "seconds": 90.0,
    }
    assert summarize_table(table)["published"] == 12.4
    assert summarize_table(table)["published_failed"] == 11
    assert summarize_table(table | {"overrides": ["train.rate=1"]})["published"] is None
    assert summarize_table(table | {"ours": results | {"per_task": {"1": 9.0}}})["published"] is None
