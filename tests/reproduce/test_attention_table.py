"""``mnemic table attention``: its rows, what each cell learns from, resuming, and shared tables."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
import text_files
from app_runs import run, sets

from mnemic.checkpoint.folder import load_checkpoint
from mnemic.encode.attention import ATTENTIONS
from mnemic.encode.stacks import DECODERS, STACKS
from mnemic.recipe import ConfigError, kind_name, load_recipe, recipe_names
from mnemic.reproduce.attention import rows as rows_module
from mnemic.reproduce.attention import table as table_module
from mnemic.reproduce.attention.columns import COLUMNS, COST, SourceFolders, build_cell_recipe, find_reason
from mnemic.reproduce.attention.format import format_quality, format_reasons
from mnemic.reproduce.attention.report import save_table
from mnemic.reproduce.attention.rows import EXCEPTIONS, AttentionRow, load_rows
from mnemic.reproduce.attention.scale import load_scale
from mnemic.reproduce.attention.table import AttentionTable, claim, fill_table

ROWS = ["full", "full-no-positions"]
TINY = [
    "width=16",
    "depth=1",
    "heads=2",
    "dropout=0.1",
    "sources.enwiki={train=20, test=4, vocab=200}",
    "sources.imdb={train=40, test=20}",
    "columns.perplexity.data={length=16, context=4}",
    "columns.perplexity.train={steps=3, batch=4, validate=0}",
    "columns.masked-words.data.length=16",
    "columns.masked-words.train={steps=3, batch=4, validate=0, compile=false}",
    *(f"columns.{name}.train={{steps=2, batch=8, log=1}}" for name in ("imdb", "sst5")),
    *(f"columns.{name}.data.length=16" for name in ("imdb", "sst5")),
    "columns.imdb.data.overlap=4",
    *(f"columns.copies-{length}.train={{steps=2, batch=2, validate=0}}" for length in (256, 1024)),
    "columns.copies-256.data.length=8",
    "columns.copies-1024.data.length=12",
    "columns.imdb.seeds=2",
    "columns.sst5.seeds=1",
    "cost={width=8, depth=1, lengths=[8, 16], repeats=2, depths=[1, 2], depth_length=8}",
]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write long documents, reviews, and lines that begin with their label."""
    root = tmp_path_factory.mktemp("attention")
    text_files.language_modeling(root / "enwiki")
    text_files.classes(root / "imdb")
    write_sentences(root / "sentences", 60)
    return root


def write_sentences(folder: Path, count: int) -> None:
    """Write lines that begin with their label."""
    for name, size in (("train", count), ("dev", 20), ("test", 20)):
        rng = Random(name)
        lines = [f"{rng.randrange(5)} {' '.join(text_files.filler(rng, 6))}" for _ in range(size)]
        text_files.write(folder / f"stsa.fine.{name}", lines)


def table_of(data: Path, **options: Any) -> AttentionTable:
    folders = {"data": str(data / "enwiki"), "classes": str(data / "imdb"), "sentences": str(data / "sentences")}
    return AttentionTable(**{**folders, "rows": ROWS, "sets": TINY, **options})


def command(data: Path, out: Path, *more: object) -> list[object]:
    folders = ["--data", data / "enwiki", "--classes", data / "imdb", "--sentences", data / "sentences"]
    rows = ["--rows", ",".join(ROWS), "--device", "cpu", "--out", out]
    return ["table", "attention", *folders, *rows, *sets(*TINY), *more]


def read(folder: Path) -> Any:
    return json.loads((folder / "table.json").read_text(encoding="utf-8"))


def values_of(result: Any) -> dict[str, Any]:
    return {
        f"{row['name']} {name}": [run["metrics"] for run in cell.get("runs", [])] or cell["reason"]
        for row in result["rows"]
        for name, cell in row["cells"].items()
    }


@pytest.fixture(scope="module")
def folder(data: Path) -> Path:
    """Fill a table that was stopped within its second cell, and again within a cost."""
    folder = data / "table"
    for last in ("full-no-positions-perplexity-0", "cost-cpu, 16 tokens"):
        steps = fill_table(table_of(data), folder)
        next(step for step in steps if step.cell == last)
        steps.close()  # type: ignore[attr-defined]
    done = run(*command(data, folder))
    assert done.code == 0, done.err
    assert "cost by tokens, cpu" in done.out
    return folder


