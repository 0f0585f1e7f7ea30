"""The fine-tuning benchmark: packing, runs and their metrics, rows of the page."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from text_runs import TINY, files, tiny

from mnemic.checkpoint.folder import load_checkpoint
from mnemic.encode import Pretrained, load_encoder, save_encoder
from mnemic.train.run import fit

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import compress_weights
import fine_tuning
import fine_tuning_tasks
import results_page

SETS = tuple(text for text in TINY if not text.startswith(("model", "data.tokenizer")))
TOY = fine_tuning_tasks.FineTuningTask(
    "Toy, accuracy", "bert-pairs", "toy", "train", "", "test", (*SETS, "train.epochs=1"),
    candidates=(("train.epochs=2",),),
)  # fmt: skip


class InTurn(ThreadPoolExecutor):
    """A pool in this process, which has the toy task."""

    def __init__(self, count: int, context: object) -> None:
        super().__init__(count)


def pack_toy_data(folder: Path) -> Path:
    """Pack a small BERT and a few pairs."""
    data = files("pairs", folder / "data/toy").parent
    recipe = tiny("pairs", data / "toy", "model.encode.stack.norm=post", "train.epochs=0")
    list(fit(recipe, folder / "first", device="cpu"))
    first = load_checkpoint(folder / "first")
    save_encoder(folder / "bert", Pretrained(first.network.encode, first.tokenizer))
    arguments = ["pack", str(data), str(folder / "carry"), "--weights", str(folder / "bert")]
    assert fine_tuning.main(arguments) == 0
    return folder / "carry"


def test_a_run_from_what_was_packed_leaves_its_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fine_tuning, "TASKS", {"toy": TOY, "next": TOY._replace(first_task="toy")})
    carry, out, runs = pack_toy_data(tmp_path), tmp_path / "out", tmp_path / "runs"
    restored = compress_weights.unpack_weights(carry / "start", runs / "start")
    before, after = (load_file(path / "model.safetensors") for path in (tmp_path / "bert", restored))
    assert before.keys() == after.keys()
    assert all(torch.equal(after[name], weight.half()) for name, weight in before.items())
    assert load_encoder(restored).tokenizer == load_encoder(tmp_path / "bert").tokenizer
    for number in (-1, 0):
        fine_tuning.run_job(fine_tuning.Job("toy", 0, number), carry, out, runs, "cpu")
    results = json.loads((out / "toy-0.json").read_text("utf-8"))
    assert results["test"].keys() == results["validation"].keys() >= {"accuracy", "f1", "matthews"}
    assert (results["texts"], results["epoch"], results["started"]) == (60, 1, True)
    assert results["tokens"][0] == results["tokens"][1] > 300
    candidate = json.loads((out / "toy-0-try0.json").read_text("utf-8"))
    assert "test" not in candidate  # nothing is chosen by what is tested
    assert candidate["steps"] == 2 * results["steps"]
    assert not [path for path in runs.iterdir() if path.name != "start"]
    monkeypatch.setattr(fine_tuning, "ProcessPoolExecutor", InTurn)
    arguments = ["run", str(carry), str(out), "--seeds", "1", "--runs", str(runs), "--device", "cpu"]
    assert fine_tuning.main([*arguments, "--at-once", "1"]) == 0
    after = json.loads((out / "next-0.json").read_text("utf-8"))
    assert after["validation"] != results["validation"]  # it began with what was already trained
    assert [path.name for path in runs.iterdir()] == ["start"]
    capsys.readouterr()
    assert fine_tuning.main(arguments) == 0
    assert "0 runs in" in capsys.readouterr().out  # both are there already
    arguments[2] = str(tmp_path / "again")
    assert fine_tuning.main([*arguments, "--tasks", "toy", "--tuned", str(out)]) == 0
    tuned = json.loads((tmp_path / "again" / "toy-0.json").read_text("utf-8"))
    assert tuned["sets"] == candidate["sets"]  # what tune found best is what is tested
    assert "test" in tuned


def test_a_task_is_a_row_with_the_mean_of_its_seeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "results" / "fine-tuning"
    folder.mkdir(parents=True)
    for seed, figure in enumerate((60.0, 62.0, 67.0)):
        run = {
            "task": "rte", "title": "RTE dev, accuracy", "seed": seed, "recipe": "bert-pairs",
            "sets": ["train.epochs=6"], "started": True, "before": "", "seconds": 20,
            "hardware": "a GPU",
            "validation": {"accuracy": 65.0, "f1": 1.0}, "test": {"accuracy": figure, "f1": 2.0},
        }  # fmt: skip
        (folder / f"rte-{seed}.json").write_text(json.dumps(run), encoding="utf-8")
    baseline = json.dumps({"rows": [{"task": "rte", "mean": 53.19}]})
    (tmp_path / "results" / "fasttext-classes.json").write_text(baseline, encoding="utf-8")
    monkeypatch.setattr(results_page, "DOCS", tmp_path)
    page = "words\n<!-- tuned:\nrte = 66.4\n-->\n\nold\n\n<!-- end -->\n"
    *_, row, _, end, _ = results_page.fill_tables(page).split("\n")
    assert row == (
        "| RTE dev, accuracy | 66.4 | **63.0** ± 3.6 | 53.2 | 0, 1, 2 | 65.0 | MiniLM | "
        "`bert-pairs train.epochs=6` | 20 | a GPU |"
    )
    assert end == "<!-- end -->"
    assert results_page.fill_tables(results_page.fill_tables(page)) == results_page.fill_tables(page)
    with pytest.raises(SystemExit, match="fine-tuning has no mrpc-SEED"):
        results_page.fill_tables("<!-- tuned: mrpc -->\n<!-- end -->")
