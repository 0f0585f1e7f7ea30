"""Pre-training from files to a model: it learns, goes on, adds up, and is taken over.

Generated documents of which each keeps to one place: the kind of animal tells its food, so masked
words can be known from their neighbours, and the place tells whether two texts belong together.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
import text_files
import torch
from app_runs import run as command
from test_readme import ROOT, blocks
from torch import Tensor

import mnemic
from mnemic.checkpoint.folder import weights_of
from mnemic.data.corpora import CorpusFiles
from mnemic.encode import transformer
from mnemic.evaluate.error_rate import evaluate_network
from mnemic.models import WindowBatch
from mnemic.objectives.pretraining import PretrainingLoss
from mnemic.objectives.unigram import count_targets, unigram_loss
from mnemic.predict.model import load
from mnemic.recipe import ConfigError, Recipe, load_recipe
from mnemic.train.run import fit

TINY = ["model.width=32", "model.encode.stack.depth=2", "model.encode.stack.attention.heads=4"]
TINY += ['data.tokenizer={kind="wordpiece", vocab=200}', "data.length=32", "data.validation=0.1"]
TINY += ["train.batch=16", "train.rate=0.004", "train.matmul=float32", "train.log=100"]
TINY += ["train.epochs=1000"]


@cache
def texts() -> Path:
    return text_files.corpus(Path(mkdtemp(prefix="mnemic-test-")), 300)


def tiny(name: str, *sets: str) -> Recipe:
    return load_recipe(name, [*TINY, f"data.folder={texts()}", *sets])


def finish(recipe: Recipe, folder: Path) -> list[dict[str, Any]]:
    """Train to the end; the rows of the log."""
    return [report.row for report in fit(recipe, folder, device="cpu") if report.row is not None]


@cache
def pretrained() -> Path:
    """A run with both objectives."""
    folder = Path(mkdtemp(prefix="mnemic-test-")) / "run"
    finish(tiny("bert-pretrain-pairs", "train.steps=60", "train.log=30"), folder)
    return folder


def unigram() -> float:
    """What guessing by frequency would cost on the held-out documents."""
    data = CorpusFiles(**{k: v for k, v in tiny("bert-pretrain")["data"].items() if k != "kind"})
    made, counts = data.load(), []
    for part in (made.train, made.validation):
        batch = part.batch(torch.arange(len(part)))
        counts.append(count_targets(batch.tokens[~batch.unmaskable], len(made.tokenizer)))
    return unigram_loss(*counts)


def test_masked_words_are_learnt_far_beyond_their_frequency(tmp_path: Path) -> None:
    rows = finish(tiny("bert-pretrain-words", "train.steps=140", "train.log=70"), tmp_path / "run")
    assert [row["step"] for row in rows] == [70, 140]
    losses = [row["figures"]["loss"] for row in rows]
    assert losses[1] < losses[0]
    assert losses[1] < 0.55 * unigram()
    assert rows[1]["figures"]["accuracy"] > 55
    told = (tmp_path / "run" / "log.tsv").read_text(encoding="utf-8").splitlines()
    assert told[0].endswith("\tfigures")
    assert f"loss {losses[1]:.6g}" in told[2]


@pytest.mark.slow
def test_which_texts_follow_is_learnt(tmp_path: Path) -> None:
    """A coin is right in 50 %; every sixth stranger is of the same place and cannot be told."""
    sets = ["train.steps=1500", "train.rate=0.002"]
    rows = finish(tiny("bert-pretrain-pairs", *sets), tmp_path / "run")
    assert rows[-1]["figures"]["follows"] > 65


def test_the_same_words_are_hidden_at_every_look() -> None:
    checkpoint = load(pretrained())
    own = tiny("bert-pretrain-pairs")["data"]
    data = CorpusFiles(**{k: v for k, v in own.items() if k != "kind"}).load()
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
    whole = finish(recipe, tmp_path / "whole")
    going = fit(recipe, tmp_path / "stopped", device="cpu")
    for _ in range(7):
        next(going)
    going.close()  # type: ignore[attr-defined]
    rest = finish(recipe, tmp_path / "stopped")
    assert [row["loss"] for row in rest] == [row["loss"] for row in whole[-len(rest) :]]
    one, two = (weights_of(load(tmp_path / own).network) for own in ("whole", "stopped"))
    assert all(torch.equal(one[key], two[key]) for key in one)


def nearly(one: dict[str, Tensor], two: dict[str, Tensor]) -> None:
    for name in one:
        torch.testing.assert_close(one[name], two[name], atol=2e-4, rtol=0)


def test_a_batch_in_parts_is_the_whole_batch(tmp_path: Path) -> None:
    """Both objectives; sgd, since Adam makes much of the last digit of a gradient near zero."""
    sets = ["train.steps=6", 'train.optimizer={kind="sgd"}', "train.rate=0.1", "objective.nsp=0.7"]
    rows, weights = [], []
    for parts in (1, 4):
        folder = tmp_path / str(parts)
        recipe = tiny("bert-pretrain-pairs", *sets, f"train.accumulate={parts}")
        rows.append(finish(recipe, folder)[-1])
        weights.append(weights_of(load(folder).network))
    assert rows[0]["loss"] == pytest.approx(rows[1]["loss"], rel=1e-5)
    assert rows[0]["norm"] == pytest.approx(rows[1]["norm"], rel=1e-4)
    nearly(*weights)
    with pytest.raises(ConfigError, match="16 has no 3 equal parts"):
        finish(tiny("bert-pretrain", "train.accumulate=3"), tmp_path / "odd")


@pytest.mark.slow
def test_two_processes_learn_what_one_does(tmp_path: Path) -> None:
    """torchrun with gloo, each with two parts of its half: the same loss and weights as one."""
    sets = ["train.steps=6", 'train.optimizer={kind="sgd"}', "train.rate=0.1", "train.log=3"]
    recipe = tiny("bert-pretrain-pairs", *sets)
    alone = finish(recipe, tmp_path / "one")
    kept = [f"data.kept={tmp_path / 'kept'}", "train.accumulate=2"]
    given = [w for text in [*TINY, *sets, *kept] for w in ("--set", text)]
    start = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    words = ["-m", "mnemic", "train", "bert-pretrain-pairs", "--out", str(tmp_path / "two"), "--json"]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = python([*start, *words, "--device", "cpu", "--data", str(texts()), *given], env=env)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout)["steps"] == 6  # one process speaks for both
    assert done.stderr.count("step 3 of 6") == done.stderr.count("step 6 of 6") == 1
    both = load(tmp_path / "two")
    for row, other in zip(both.progress.history, alone, strict=True):
        assert row["loss"] == pytest.approx(other["loss"], rel=1e-5)
    nearly(weights_of(both.network), weights_of(load(tmp_path / "one").network))


def python(words: Sequence[str], **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, timeout=150, **more)


def test_a_pretrained_model_is_read_by_transformers(tmp_path: Path) -> None:
    """AutoModelForMaskedLM and BertForPreTraining score as our network does."""
    from transformers import AutoModelForMaskedLM, AutoTokenizer, BertForPreTraining

    done = command("export", pretrained(), tmp_path / "bert", "--json")
    assert (done.code, done.err) == (0, "")
    assert (done.json["pooler"], len(done.json["heads"])) == (True, 7)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "bert")
    pair = ("The ant in Rome eats [MASK].", "The [MASK] in Rome eats honey.")
    told = tokenizer(*pair, return_tensors="pt", return_token_type_ids=True)
    ids, segments = told["input_ids"], told["token_type_ids"]
    real = torch.ones_like(ids, dtype=torch.bool)
    network = load(pretrained()).network
    with torch.no_grad():
        ours = network(WindowBatch(ids, real, segments, real)).logits
        theirs = AutoModelForMaskedLM.from_pretrained(tmp_path / "bert").eval()(**told)
        both = BertForPreTraining.from_pretrained(tmp_path / "bert").eval()(**told)
    torch.testing.assert_close(ours.masked_logits, theirs.logits.flatten(0, 1), atol=1e-4, rtol=0)
    torch.testing.assert_close(ours.nsp_logits, both.seq_relationship_logits, atol=1e-4, rtol=0)


def test_a_pretrained_model_is_where_fine_tuning_starts(tmp_path: Path) -> None:
    """From the run, and from the folder it was exported to: the same weights and vocabulary."""
    files = text_files.classes(tmp_path / "files", 60)
    command("export", pretrained(), tmp_path / "bert")
    short = ["--set", "train.steps=1", "--set", "train.batch=8", "--set", "train.rate=1e-9"]
    for start in (pretrained(), tmp_path / "bert"):
        out = tmp_path / f"from-{start.name}"
        words = ("train", "bert-classes", "--data", files, "--start", start, "--out", out, "--json")
        done = command(*words, "--device", "cpu", "--set", "data.overlap=8", *short)
        assert done.code == 0, done.err
        tuned, begun = load(out), load(pretrained())
        assert tuned.tokenizer == begun.tokenizer
        for name, weight in begun.network.encode.named_parameters():
            torch.testing.assert_close(tuned.network.encode.get_parameter(name), weight)


def test_a_pretrained_model_embeds_and_says_what_it_cannot() -> None:
    model = mnemic.load(pretrained())
    assert model.embed(["The ant eats leaves."]).vectors.shape == (1, 32)
    with pytest.raises(ConfigError, match="this network cannot classify; it can embed"):
        model.classify(["The ant eats leaves."])


def test_the_command_line_makes_sequences_and_trains_on_them(tmp_path: Path) -> None:
    given = [w for text in TINY for w in ("--set", text)]
    kept = tmp_path / "kept"
    made = command("data", "sequences", "bert-pretrain", "--data", texts(), "--out", kept, *given)
    assert made.code == 0, made.err
    assert "sequences" in made.out
    assert "pieces" in made.out
    out = ("--out", tmp_path / "run", "--device", "cpu")
    done = command("train", "bert-pretrain", "--data", kept, *out, *given, "--set", "train.steps=2")
    assert done.code == 0, done.err
    assert "mnemic export" in done.out
    seen = command("evaluate", tmp_path / "run", "--split", "validation", "--json").json
    assert set(seen["figures"]) == {"accuracy", "loss"}
    wrong = command("data", "sequences", "memn2n", "--data", texts(), "--out", tmp_path / "no")
    assert (wrong.code, "does not train on a corpus" in wrong.err) == (2, True)


def test_a_step_of_a_gpu_is_one_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packed into its room, the network compiles without a break and says the same."""
    recipe = tiny("bert-pretrain-pairs")
    data = CorpusFiles(**{k: v for k, v in recipe["data"].items() if k != "kind"}).load()
    network = load(pretrained()).network
    batch = data.train.batch(torch.arange(16), compact=False)
    batch = batch._replace(max_tokens=int(batch.mask.sum()) + 5)
    assert batch.max_tokens < batch.tokens.numel()
    objective = PretrainingLoss(nsp=1.0)
    alone = objective(network, batch._replace(max_tokens=0))
    monkeypatch.setattr(transformer, "has_varlen_kernel", lambda device, dropout: True)
    whole = torch.compile(network, backend="eager", fullgraph=True, dynamic=False)
    for _ in range(2):
        loss = objective(whole, batch)
        torch.testing.assert_close(loss.total, alone.total)
        assert loss.num_targets == alone.num_targets


def test_parts_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"model\.respond\.next_sentence=true"):
        finish(tiny("bert-pretrain", "objective.nsp=1.0"), tmp_path / "run")


def test_the_example_of_the_documentation_runs(tmp_path: Path) -> None:
    code = "\n".join(b.text for b in blocks(ROOT / "docs" / "howto" / "pretrain.md") if b.mark == "python")
    done = python(["-W", "error", "-c", code], cwd=tmp_path, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    *_, last = done.stdout.splitlines()
    masked, by_chance = (float(word) for word in last.split() if "." in word)
    assert masked < by_chance