def test_every_kind_is_a_row_or_an_exception() -> None:
    rows = load_rows().values()
    attentions = {kind_name(row.attention) for row in rows}
    assert not {*ATTENTIONS} - attentions - {*EXCEPTIONS}
    stacks = {kind_name(row.stack) for row in rows} | {"transformer"}
    recipes = [name for row in rows for name in row.recipes.values() if name in recipe_names()]
    encoders = [load_recipe(name)["model"]["encode"] for name in recipes]
    stacks |= {encoder["stack"]["kind"] for encoder in encoders if "stack" in encoder}
    assert not {*STACKS, *DECODERS} - stacks - {*EXCEPTIONS}


def test_every_row_has_a_recipe_or_a_reason_in_each_column() -> None:
    """Rows whose kinds are not there are an error that names them, and build nothing."""
    scale, folders = load_scale("small"), SourceFolders(Path("data"))
    for name, row in load_rows().items():
        if missing := row.list_missing_parts():
            with pytest.raises(ConfigError, match=f"{name} needs .*{missing[0]}"):
                _ = AttentionTable(rows=[name]).selected_rows
            continue
        assert row.title
        assert row.cannot
        for column in (column for column in COLUMNS if not find_reason(row, column)):
            recipe = build_cell_recipe(row, column, scale, folders)
            if not row.has_attention:
                assert recipe["model"] == load_recipe(row.recipes[column])["model"]
                continue
            assert recipe["model"]["width"] == scale.width
            assert recipe["model"]["encode"]["stack"]["depth"] == scale.depth


def test_a_baseline_is_trained_in_its_own_way_on_the_same_texts(data: Path, tmp_path: Path) -> None:
    write_sentences(tmp_path / "sentences", 150)  # more than one of its batches
    table = table_of(data, rows=["fasttext"], columns=["perplexity", "sst5"], sentences=str(tmp_path / "sentences"))
    rows, scale, folders = load_rows(), load_scale("small"), SourceFolders(Path("data"))
    full, bags = (build_cell_recipe(rows[name], "sst5", scale, folders) for name in ("full", "fasttext"))
    assert bags["data"] == full["data"] | {"tokenizer": {"kind": "words"}}
    assert (bags["train"]["rate"], full["train"]["rate"]) == (0.005, 0.001)
    assert not [step.message for step in fill_table(table, tmp_path) if step.message]
    (row,) = save_table(table, tmp_path)["rows"]
    assert row["attention"] == {}
    assert row["can"] == {"causal": False}
    assert row["cells"]["perplexity"] == {"reason": "classes alone"}
    assert 0 <= row["cells"]["sst5"]["mean"] <= 100


@pytest.mark.parametrize(
    ("row", "column", "key", "value"),
    [
        ("star", "imdb", "respond.pool", "max"),
        ("star", "sst5", "respond.pool", "max"),
        ("binary-tree", "imdb", "encode.stack.output", "root"),
        ("binary-tree", "sst5", "encode.stack.output", "root"),
        ("transformer-xl-cache", "perplexity", "encode.memory_length", 512),
    ],
)
def test_rows_read_their_texts_as_their_papers_do(row: str, column: str, key: str, value: object) -> None:
    """A class comes from relay and maximum, or from the root; a memory is as long as a segment."""
    part: Any = build_cell_recipe(load_rows()[row], column, load_scale("small"), SourceFolders(Path("data")))["model"]
    for name in key.split("."):
        part = part[name]
    assert part == value


