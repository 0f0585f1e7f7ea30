"""``mnemic table seq2seq``: rows start from their noises, resume, and are scored afterwards."""

import json
from pathlib import Path

import pytest
import torch
from app_runs import run, sets
from pretraining_runs import make_texts
from seq2seq_files import write_parallel, write_questions

from mnemic.checkpoint.folder import load_checkpoint
from mnemic.data import DATASETS
from mnemic.evaluate.text_scores import TEXT_SCORES
from mnemic.recipe import ConfigError, build, load_recipe
from mnemic.reproduce.seq2seq.bodies import write_body
from mnemic.reproduce.seq2seq.report import save_table
from mnemic.reproduce.seq2seq.rows import ROWS
from mnemic.reproduce.seq2seq.table import Seq2SeqTable, build_cell_recipe, fill_table, list_cells, load_cells

TINY = [
    "model.width=16", "model.encode.stack.depth=1", "model.respond.decoder.depth=1", "train.steps=2", "train.batch=8",
    "train.matmul=float32", "train.validate=0", "train.keep=last", "squad.data.length=64", "squad.data.overlap=4",
    "questions.data.length=56", "translation.data.length=36",
]  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write sequences without sentinels, SQuAD and Multi30k."""
    root = tmp_path_factory.mktemp("seq2seq")
    tokenizer = 'data.tokenizer={kind="byte-bpe", vocab=300}'
    options = [f"data.folder={make_texts()}", f"data.cache={root / 'sequences'}", "data.length=32", tokenizer]
    build(DATASETS, load_recipe("bart-pretrain", options)["data"]).load()
    write_questions(root / "squad", 12, filler=0)
    write_parallel(root / "multi30k", 20)
    return root


def make_table(root: Path, **options: object) -> Seq2SeqTable:
    folders = {"data": str(root / "sequences"), "squad": str(root / "squad"), "multi30k": str(root / "multi30k")}
    return Seq2SeqTable(**{**folders, "sets": TINY, "rows": ["none", "infilling", "sentinels"], **options})


@pytest.fixture(scope="module")
def table(data: Path) -> Path:
    """Fill a table that was stopped within its second network."""
    steps = fill_table(make_table(data), data / "table")
    for _ in range(3):
        next(steps)
    steps.close()
    folders = ["--data", data / "sequences", "--squad", data / "squad", "--multi30k", data / "multi30k"]
    options = ["--rows", "none,infilling,sentinels", "--out", data / "table", "--device", "cpu", *sets(*TINY)]
    done = run("table", "seq2seq", *folders, *options)
    assert done.code == 0, done.err
    assert "from scratch" in done.out
    return data / "table"


def test_every_row_has_every_task(table: Path) -> None:
    result = json.loads((table / "table.json").read_text(encoding="utf-8"))
    assert result["unfinished"] == 0
    rows = {row["row"]: row for row in result["rows"]}
    assert list(rows) == ["none", "infilling", "sentinels"]
    assert rows["none"]["pretraining"] is None
    assert set(rows["infilling"]["pretraining"]["metrics"]) == {"perplexity", "accuracy", "loss"}
    for name in ("none", "infilling"):
        columns = rows[name]["columns"]
        assert {"f1", "exact"} <= set(columns["squad"]["metrics"])
        assert {"bleu", "rouge-l", "perplexity"} <= set(columns["questions"]["metrics"])
        assert {"bleu", "chrf", "perplexity"} <= set(columns["translation"]["metrics"])
        assert columns["translation"]["runs"][0]["examples"] == 12
    failed = rows["sentinels"]["columns"]["squad"]["runs"][0]["failed"]
    assert "its pre-training failed: objective.noises has sentinels, but the tokenizer has none" in failed
    assert "predictions" not in json.dumps(result)


def test_a_finished_table_trains_nothing(data: Path, table: Path) -> None:
    assert list(fill_table(make_table(data), table)) == []
    lines = load_cells(table)
    assert len(lines["infilling-translation-0"]["predictions"]) == 12
    assert set(lines) == {cell.name for cell in list_cells(make_table(data))}


def test_scores_are_computed_where_their_libraries_are(
    data: Path, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table filled elsewhere is scored when it is saved; what is missing is said."""
    cells = (table / "cells.jsonl").read_text(encoding="utf-8")
    (tmp_path / "cells.jsonl").write_text(cells, encoding="utf-8")
    monkeypatch.delitem(TEXT_SCORES, "chrf")
    result = save_table(make_table(data), tmp_path)
    assert "no score 'chrf' in this version" in result["notes"]
    metrics = result["rows"][1]["columns"]["translation"]["metrics"]
    assert set(metrics) == {"bleu", "perplexity"}


def test_tasks_start_from_the_pretrained_network(data: Path, table: Path) -> None:
    """Decoder and all; from scratch the shape is the same, and the vocabulary."""
    cells = {cell.name: cell for cell in list_cells(make_table(data))}
    for column in ("questions", "squad"):
        started, scratch = (
            build_cell_recipe(make_table(data), cells[f"{row}-{column}-0"], table) for row in ("infilling", "none")
        )
        assert started["model"]["encode"] == scratch["model"]["encode"]
        assert started["data"]["tokenizer"]["kind"] == scratch["data"]["tokenizer"]["kind"] == "stored"
        assert "init_from" not in scratch["model"]
    run_folder = table / "runs" / "infilling-pretraining-0"
    pretrained, body = load_checkpoint(run_folder).network, load_checkpoint(write_body(run_folder)).network
    for name, weight in pretrained.encode.state_dict().items():
        assert torch.equal(body.encode.state_dict()[name], weight)
    for name, weight in pretrained.respond.decoder.state_dict().items():
        assert torch.equal(body.encode.decoder.state_dict()[name], weight)
    tokens = torch.arange(5, 15).unsqueeze(0)
    mask = torch.ones_like(tokens, dtype=torch.bool)
    states = pretrained.eval().encode(tokens, mask)
    again = torch.cat([tokens[:, -1:], tokens[:, :-1]], 1)  # what the body's decoder reads
    cache = pretrained.respond.start_decoding(states, mask)
    decoded = pretrained.respond.decoder(pretrained.respond.embeddings(again, mask), mask, cache).states
    torch.testing.assert_close(body.eval().encode(tokens, mask), decoded)


def test_wrong_options_are_refused(data: Path) -> None:
    for options, message in (
        ({"rows": ["shuffling"]}, "this table has no 'shuffling'"),
        ({"seeds": 0}, "--seeds is at least 1"),
        ({"data": str(data / "squad")}, "holds no sequences; make them with: mnemic data sequences"),
        ({"squad": "", "multi30k": ""}, "needs tasks: add --squad DIR"),
        ({"squad": "", "columns": ["squad"]}, "column 'squad' needs --squad DIR"),
    ):
        with pytest.raises(ConfigError, match=message):
            make_table(data, **options)
    with pytest.raises(ConfigError, match="did you mean 'train'"):
        list(fill_table(make_table(data, sets=["trian.rate=3"]), data / "other"))


def test_rows_have_a_title_and_one_is_from_scratch() -> None:
    assert len({row.title for row in ROWS.values()}) == len(ROWS)
    assert [name for name, row in ROWS.items() if row.noises is None] == ["none", "own-vocabulary"]
