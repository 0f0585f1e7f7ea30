"""Pre-training: learning, resuming, gradient accumulation, export and fine-tuning.

Each generated document is about one city. An animal determines its food, so masked words follow
from their neighbors; the city says whether two texts belong together.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import text_files
import torch
from app_runs import run as command
from pretraining_runs import make_texts
from shared_folders import make_temporary_folder
from test_readme import ROOT, blocks
from torch import Tensor

import mnemic
from mnemic.checkpoint.folder import weights_of
from mnemic.data.corpora import CorpusFiles
from mnemic.encode import transformer
from mnemic.evaluate.error_rate import evaluate_network
from mnemic.models import WindowBatch
from mnemic.objectives.pretraining.masked import PretrainingLoss
from mnemic.objectives.unigram import count_targets, unigram_loss
from mnemic.predict.model import load
from mnemic.recipe import ConfigError, Recipe, load_recipe
from mnemic.train.run import fit

TINY = ["model.width=32", "model.encode.stack.depth=2", "model.encode.stack.attention.heads=4"]
TINY += ['data.tokenizer={kind="wordpiece", vocab=200}', "data.length=32", "data.validation=0.1"]
TINY += ["train.batch=16", "train.rate=0.004", "train.matmul=float32", "train.log=100"]
TINY += ["train.epochs=1000"]


def tiny(name: str, *sets: str) -> Recipe:
    return load_recipe(name, [*TINY, f"data.folder={make_texts()}", *sets])


def finish(recipe: Recipe, folder: Path) -> list[dict[str, Any]]:
    """Train to the end; return the rows of the log."""
    return [report.row for report in fit(recipe, folder, device="cpu") if report.row is not None]


@cache
def pretrained() -> Path:
    """Train a run with both objectives, once for all tests."""
    folder = make_temporary_folder() / "run"
    finish(tiny("bert-pretrain-pairs", "train.steps=60", "train.log=30"), folder)
    return folder


def unigram() -> float:
    """Compute the unigram loss on the held-out documents."""
    source = CorpusFiles(**{k: v for k, v in tiny("bert-pretrain")["data"].items() if k != "kind"})
    data, counts = source.load(), []
    for dataset in (data.train, data.validation):
        batch = dataset.batch(torch.arange(len(dataset)))
        counts.append(count_targets(batch.tokens[~batch.unmaskable], len(data.tokenizer)))
    return unigram_loss(*counts)


def test_masked_words_are_learnt_far_beyond_their_frequency(tmp_path: Path) -> None:
    rows = finish(tiny("bert-pretrain-words", "train.steps=140", "train.log=70"), tmp_path / "run")
    assert [row["step"] for row in rows] == [70, 140]
    losses = [row["figures"]["loss"] for row in rows]
    assert losses[1] < losses[0]
    assert losses[1] < 0.55 * unigram()
    assert rows[1]["figures"]["accuracy"] > 55
    log_lines = (tmp_path / "run" / "log.tsv").read_text(encoding="utf-8").splitlines()
    assert log_lines[0].endswith("\tfigures")
    assert f"loss {losses[1]:.6g}" in log_lines[2]


@pytest.mark.slow
def test_which_texts_follow_is_learnt(tmp_path: Path) -> None:
    """Chance is 50 %; every sixth negative is of the same city and looks positive."""
    sets = ["train.steps=1500", "train.rate=0.002"]
    rows = finish(tiny("bert-pretrain-pairs", *sets), tmp_path / "run")
    assert rows[-1]["figures"]["follows"] > 65


def test_the_same_words_are_hidden_at_every_look() -> None:
    checkpoint = load(pretrained())
    spec = tiny("bert-pretrain-pairs")["data"]
    data = CorpusFiles(**{k: v for k, v in spec.items() if k != "kind"}).load()
    first, again = (evaluate_network(checkpoint.network, data.validation) for _ in range(2))
    assert first == again
    assert first[0] == 100 - first[1]["accuracy"]
    assert checkpoint.progress.history[-1]["figures"] == pytest.approx(first[1])


@pytest.mark.parametrize("name", ["bert-pretrain", "bert-pretrain-pairs"])
def test_a_stopped_run_ends_with_the_same_bits(name: str, tmp_path: Path) -> None:
    """Stopped in the middle of an epoch; dynamic masks, and static ones with dropout."""
    sets = ["train.steps=12", "train.log=5", "train.save=4", f"data.kept={tmp_path / 'kept'}"]
    sets += ["model.encode.stack.dropout=0.1"] if "pairs" in name else []
    recipe = tiny(name, *sets)
    expected_rows = finish(recipe, tmp_path / "whole")
    steps = fit(recipe, tmp_path / "stopped", device="cpu")
    for _ in range(7):
        next(steps)
    steps.close()  # type: ignore[attr-defined]
    rows = finish(recipe, tmp_path / "stopped")
    assert [row["loss"] for row in rows] == [row["loss"] for row in expected_rows[-len(rows) :]]
    expected_weights, weights = (weights_of(load(tmp_path / name).network) for name in ("whole", "stopped"))
    assert all(torch.equal(expected_weights[key], weights[key]) for key in expected_weights)


def assert_weights_close(weights: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    for name in weights:
        torch.testing.assert_close(weights[name], expected[name], atol=2e-4, rtol=0)


def test_a_batch_in_parts_is_the_whole_batch(tmp_path: Path) -> None:
    """Both objectives; SGD, since Adam amplifies rounding of gradients near zero."""
    sets = ["train.steps=6", 'train.optimizer={kind="sgd"}', "train.rate=0.1", "objective.nsp=0.7"]
    rows, weights = [], []
    for num_microbatches in (1, 4):
        folder = tmp_path / str(num_microbatches)
        recipe = tiny("bert-pretrain-pairs", *sets, f"train.accumulate={num_microbatches}")
        rows.append(finish(recipe, folder)[-1])
        weights.append(weights_of(load(folder).network))
    assert rows[0]["loss"] == pytest.approx(rows[1]["loss"], rel=1e-5)
    assert rows[0]["norm"] == pytest.approx(rows[1]["norm"], rel=1e-4)
    assert_weights_close(*weights)
    with pytest.raises(ConfigError, match="16 has no 3 equal parts"):
        finish(tiny("bert-pretrain", "train.accumulate=3"), tmp_path / "odd")


@pytest.mark.slow
def test_two_processes_learn_what_one_does(tmp_path: Path) -> None:
    """With torchrun and gloo, each with two microbatches: the same loss and weights."""
    sets = ["train.steps=6", 'train.optimizer={kind="sgd"}', "train.rate=0.1", "train.log=3"]
    recipe = tiny("bert-pretrain-pairs", *sets)
    expected_rows = finish(recipe, tmp_path / "one")
    more_sets = [f"data.kept={tmp_path / 'kept'}", "train.accumulate=2"]
    options = [option for text in [*TINY, *sets, *more_sets] for option in ("--set", text)]
    start = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    arguments = ["-m", "mnemic", "train", "bert-pretrain-pairs", "--out", str(tmp_path / "two"), "--json"]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    process = run_python([*start, *arguments, "--device", "cpu", "--data", str(make_texts()), *options], env=env)
    assert process.returncode == 0, process.stderr[-2000:]
    assert json.loads(process.stdout)["steps"] == 6  # only one process prints
    assert process.stderr.count("step 3 of 6") == process.stderr.count("step 6 of 6") == 1
    distributed = load(tmp_path / "two")
    for row, expected_row in zip(distributed.progress.history, expected_rows, strict=True):
        assert row["loss"] == pytest.approx(expected_row["loss"], rel=1e-5)
    assert_weights_close(weights_of(distributed.network), weights_of(load(tmp_path / "one").network))


def run_python(arguments: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, timeout=150, **options
    )


def test_a_pretrained_model_is_read_by_transformers(tmp_path: Path) -> None:
    """AutoModelForMaskedLM and BertForPreTraining give the same logits as our network."""
    from transformers import AutoModelForMaskedLM, AutoTokenizer, BertForPreTraining

    result = command("export", pretrained(), tmp_path / "bert", "--json")
    assert (result.code, result.err) == (0, "")
    assert (result.json["pooler"], len(result.json["heads"])) == (True, 7)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "bert")
    pair = ("The ant in Rome eats [MASK].", "The [MASK] in Rome eats honey.")
    encoding = tokenizer(*pair, return_tensors="pt", return_token_type_ids=True)
    ids, segments = encoding["input_ids"], encoding["token_type_ids"]
    mask = torch.ones_like(ids, dtype=torch.bool)
    network = load(pretrained()).network
    with torch.no_grad():
        output = network(WindowBatch(ids, mask, segments, mask)).logits
        masked_lm_output = AutoModelForMaskedLM.from_pretrained(tmp_path / "bert").eval()(**encoding)
        pretraining_output = BertForPreTraining.from_pretrained(tmp_path / "bert").eval()(**encoding)
    torch.testing.assert_close(output.masked_logits, masked_lm_output.logits.flatten(0, 1), atol=1e-4, rtol=0)
    torch.testing.assert_close(output.nsp_logits, pretraining_output.seq_relationship_logits, atol=1e-4, rtol=0)


def test_a_pretrained_model_is_where_fine_tuning_starts(tmp_path: Path) -> None:
    """The run and its exported folder give the same weights and vocabulary."""
    files = text_files.classes(tmp_path / "files", 60)
    command("export", pretrained(), tmp_path / "bert")
    short = ["--set", "train.steps=1", "--set", "train.batch=8", "--set", "train.rate=1e-9"]
    for start in (pretrained(), tmp_path / "bert"):
        out = tmp_path / f"from-{start.name}"
        arguments = ("train", "bert-classes", "--data", files, "--start", start, "--out", out, "--json")
        result = command(*arguments, "--device", "cpu", "--set", "data.overlap=8", *short)
        assert result.code == 0, result.err
        tuned, pretrained_model = load(out), load(pretrained())
        assert tuned.tokenizer == pretrained_model.tokenizer
        for name, weight in pretrained_model.network.encode.named_parameters():
            torch.testing.assert_close(tuned.network.encode.get_parameter(name), weight)


def test_a_pretrained_model_embeds_and_says_what_it_cannot() -> None:
    model = mnemic.load(pretrained())
    assert model.embed(["The ant eats leaves."]).vectors.shape == (1, 32)
    with pytest.raises(ConfigError, match="this network cannot classify; it can embed"):
        model.classify(["The ant eats leaves."])


def test_the_command_line_makes_sequences_and_trains_on_them(tmp_path: Path) -> None:
    options = [option for text in TINY for option in ("--set", text)]
    sequences_folder = tmp_path / "kept"
    result = command("data", "sequences", "bert-pretrain", "--data", make_texts(), "--out", sequences_folder, *options)
    assert result.code == 0, result.err
    assert "sequences" in result.out
    assert "pieces" in result.out
    out = ("--out", tmp_path / "run", "--device", "cpu")
    training = command("train", "bert-pretrain", "--data", sequences_folder, *out, *options, "--set", "train.steps=2")
    assert training.code == 0, training.err
    assert "mnemic export" in training.out
    evaluation = command("evaluate", tmp_path / "run", "--split", "validation", "--json").json
    assert set(evaluation["figures"]) == {"accuracy", "loss"}
    wrong = command("data", "sequences", "memn2n", "--data", make_texts(), "--out", tmp_path / "no")
    assert (wrong.code, "does not train on a corpus" in wrong.err) == (2, True)


def test_a_step_of_a_gpu_is_one_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packed to a fixed size, the network compiles as one graph with the same loss."""
    recipe = tiny("bert-pretrain-pairs")
    data = CorpusFiles(**{k: v for k, v in recipe["data"].items() if k != "kind"}).load()
    network = load(pretrained()).network
    batch = data.train.batch(torch.arange(16), compact=False)
    batch = batch._replace(max_tokens=int(batch.mask.sum()) + 5)
    assert batch.max_tokens < batch.tokens.numel()
    objective = PretrainingLoss(nsp=1.0)
    expected = objective(network, batch._replace(max_tokens=0))
    monkeypatch.setattr(transformer, "has_varlen_kernel", lambda device, dropout: True)
    compiled = torch.compile(network, backend="eager", fullgraph=True, dynamic=False)
    for _ in range(2):
        loss = objective(compiled, batch)
        torch.testing.assert_close(loss.total, expected.total)
        assert loss.num_targets == expected.num_targets


def test_parts_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"model\.respond\.next_sentence=true"):
        finish(tiny("bert-pretrain", "objective.nsp=1.0"), tmp_path / "run")


def test_the_example_of_the_documentation_runs(tmp_path: Path) -> None:
    code = "\n".join(block.text for block in blocks(ROOT / "docs" / "howto" / "pretrain.md") if block.mark == "python")
    process = run_python(["-W", "error", "-c", code], cwd=tmp_path, encoding="utf-8")
    assert process.returncode == 0, process.stderr
    *_, last = process.stdout.splitlines()
    masked_loss, unigram_loss = (float(word) for word in last.split() if "." in word)
    assert masked_loss < unigram_loss