def test_all_cells_are_measured_or_have_a_reason(folder: Path, data: Path) -> None:
    result = read(folder)
    assert set(result) == {
        "table", "command", "scale", "settings", "overrides", "columns", "rows", "unfinished", "data", "hardware",
        "versions", "seconds",
    }  # fmt: skip
    assert [row["name"] for row in result["rows"]] == ROWS
    for row in result["rows"]:
        for name, cell in row["cells"].items():
            assert ("mean" in cell) != ("reason" in cell)
            assert ("mean" in cell) == (not table_of(data).find_reason_of_column(name))
    full, other = result["rows"]
    assert len(full["cells"]["imdb"]["runs"]) == 2
    assert full["cells"]["imdb"]["difference"] == {"mean": 0, "std": 0}
    differences = [
        run["value"] - peer["value"] for run, peer in zip(*(row["cells"]["imdb"]["runs"] for row in (other, full)))
    ]
    assert other["cells"]["imdb"]["difference"]["mean"] == pytest.approx(sum(differences) / 2)
    assert [cell["tokens"] for cell in full["cost"]["cpu"]["lengths"]] == [8, 16]
    assert all(
        cell["seconds"] > 0 < cell["saved_mib"] and cell["ratio"] == 1 for cell in full["cost"]["cpu"]["lengths"]
    )
    assert other["cost"]["cpu"] == {"reason": "as full"}
    assert full["can"]["causal"]
    headers, lines = format_quality(result)
    assert len(headers) == len(lines[0]) == 1 + sum("reason" not in column for column in result["columns"].values())


def test_the_metric_is_that_of_evaluate(folder: Path) -> None:
    cells = read(folder)["rows"][0]["cells"]
    for name, metric in (("perplexity", "perplexity"), ("masked-words", "loss"), ("sst5", "accuracy")):
        figures = run("evaluate", folder / "runs" / f"full-{name}-0", "--device", "cpu", "--json").json["figures"]
        assert cells[name]["mean"] == pytest.approx(figures[metric])


def test_rows_differ_in_nothing_else(folder: Path) -> None:
    """Two rows of a column learn from the same texts in the same way, and so do seeds."""
    full, other = (load_checkpoint(folder / "runs" / f"{name}-sst5-0") for name in ROWS)
    assert [full.recipe[key] for key in ("data", "train", "objective")] == [
        other.recipe[key] for key in ("data", "train", "objective")
    ]
    assert full.recipe["model"]["encode"]["embeddings"]["positions"] == {"kind": "learned", "length": 16}
    assert other.recipe["model"]["encode"]["embeddings"]["positions"] == {"kind": "none"}
    assert full.recipe["model"]["encode"]["stack"] == other.recipe["model"]["encode"]["stack"]


def test_a_stopped_table_equals_one_in_one_go(folder: Path, data: Path) -> None:
    table = table_of(data)
    for _ in fill_table(table, data / "straight"):
        pass
    assert values_of(save_table(table, data / "straight")) == values_of(read(folder))


