"""``mnemic table objectives``: its rows, two budgets of one run, resuming, and what is empty."""

import json
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
import text_files
import torch
from app_runs import run, sets

from mnemic.checkpoint.folder import load_checkpoint, weights_of
from mnemic.data.corpora.packed_folder import pack_folder
from mnemic.data.corpora.sequence_folder import load_sequence_folder
from mnemic.recipe import ConfigError
from mnemic.reproduce.objectives import pretrain as pretrain_module
from mnemic.reproduce.objectives.format import format_batches, format_budget, format_reasons
from mnemic.reproduce.objectives.pretrain import Pretraining, TrainingClock
from mnemic.reproduce.objectives.rows import build_pretraining_recipe, load_rows, select_rows
from mnemic.reproduce.objectives.scale import load_scale
from mnemic.reproduce.objectives.sequences import NAMES_NEED_TEXTS
from mnemic.reproduce.objectives.table import CELLS_FILE, ObjectivesTable, fill_table, list_networks, load_lines
from mnemic.reproduce.rows import read_rows
from mnemic.train import run as run_module

TINY = [
    "width=16", "depth=1", "heads=2", "vocab=200", "length=16", "tokens=200", "seconds=1e-6", "batch_tokens=100",
    "warmup=1", "tasks={ rte = { seeds = 2, sets = ['data.length=48', 'data.overlap=4', 'train.steps=2'] } }",
]  # fmt: skip
ROWS = ["none", "lm", "mlm", "nsp", "sop"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write texts, and the files of RTE."""
    root = tmp_path_factory.mktemp("objectives")
    text_files.corpus(root / "texts", 90)
    (root / "texts" / "corpus.jsonl").rename(root / "texts" / "train.jsonl")
    text_files.corpus(root / "texts", 8, seed=1).joinpath("corpus.jsonl").rename(root / "texts" / "valid.jsonl")
    text_files.pairs(root / "glue" / "RTE", count=40)
    (root / "glue" / "RTE" / "test.tsv").rename(root / "glue" / "RTE" / "dev.tsv")
    return root


def table_of(root: Path, **options: Any) -> ObjectivesTable:
    folders = {"data": str(root / "texts"), "glue": str(root / "glue")}
    return ObjectivesTable(**{**folders, "rows": ROWS, "sets": TINY, **options})


def command(data: Path, out: Path, *more: object) -> list[object]:
    folders = ["--data", data / "texts", "--glue", data / "glue", "--device", "cpu", "--out", out]
    return ["table", "objectives", *folders, "--rows", ",".join(ROWS), *sets(*TINY), *more]


def read(folder: Path) -> Any:
    return json.loads((folder / "table.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def folder(data: Path) -> Path:
    """Fill a table that was stopped within a pre-training, and within a task."""
    folder = data / "table"
    for last in ("mlm", "none-tokens-rte-0"):
        steps = fill_table(table_of(data), folder)
        next(step for step in steps if step.cell == last and not step.message)
        steps.close()
    done = run(*command(data, folder))
    assert done.code == 0, done.err
    assert "order, accuracy" in done.out
    return folder


def test_every_cell_is_measured(folder: Path) -> None:
    result = read(folder)
    assert [row["name"] for row in result["rows"]] == ROWS
    assert result["unfinished"] == 0
    for row in result["rows"]:
        assert list(row["budgets"]) == ["tokens", "seconds"]
        for network in row["budgets"].values():
            cell = network["tasks"]["rte"]
            assert [line["seed"] for line in cell["runs"]] == [0, 1]
            assert cell["mean"] == pytest.approx(network["glue"])
            assert network["metrics"]["loss"] > 0
            assert ("order" in network["metrics"]) == (row["name"] in ("nsp", "sop"))
    none = result["rows"][0]["budgets"]
    assert none["tokens"]["tasks"]["rte"]["runs"] == none["seconds"]["tasks"]["rte"]["runs"]
    assert none["tokens"]["tokens"] == 0
    assert [row["budgets"]["tokens"]["tasks"]["rte"]["difference"]["mean"] for row in result["rows"]][2] == 0


def test_budgets_are_moments_of_one_run(folder: Path) -> None:
    """Equal tokens are two steps; a millionth of a second is over when the clock is first read."""
    rows = {row["name"]: row["budgets"] for row in read(folder)["rows"]}
    for name in ("lm", "mlm", "nsp", "sop"):
        budgets = rows[name]
        assert budgets["tokens"]["step"] == 2
        assert budgets["tokens"]["tokens"] == pytest.approx(200, rel=0.35)  # whole batches
        assert budgets["seconds"]["step"] > 10
        assert budgets["seconds"]["seconds"] > 0
    weights = [weights_of(load_checkpoint(folder / "networks" / f"mlm-{budget}").network) for budget in rows["mlm"]]
    assert any(not torch.equal(first, second) for first, second in zip(*(group.values() for group in weights)))


def test_a_stopped_run_keeps_the_same_network(folder: Path, data: Path, tmp_path: Path) -> None:
    """Equal tokens is the network that a run without interruption keeps."""
    list(fill_table(table_of(data, rows=["mlm"], tasks=["rte"], seeds=1), tmp_path))
    networks = [load_checkpoint(root / "networks" / "mlm-tokens") for root in (folder, tmp_path)]
    for first, second in zip(*(weights_of(checkpoint.network).values() for checkpoint in networks)):
        assert torch.equal(first, second)


def test_nothing_is_trained_twice(folder: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = read_rows(folder / CELLS_FILE)
    assert len(lines) == len({line["cell"] for line in lines}) == 9 + 9 * 2
    monkeypatch.setattr(pretrain_module, "fit", None)
    assert not list(fill_table(table_of(data), folder))
    with pytest.raises(ConfigError, match="of other data or settings"):
        list(fill_table(table_of(data, sets=[*TINY, "pretraining=['train.rate=0.1']"]), folder))


def test_sequences_stand_for_the_texts(folder: Path, data: Path, tmp_path: Path) -> None:
    """From packed sequences of sentences come the same ones; only names need the texts."""
    pack_folder(folder / "data" / "sentences", tmp_path / "packed")
    table = table_of(data, data=str(tmp_path / "packed"), rows=["mlm", "ernie"], glue="", tasks=["rte"])
    list(fill_table(table, tmp_path / "out"))
    made, there = (load_sequence_folder(root / "data" / "full-sentences") for root in (tmp_path / "out", folder))
    assert all((first == second).all() for first, second in zip(made.splits["train"], there.splits["train"]))
    assert {row: cell.fingerprint for row, cell in list_networks(table, tmp_path / "out").items()} == {
        "mlm": load_lines(folder)["mlm-tokens"]["fingerprint"]
    }
    done = run(
        "table", "objectives", "--data", tmp_path / "packed", "--rows", "mlm,ernie", "--tasks", "rte",
        "--device", "cpu", "--out", tmp_path / "out", *sets(*TINY),
    )  # fmt: skip
    assert done.code == 0, done.err
    result = read(tmp_path / "out")
    assert result["rows"][1]["budgets"]["tokens"]["reason"] == NAMES_NEED_TEXTS
    assert "add --glue DIR" in result["tasks"]["rte"]["reason"]
    headers, lines = format_budget(result, "tokens")
    assert len(headers) == len(lines[0]) == len(lines[1])
    assert any(NAMES_NEED_TEXTS in line for line in format_reasons(result))


def test_a_lost_network_is_trained_again_if_a_task_needs_it(folder: Path, data: Path, tmp_path: Path) -> None:
    """Lines of results travel; networks need not."""
    copytree(folder / "data", tmp_path / "data")
    lines = (folder / CELLS_FILE).read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if "mlm-seconds-rte-1" not in line]
    (tmp_path / CELLS_FILE).write_text("\n".join(kept), encoding="utf-8")
    list(fill_table(table_of(data), tmp_path))
    assert sorted(path.name for path in (tmp_path / "networks").iterdir()) == ["mlm-seconds"]
    assert load_lines(tmp_path).keys() == load_lines(folder).keys()


def test_a_training_that_diverges_is_a_reason(data: Path, tmp_path: Path) -> None:
    table = table_of(data, rows=["mlm"], sets=[*TINY, "pretraining=['train.rate=1e30', 'train.clip.limit=1e30']"])
    messages = [step.message for step in fill_table(table, tmp_path) if step.message]
    assert any("diverged" in message for message in messages)
    assert not load_lines(tmp_path)


def test_the_clock_leaves_out_what_a_start_costs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten slow steps count as much as those after them; a stopped run goes on from its seconds."""
    times = iter([100.0, 104.0, 300.0, 301.0])
    monkeypatch.setattr(TrainingClock, "now", lambda self: next(times))
    clock = TrainingClock(tmp_path / "clock.json", "cpu")
    clock.start(0)
    assert clock.read(10) == 0
    clock.save(12)  # 4 seconds for two steps, so 24 for twelve
    again = TrainingClock(tmp_path / "clock.json", "cpu")
    again.start(12)
    assert again.read(22) == 24
    assert again.read(32) == 24 + 2


def test_every_row_builds_and_takes_a_step(data: Path, tmp_path: Path) -> None:
    """All rows of the table, with the texts that names need."""
    table = table_of(data, rows=[*load_rows()], tasks=["sst2"], budgets=["tokens"], sets=[*TINY, "tokens=100"])
    messages = [step.message for step in fill_table(table, tmp_path) if step.message]
    assert len(messages) == len(load_rows())
    assert {line["row"] for line in load_lines(tmp_path).values()} == {*load_rows()}
    assert run_module.find_checkpoint(tmp_path / "networks" / "ernie-tokens")


def test_larger_batches_read_as_many_tokens_in_fewer_steps() -> None:
    """RoBERTa's table 3: steps and warm-up shrink as batches grow, which are read in parts."""
    scale, rows = load_scale("small"), load_rows()
    recipes = {
        name: build_pretraining_recipe(rows[name], scale, Path("sequences"), 60.0)
        for name in ("mlm", "batch-8", "batch-32", "lamb-batch-32")
    }
    plain, *others = (recipe["train"] for recipe in recipes.values())
    for name, train in zip(recipes, (plain, *others)):
        row = rows[name]
        assert train["batch"] == row.batch * plain["batch"]
        assert train.get("accumulate", 1) == row.batch
        assert train["steps"] * row.batch == pytest.approx(plain["steps"], rel=0.05)
        warmup = train["steps"] * train["schedule"]["warmup"]
        assert warmup * row.batch == pytest.approx(scale.warmup, rel=0.05)
        assert train["rate"] == pytest.approx(plain["rate"] * row.batch**0.5, rel=1e-3)
    assert [train["optimizer"]["kind"] for train in (plain, *others)] == ["adamw", "adamw", "adamw", "lamb"]
    work = Pretraining(rows["batch-32"], recipes["batch-32"], Path(), Path(), scale, "cpu")
    assert work.token_steps * 32 == pytest.approx(scale.token_steps, rel=0.05)
    assert not work.has_reached("tokens", work.token_steps - 1, 1e9)
    assert work.has_reached("tokens", work.token_steps, 0.0)
    assert work.is_checked(work.token_steps)


def test_rows_of_a_group_are_chosen_together() -> None:
    batches = {name for name, row in load_rows().items() if row.group == "batches"}
    assert len(batches) == 5
    assert {*select_rows(["mlm", "batches"])} == {"mlm", *batches}
    groups = {row.group for row in load_rows().values()}
    assert groups == {"objectives", "batches", "replaced"}
    assert {*select_rows([])} == {name for name, row in load_rows().items() if row.group == "objectives"}


def test_batches_are_compared_by_perplexity() -> None:
    budgets = {"tokens": {"metrics": {"loss": 2.0}, "step": 1000}}
    mlm = {"name": "mlm", "title": "masked tokens", "loss": "masked tokens", "budgets": budgets}
    large = {"name": "batch-8", "title": "large", "group": "batches", "batch": 8, "rate": 2.83, "budgets": budgets}
    headers, lines = format_batches({"rows": [mlm, large]}, "tokens")
    assert lines == [["masked tokens", "1", "1,000", "1", "7.4"], ["large", "8", "1,000", "2.83", "7.4"]]
    assert len(headers) == 5
    assert format_batches({"rows": [mlm]}, "tokens")[1] == []


def test_mistakes_are_named(data: Path) -> None:
    with pytest.raises(ConfigError, match=r"no row 'mlmm'.*mlm"):
        _ = table_of(data, rows=["mlmm"]).selected_rows
    with pytest.raises(ConfigError, match=r"no task 'sst'.*sst2"):
        table_of(data, tasks=["sst"])
    with pytest.raises(ConfigError, match="no budget 'hours'; budgets: tokens, seconds"):
        table_of(data, budgets=["hours"])
    with pytest.raises(ConfigError, match="no scale 'large'"):
        load_scale("large")
    with pytest.raises(ConfigError, match="no task 'qqp'"):
        load_scale("full", ["tasks.qqp.seeds=1"])
    with pytest.raises(ConfigError, match="seeds ≥ 1"):
        load_scale("full", ["tasks.rte.seeds=0"])
