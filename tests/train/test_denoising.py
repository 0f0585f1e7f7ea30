"""Sequence-to-sequence pre-training: recipes learn, are measured, and start others."""

from functools import cache
from pathlib import Path

import pytest
import torch
from app_runs import run
from learn_runs import finish
from pretraining_runs import load_tiny_recipe, make_texts
from seq2seq_files import write_parallel, write_questions
from shared_folders import make_temporary_folder

from mnemic.checkpoint.folder import load_checkpoint
from mnemic.data import DATASETS
from mnemic.evaluate.error_rate import evaluate_network
from mnemic.evaluate.generation_metrics import compute_generation_metrics
from mnemic.evaluate.pretraining_metrics import attach_noises, compute_denoising_metrics
from mnemic.recipe import build, load_recipe

SMALL = ["model.respond.decoder.depth=1", "model.encode.stack.depth=1", "model.encode.stack.attention.heads=4"]
SMALL += ["model.respond.decoder.attention.heads=4", "model.encode.stack.dropout=0.0", "train.batch=16"]
SMALL += ["model.respond.decoder.dropout=0.0", "model.respond.embeddings.dropout=0.0"]
SMALL += ["model.width=32", "train.rate=0.006", "train.matmul=float32", "train.epochs=1000"]
SENTINELS = ['data.tokenizer={kind="wordpiece", vocab=200, sentinels=9}']
CORPUS = ["data.length=32", "data.validation=0.1", *SENTINELS, "train.log=60", "train.steps=60"]


@cache
def make_sequences() -> Path:
    """Make the sequences with sentinels, once for all tests of a process."""
    folder = make_temporary_folder() / "sequences"
    options = [f"data.folder={make_texts()}", f"data.cache={folder}", *CORPUS]
    build(DATASETS, load_recipe("bart-pretrain", options)["data"]).load()
    return folder


@cache
def pretrain(name: str) -> Path:
    folder = make_temporary_folder() / "run"
    return finish(load_recipe(name, [*SMALL, *CORPUS, f"data.folder={make_sequences()}"]), folder, device="cpu")


@pytest.mark.parametrize("name", ["bart-pretrain", "t5-pretrain", "fragment-pretrain"])
def test_recipes_learn_to_rebuild_texts(name: str) -> None:
    """After 60 steps the loss is far below that of frequencies, on the noises of the recipe."""
    checkpoint = load_checkpoint(pretrain(name))
    figures = checkpoint.progress.history[-1]["figures"]
    assert figures["loss"] < 2.7  # frequencies alone have 3.6 nats
    assert figures["perplexity"] == pytest.approx(torch.tensor(figures["loss"]).exp().item())
    data = build(DATASETS, checkpoint.recipe["data"]).load()
    noisy = attach_noises(data.validation, checkpoint.recipe["objective"])
    assert compute_denoising_metrics(checkpoint.network, noisy) == figures
    assert compute_denoising_metrics(checkpoint.network, data.validation)["loss"] != figures["loss"]  # infilling
    report = run("evaluate", pretrain(name), "--split", "validation", "--json")
    assert report.json["figures"] == pytest.approx(figures)


def test_other_data_has_no_noises() -> None:
    checkpoint = load_checkpoint(pretrain("bart-pretrain"))
    data = build(DATASETS, checkpoint.recipe["data"]).load()
    assert attach_noises(data.validation, load_tiny_recipe("bert-pretrain")["objective"]) is data.validation


def test_a_question_network_starts_from_a_pretrained_one(tmp_path: Path) -> None:
    """All of its weights are those of the run; validation is by perplexity, without generation."""
    options = ["data.tokenizer.kind=stored", "data.length=32", "train.steps=2", "train.log=1", "train.validate=1"]
    start = pretrain("bart-pretrain")
    trained = run(
        "train", "question-generation", "--data", write_questions(tmp_path / "squad", filler=0), "--start", start,
        "--out", tmp_path / "run", "--device", "cpu", *(f"--set={text}" for text in (*SMALL, *options)
                                                        if "tokenizer" not in text),
    )  # fmt: skip
    assert trained.code == 0, trained.err
    checkpoint, before = load_checkpoint(tmp_path / "run"), load_checkpoint(start)
    assert checkpoint.tokenizer == before.tokenizer
    after, earlier = checkpoint.network.state_dict(), before.network.state_dict()
    assert after.keys() == earlier.keys()
    distances = {name: float((after[name] - earlier[name]).abs().max()) for name in after}
    assert {name: x for name, x in distances.items() if x > 0.05} == {}
    assert set(checkpoint.progress.history[-1]["figures"]) == {"perplexity"}


def test_translations_are_measured_by_bleu(tmp_path: Path) -> None:
    """A tiny network learns a dictionary of eight words."""
    folder = write_parallel(tmp_path / "text", 200)
    options = ['data.tokenizer={kind="byte-bpe", vocab=330}', "data.length=24", f"data.folder={folder}"]
    options += ["train.steps=150", "train.log=50", "train.schedule.warmup=0.1", "objective.label_smoothing=0.0"]
    recipe = load_recipe("multi30k", [*SMALL, *options, "model.encode.embeddings.dropout=0.0"])
    checkpoint = load_checkpoint(finish(recipe, tmp_path / "run", device="cpu"))
    dataset = build(DATASETS, recipe["data"]).dataset("test", checkpoint.tokenizer)
    figures = compute_generation_metrics(checkpoint.network, dataset)
    assert next(iter(figures)) == "perplexity"
    assert set(figures) == {"perplexity", "exact", "exact, 4 beams", "bleu", "chrf"}
    assert figures["bleu"] > 50
    error, selected = evaluate_network(checkpoint.network, dataset)
    assert selected == {"perplexity": figures["perplexity"]} == {"perplexity": error}
