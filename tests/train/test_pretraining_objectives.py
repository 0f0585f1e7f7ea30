"""Each pre-training objective learns what frequencies cannot tell, in a short run."""

from math import log
from pathlib import Path

import pytest
import text_files
import torch
from app_runs import run, sets
from learn_runs import finish, stop_after, weights_in
from pretraining_runs import compute_unigram_loss, load_tiny_recipe

from mnemic.checkpoint.folder import load_checkpoint
from mnemic.recipe import load_recipe


def train_figures(name: str, folder: Path, *sets: str) -> dict[str, float]:
    """Train a tiny recipe; return the figures of the last validation."""
    finish(load_tiny_recipe(name, "train.steps=140", "train.log=70", *sets), folder, device="cpu")
    return load_checkpoint(folder).progress.history[-1]["figures"]


def test_permuted_language_model(tmp_path: Path) -> None:
    """The query stream knows the position and what comes before in the order."""
    figures = train_figures("xlnet-pretrain", tmp_path, "model.encode.stack.heads=4")
    assert figures["loss"] < 0.55 * compute_unigram_loss()
    assert figures["accuracy"] > 55


def test_views_of_one_network(tmp_path: Path) -> None:
    """Validation reads both ways, as that of all masked models; a third of the training does."""
    figures = train_figures("unilm-pretrain", tmp_path)
    assert figures["loss"] < 0.75 * compute_unigram_loss()


def test_sentences_find_their_ngrams(tmp_path: Path) -> None:
    """Masks are predicted, and n-grams found better than by chance among sixteen."""
    figures = train_figures("infoword-pretrain", tmp_path)
    assert figures["loss"] < 0.75 * compute_unigram_loss()
    losses = load_checkpoint(tmp_path).progress.history[-1]["losses"]
    assert losses["ngrams"] < 0.93 * log(16)


def test_notes_on_rare_words(tmp_path: Path) -> None:
    """Validation reads without notes, as a finished network does."""
    figures = train_figures("tnf-pretrain", tmp_path, "data.rare_words=[100, 300]")
    assert figures["loss"] < 0.75 * compute_unigram_loss()


def test_a_classifier_starts_from_the_content_stream(tmp_path: Path) -> None:
    """And from UniLM's network, which reads both ways again."""
    files = text_files.classes(tmp_path / "files", 60)
    for name in ("xlnet-pretrain", "unilm-pretrain"):
        finish(load_tiny_recipe(name, "train.steps=1"), tmp_path / name, device="cpu")
        arguments = ("train", "bert-classes", "--data", files, "--start", tmp_path / name, "--device", "cpu")
        options = sets("train.steps=1", "train.batch=8", "train.rate=1e-9", "data.overlap=8")
        result = run(*arguments, "--out", tmp_path / f"{name}-classes", "--json", *options)
        assert result.code == 0, result.err
        before, after = (load_checkpoint(tmp_path / folder).network for folder in (name, f"{name}-classes"))
        for weight_name, weight in before.encode.named_parameters():
            torch.testing.assert_close(after.encode.get_parameter(weight_name), weight)


RESUMED = ["xlnet", "unilm", "infoword", "sop", "ernie", "ernie2"]


@pytest.mark.parametrize("name", RESUMED)
def test_a_stopped_run_ends_with_the_same_bits(name: str, tmp_path: Path) -> None:
    """Orders, views, n-grams and phases come from seed and step alone; dropout's state is saved."""
    options = ["model.encode.stack.depth=1", "model.encode.stack.dropout=0.1", "train.validate=0", "train.steps=7"]
    num_phases = len(load_recipe(f"{name}-pretrain").get("phases", []))
    options += [f"phases.{number}.train.{key}" for number in range(num_phases) for key in ("epochs=1000", "steps=3")]
    recipe = load_tiny_recipe(f"{name}-pretrain", *options)
    finish(recipe, tmp_path / "whole", device="cpu")
    stop_after(5, recipe, tmp_path / "stopped", device="cpu")
    finish(recipe, tmp_path / "stopped", device="cpu")
    assert weights_in(tmp_path / "whole") == weights_in(tmp_path / "stopped")