def test_a_finished_table_is_not_measured_again(folder: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise AssertionError("a finished cell was measured again")

    monkeypatch.setattr(table_module, "fit", fail)
    monkeypatch.setattr(table_module, "measure_length", fail)
    before = read(folder)
    after = run(*command(data, folder, "--json"))
    assert after.json == before == read(folder)


def test_a_table_can_be_filled_row_by_row(folder: Path, data: Path) -> None:
    """A row that comes later is measured beside the baseline, whose own cost stays."""
    for rows in (ROWS[:1], ROWS):
        table = table_of(data, rows=rows, columns=["sst5", COST])
        for _ in fill_table(table, data / "by-row"):
            pass
        result = save_table(table, data / "by-row")
    assert [list(row["cells"]) for row in result["rows"]] == [["sst5"], ["sst5"]]
    assert values_of(result) == {key: value for key, value in values_of(read(folder)).items() if key.endswith("sst5")}


@pytest.mark.parametrize("setting", ["columns.sst5.train.rate=0.5", "sources.imdb.train=30", "cost.repeats=3"])
def test_other_settings_need_another_folder(folder: Path, data: Path, setting: str) -> None:
    done = run(*command(data, folder, "--set", setting))
    assert done.code == 2
    assert "give another --out" in done.err


def test_other_data_needs_another_folder(folder: Path, data: Path) -> None:
    path = data / "sentences" / "stsa.fine.test"
    text = path.read_text(encoding="utf-8")
    path.write_text(text + "1 one more\n", encoding="utf-8")
    try:
        done = run(*command(data, folder))
    finally:
        path.write_text(text, encoding="utf-8")
    assert done.code == 2
    assert "was made of other files" in done.err


def test_a_column_without_its_texts_has_the_reason(data: Path, tmp_path: Path) -> None:
    options = ["--sentences", data / "sentences", "--columns", "imdb,sst5", "--rows", "full", "--device", "cpu"]
    done = run("table", "attention", *options, *sets(*TINY), "--out", tmp_path / "table", "--json")
    cells = done.json["rows"][0]["cells"]
    assert cells["imdb"] == {"reason": "not measured: no --classes"}
    assert "mean" in cells["sst5"]
    assert not (tmp_path / "table/data/imdb").exists()
    assert "IMDB, accuracy: not measured: no --classes" in format_reasons(done.json)


@pytest.fixture
def masked_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add a row of a kind that no decoder can use."""
    row = AttentionRow(name="masked", title="masked", attention={"kind": "masked"}, reasons={"imdb": "just so"})
    rows = {**load_rows(), "masked": row}
    monkeypatch.setattr(rows_module, "load_rows", lambda: rows)


@pytest.mark.usefixtures("masked_row")
def test_a_row_that_is_not_causal_is_not_trained(data: Path, tmp_path: Path) -> None:
    table = table_of(data, rows=["masked"], columns=["perplexity", "imdb", "sst5"])
    for _ in fill_table(table, tmp_path):
        pass
    row = save_table(table, tmp_path)["rows"][0]
    assert (row["cells"]["perplexity"], row["cells"]["imdb"]) == ({"reason": "not causal"}, {"reason": "just so"})
    assert not row["can"]["causal"]
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["masked-sst5-0"]


def test_a_cell_of_another_process_is_left_to_it(data: Path, tmp_path: Path) -> None:
    table = table_of(data, rows=["full"], columns=["imdb", "sst5"])
    with claim(tmp_path, "full-imdb-1") as is_claimed:
        assert is_claimed
        for _ in fill_table(table, tmp_path):
            pass
        result = save_table(table, tmp_path)
    assert result["rows"][0]["cells"]["imdb"] == {"reason": "not finished: repeat the command"}
    assert result["unfinished"] == 1
    assert "mean" in result["rows"][0]["cells"]["sst5"]
    assert [step.cell for step in fill_table(table, tmp_path) if step.fraction == 1] == ["full-imdb-1"]
    assert save_table(table, tmp_path)["unfinished"] == 0
    assert not list(tmp_path.glob(".*.lock"))


def test_a_training_that_diverges_is_a_reason(data: Path, tmp_path: Path) -> None:
    diverging = [*TINY, "columns.sst5.train.rate=1e30", "columns.sst5.train.clip={kind='none'}"]
    table = table_of(data, rows=["full"], columns=["sst5", "imdb"], sets=diverging)
    messages = [step.message for step in fill_table(table, tmp_path) if step.message]
    assert len(messages) == 1
    cells = save_table(table, tmp_path)["rows"][0]["cells"]
    assert cells["sst5"]["reason"].startswith("failed: the loss is nan")
    assert "mean" in cells["imdb"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rows", "ful"], "no row 'ful' (did you mean 'full'?); rows: full, "),
        (["--columns", "imbd"], "no column 'imbd' (did you mean 'imdb'?)"),
        (["--set", "widht=3"], "does not take 'widht'"),
        (["--set", "columns.imbd.seeds=3"], "columns has no 'imbd'"),
        (["--set", "columns.imdb.seeds=0"], "a column has seeds ≥ 1"),
        (["--set", "cost.lengths=[8, 4]"], "cost.lengths rise"),
        (["--set", "columns.sst5.train.rte=1"], "row full, column sst5: train does not take 'rte'"),
        (["--classes", "nowhere"], "no folder 'nowhere' with reviews with their class: see --classes"),
    ],
)
def test_mistakes_are_found_before_the_first_step(data: Path, tmp_path: Path, options: list[str], message: str) -> None:
    done = run(*command(data, tmp_path / "table"), *options)
    assert done.code == 2
    assert message in done.err
    assert not (tmp_path / "table" / "runs").exists()


def test_the_plot_is_written(folder: Path, data: Path, tmp_path: Path) -> None:
    assert run(*command(data, folder, "--plot", tmp_path / "cost.svg")).code == 0
    picture = (tmp_path / "cost.svg").read_text(encoding="utf-8")
    assert picture.count("<svg") == 1
    done = run(*command(data, tmp_path / "t", "--columns", "imdb", "--plot", tmp_path / "x.gif"))
    assert done.code == 2
