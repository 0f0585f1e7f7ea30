"""``mnemic table students``: what each network learns from, resuming, and what is measured."""

import json
from pathlib import Path
from typing import Any

import pytest
import text_files
import torch
from app_runs import run, sets
from ranker_folders import write_classifier

from mnemic.checkpoint.folder import WEIGHTS, load_checkpoint, save_checkpoint, weights_of
from mnemic.recipe import ConfigError
from mnemic.reproduce import students_table
from mnemic.reproduce.student_recipes import describe_start
from mnemic.reproduce.students_table import StudentsTable, train_missing_students
from mnemic.text.tokenizers.trainers import train_wordpiece
from mnemic.train.initialize import initialize_network, space_layers
from mnemic.train.run import fit

TINY = [
    "model.width=16",
    "data.length=40",
    "data.overlap=4",
    'data.tokenizer={kind="wordpiece", vocab=300}',
    "train.steps=2",
    "objective.soft_weight=0.75",
    "phases.0.train.steps=1",
]
LEARNERS = ("teacher", "alone", "soft", "layers", "ensemble")  # of labels or teachers
OPTIONS: dict[str, Any] = {"depth": 1, "teachers": 2, "sets": TINY}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the files of RTE and SQuAD, as GLUE and SQuAD name them."""
    root = tmp_path_factory.mktemp("students")
    text_files.pairs(root / "glue" / "RTE", count=160)
    (root / "glue" / "RTE" / "test.tsv").rename(root / "glue" / "RTE" / "dev.tsv")
    text_files.spans(root / "squad", count=60)
    return root


def table_of(data: Path, **options: Any) -> StudentsTable:
    return StudentsTable(**{**OPTIONS, "glue": str(data / "glue"), "squad": str(data / "squad"), **options})


def command(data: Path, out: Path, *more: object) -> list[object]:
    folders = ["--glue", data / "glue", "--squad", data / "squad", "--out", out]
    return ["table", "students", *folders, "--depth", 1, "--teachers", 2, "--device", "cpu", *sets(*TINY), *more]


@pytest.fixture(scope="module")
def table(data: Path) -> Path:
    """Train a table that was stopped within its second run."""
    steps = train_missing_students(table_of(data), data / "table")
    for _ in range(3):
        next(steps)
    steps.close()
    done = run(*command(data, data / "table"))
    assert done.code == 0, done.err
    assert "left out: no folder" in done.out
    return data / "table"


def read(table: Path) -> Any:
    return json.loads((table / "table.json").read_text(encoding="utf-8"))


def test_every_network_has_a_row_on_dev(table: Path) -> None:
    result = read(table)
    assert set(result) == {
        "table", "command", "tasks", "skipped", "start", "depth", "teachers", "cross_encoder", "seeds", "overrides",
        "texts_per_batch", "cpu", "hardware", "versions", "seconds",
    }  # fmt: skip
    assert list(result["tasks"]) == ["rte", "squad"]
    assert list(result["skipped"]) == ["sst2", "mrpc", "stsb", "cola"]
    for name, task in result["tasks"].items():
        rows = {row["network"]: row for row in task["rows"]}
        assert list(rows) == [*LEARNERS, *(["baseline"] if name == "rte" else [])]
        main = task["metrics"][0]
        for network, row in rows.items():
            figures = run("evaluate", table / f"{name}-{network}-0", "--device", "cpu", "--json").json["figures"]
            assert figures == {metric: pytest.approx(score["mean"]) for metric, score in row["metrics"].items()}
            teacher_score = rows["teacher"]["metrics"][main]["mean"]
            share = pytest.approx(100 * figures[main] / teacher_score) if teacher_score else None
            assert row["share_of_teacher"] == share
            assert row["runs"][0]["texts"] == 60
            assert row["ms"] > 0
        assert len({row["weights"] for network, row in rows.items() if network not in ("teacher", "baseline")}) == 1
        assert rows["alone"]["mb"] < rows["teacher"]["mb"]


def test_the_baseline_has_its_own_settings(table: Path) -> None:
    recipe = load_checkpoint(table / "rte-baseline-0").recipe
    assert recipe["model"]["encode"]["kind"] == "word-ngrams"
    assert (recipe["data"]["kind"], recipe["data"]["length"]) == ("pairs", 512)  # whatever --set says


def test_students_that_find_differ_in_their_negatives(tmp_path: Path) -> None:
    """The last one also learns the rankings of a cross-encoder, whose vocabulary all have."""
    text_files.retrieval(tmp_path / "squad", 200)
    texts = [(tmp_path / "squad" / "train.json").read_text(encoding="utf-8")]
    ranker = write_classifier(tmp_path / "ranker", train_wordpiece(texts, vocab=150))
    sizes = ["model.width=16", "model.encode.stack.attention.heads=4", "data.length=24", "data.overlap=4"]
    options = ["--squad", tmp_path / "squad", "--tasks", "retrieval", "--cross-encoder", ranker, "--depth", 1]
    out = ["--out", tmp_path / "table", "--device", "cpu"]
    more = sets(*sizes, "train.steps=2", "data.validation=0.2")
    done = run("table", "students", *options, *out, *more)
    assert done.code == 0, done.err
    task = read(tmp_path / "table")["tasks"]["retrieval"]
    rows = {row["network"]: row for row in task["rows"]}
    assert list(rows) == ["articles-8", "articles-32", "articles-128", "cross-encoder"]
    recipes = {network: load_checkpoint(tmp_path / "table" / f"retrieval-{network}-0").recipe for network in rows}
    assert [recipe["data"]["articles"] for recipe in recipes.values()] == [8, 32, 128, 32]
    assert {recipe["data"]["tokenizer"]["folder"] for recipe in recipes.values()} == {str(ranker)}
    objectives = [recipe["objective"] for recipe in recipes.values()]
    assert objectives[:3] == 3 * [{"kind": "retrieve-and-read", "spans": 0}]
    assert objectives[3] == {"kind": "distil-ranking", "hard": objectives[0]}
    for row in rows.values():
        assert row["share_of_teacher"] is None
        assert 0 <= row["metrics"]["recall@1"]["mean"] <= row["metrics"]["recall@5"]["mean"] <= 100
        assert row["ms"] > 0
    small = run("table", "students", *options, *out, *more, *sets("train.batch=64"))
    assert small.code == 2
    assert "finding takes train.batch ≥ 128" in small.err


def test_size_is_that_of_the_shipped_file(table: Path, tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "small", load_checkpoint(table / "rte-alone-0"), quantize=True)
    row = read(table)["tasks"]["rte"]["rows"][1]
    header = 5000  # at most: names and shapes
    assert 0 <= (tmp_path / "small" / WEIGHTS).stat().st_size - 1e6 * row["mb"] < header


def test_what_each_network_learns_from(table: Path) -> None:
    recipes = {network: load_checkpoint(table / f"rte-{network}-0").recipe for network in LEARNERS}
    first, second = (str(table / f"rte-teacher-{seed}") for seed in range(2))
    teachers = {network: recipe.get("teacher", {}).get("folder") for network, recipe in recipes.items()}
    assert teachers == {"teacher": None, "alone": None, "soft": first, "layers": first, "ensemble": [first, second]}
    kinds = {network: recipe["objective"]["kind"] for network, recipe in recipes.items()}
    assert kinds == {"teacher": "classes", "alone": "classes"} | dict.fromkeys(("soft", "layers", "ensemble"), "distil")
    assert recipes["soft"]["objective"]["soft_weight"] == 0.75
    phases = [row["phase"] for row in load_checkpoint(table / "rte-layers-0").progress.history]
    assert phases == [1, 2]
    assert [recipes[name]["model"]["encode"]["stack"]["depth"] for name in ("teacher", "soft")] == [2, 1]
    assert all("validation_file" not in recipe["data"] for recipe in recipes.values())  # never dev


def test_a_stopped_table_is_the_same_to_the_bit(table: Path, data: Path) -> None:
    stopped = load_checkpoint(table / "rte-teacher-1")
    for _ in fit(stopped.recipe, data / "straight", seed=1, device="cpu"):
        pass
    straight = weights_of(load_checkpoint(data / "straight").network)
    assert all(torch.equal(weight, straight[name]) for name, weight in weights_of(stopped.network).items())


def test_a_finished_table_is_not_trained_again(table: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise AssertionError("a finished run was trained again")

    monkeypatch.setattr(students_table, "fit", fail)
    before = read(table)
    assert run(*command(data, table, "--json")).json == before == read(table)


def test_changed_files_are_an_error(table: Path, data: Path) -> None:
    dev = data / "glue" / "RTE" / "dev.tsv"
    text = dev.read_text(encoding="utf-8")
    dev.write_text(text + text.splitlines()[-1] + "\n", encoding="utf-8")
    try:
        done = run(*command(data, table, "--tasks", "rte"))
    finally:
        dev.write_text(text, encoding="utf-8")
    assert done.code == 2
    assert "other files than train.tsv, dev.tsv are now" in done.err


def test_students_start_with_layers_of_the_same_width(table: Path, data: Path) -> None:
    start = table / "squad-teacher-0"
    common = [text for text in TINY if not text.startswith(("model", "data.tokenizer"))]
    equal, narrow = (table_of(data, start=str(start), sets=common, width=width) for width in (16, 8))
    recipe = equal.build_recipes(data, "rte", equal.files["rte"])["alone", 0]
    assert describe_start(recipe) == f"1 layers, evenly spaced, of {start}"
    checkpoint = load_checkpoint(start)
    network = initialize_network(recipe["model"], {**checkpoint.sizes, "classes": 2}, 0)
    weights = space_layers(weights_of(checkpoint.network), 1)
    assert all(torch.equal(weight, weights[f"encode.{name}"]) for name, weight in weights_of(network.encode).items())

    recipe = narrow.build_recipes(data, "rte", narrow.files["rte"])["soft", 0]
    assert describe_start(recipe) == "random weights"
    assert (recipe["model"]["width"], recipe["train"]["rate"]) == (8, 0.0005)  # not that of --start
    assert recipe["data"]["tokenizer"] == {"kind": "stored", "folder": str(start / "checkpoint")}


def test_sentences_of_sst2_are_held_out(tmp_path: Path) -> None:
    folder = tmp_path / "glue" / "SST-2"
    lines = [f"the film {letter} is {letter} \t1" for letter in "abcdefghijklmnopqrst"]
    lines += [f"{line.split(' is ')[0]} \t0" for line in lines]
    for name in ("train", "dev"):
        text_files.write(folder / f"{name}.tsv", ["sentence\tlabel", *lines])
    table = StudentsTable(glue=str(tmp_path / "glue"), tasks=["sst2"])
    files = table.files_in(tmp_path / "out", "sst2")
    recipe = table.build_recipes(tmp_path / "out", "sst2", files)["alone", 0]
    train, validation = (
        (Path(recipe["data"]["folder"]) / recipe["data"][f"{name}_file"]).read_text("utf-8").splitlines()[1:]
        for name in ("train", "validation")
    )
    assert len(validation) == 2
    assert all(" is " in line for line in validation)
    phrases = [f"{line.split(' is ')[0]} \t0" for line in validation]
    assert sorted([*train, *validation, *phrases]) == sorted(lines)
    assert recipe["data"]["test_file"] == str(folder / "dev.tsv")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--tasks", "mrpc"], "MRPC' with the files of MRPC"),
        (["--tasks", "rt"], "did you mean 'rte'?"),
        (["--tasks", "rte", "--glue", ""], "add --glue DIR"),
        (["--glue", "nowhere", "--squad", ""], "nowhere/SST-2"),
        (["--glue", "", "--squad", ""], "add --squad DIR, --glue DIR or both"),
        (["--start", "reader-small", "--depth", 4], "--depth 4 does not divide the teacher's 6 layers"),
        (["--width", 18], "--width 18 is no multiple of the 4 attention heads"),
    ],
)
def test_mistakes_are_found_before_training(more: list[object], message: str, data: Path, tmp_path: Path) -> None:
    done = run(*command(data, tmp_path / "out", *more))
    assert done.code == 2
    assert message in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_one_teacher_is_no_ensemble(data: Path) -> None:
    with pytest.raises(ConfigError, match="at least 2 teachers"):
        table_of(data, teachers=1)
