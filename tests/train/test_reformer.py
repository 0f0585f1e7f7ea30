"""Reformers train, resume with the same bits, and are tested with other rounds of hashing."""

from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from app_runs import run, sets

from mnemic.checkpoint.folder import CheckpointError, load_checkpoint, weights_of
from mnemic.data import DATASETS
from mnemic.data.language_modeling.copies import GeneratedCopies
from mnemic.evaluate.text_metrics import compute_copy_metrics
from mnemic.models import build_model
from mnemic.objectives.next_token import NextTokenLoss
from mnemic.recipe import build, load_recipe
from mnemic.train.run import fit

TINY = [
    "data.length=32", "data.symbols=8", "data.count=64", "data.validation_size=8", "data.test_size=20",
    "model.width=16",
    "model.encode.stack.inner=16", "model.encode.stack.dropout=0.1", "model.encode.embeddings.positions.length=32",
    *(f"model.encode.stack.attention.{option}" for option in ("heads=2", "chunk=4", "rounds=2", "dropout=0.1")),
    "train.batch=8", "train.epochs=2", "train.save=5", "train.log=0",
]  # fmt: skip


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reformer") / "run"
    assert len(list(fit(load_recipe("reformer-copies", TINY), folder, device="cpu"))) == 16
    return folder


def test_a_stopped_run_ends_with_the_same_bits(trained: Path, tmp_path: Path) -> None:
    """With random rotations and dropout, which the saved generator decides."""
    recipe = load_recipe("reformer-copies", TINY)
    steps: Any = fit(recipe, tmp_path / "run", device="cpu")
    assert len(list(islice(steps, 7))) == 7
    steps.close()
    assert len(list(fit(recipe, tmp_path / "run", device="cpu"))) == 9
    expected, actual = (weights_of(load_checkpoint(folder).network) for folder in (trained, tmp_path / "run"))
    assert all(torch.equal(actual[name], expected[name]) for name in expected)


def test_a_network_is_tested_with_other_rounds(trained: Path) -> None:
    reports = {
        rounds: run("evaluate", trained, *sets(f"model.encode.stack.attention.rounds={rounds}"), "--json").json
        for rounds in (1, 2, 8)
    }
    as_trained = run("evaluate", trained, "--json").json
    assert reports[2]["figures"] == as_trained["figures"]
    assert reports[8]["changes"] == {"model.encode.stack.attention.rounds": 8}
    assert list(as_trained["figures"]) == ["accuracy", "whole texts"]
    assert "whole texts" in as_trained["intervals"]
    assert as_trained["texts"] == 20
    assert as_trained["seen"] == 20 * 32
    network = load_checkpoint(trained, overrides={"model.encode.stack.attention.rounds": 8}).network
    assert network.encode.stack.stack.blocks[0].attention.rounds == 8


def test_what_changes_weights_or_is_unknown_is_refused(trained: Path) -> None:
    wrong = run("evaluate", trained, *sets("model.width=32"))
    assert wrong.code == 2
    assert "its recipe wants" in wrong.err
    unknown = run("evaluate", trained, *sets("model.encode.stack.attention.round=8"))
    assert unknown.code == 2
    assert "did you mean 'rounds'?" in unknown.err
    training = run("evaluate", trained, *sets("train.epochs=8"))
    assert training.code == 2
    assert "train.epochs of a trained network cannot change here" in training.err
    with pytest.raises(CheckpointError, match="its recipe wants"):
        load_checkpoint(trained, overrides={"model.encode.stack.inner": 8})


def test_accuracy_counts_the_second_half(trained: Path) -> None:
    """A network that copies perfectly has 100 %, one that errs in one symbol of a text less."""
    checkpoint = load_checkpoint(trained)
    dataset = build(DATASETS, checkpoint.recipe["data"]).dataset("test", checkpoint.tokenizer)
    targets = dataset.batch(torch.arange(20)).targets.clamp(min=0)

    class Copier(torch.nn.Module):
        def __init__(self, answers: torch.Tensor) -> None:
            super().__init__()
            self.answers = answers

        def forward(self, inputs: Any) -> Any:
            logits = torch.nn.functional.one_hot(self.answers, len(checkpoint.tokenizer)).float()
            return type("Output", (), {"logits": logits})

    assert compute_copy_metrics(Copier(targets), dataset) == {"accuracy": 1.0, "whole texts": 1.0}
    wrong = targets.clone()
    wrong[3, -1] = (wrong[3, -1] + 1) % 4
    wrong[4, 0] = 3  # in the first half
    metrics = compute_copy_metrics(Copier(wrong), dataset)
    assert metrics["accuracy"] == pytest.approx(1 - 1 / (20 * 15))
    assert metrics["whole texts"] == pytest.approx(19 / 20)


def test_a_tiny_reformer_learns_to_copy() -> None:
    """Seven symbols in texts of sixteen tokens, with chunks of four."""
    torch.manual_seed(0)
    data = GeneratedCopies(length=16, symbols=6, count=2400, validation_size=1, test_size=50).load()
    model = load_recipe("reformer-copies", ["model.width=32", "model.encode.stack.inner=32"])["model"]
    model["encode"]["stack"]["attention"] |= {"heads": 2, "chunk": 4}
    network = build_model(model, data.sizes)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    for rows in torch.arange(2400).split(16):
        loss = NextTokenLoss()(network, data.train.batch(rows))
        optimizer.zero_grad()
        (loss.total / loss.num_targets).backward()
        optimizer.step()
    assert compute_copy_metrics(network, data.test)["accuracy"] > 0.9


def test_predict_measures_a_row(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "rows.txt").write_text("0 3 5 0\n", encoding="utf-8")
    row = run("predict", "--model", trained, tmp_path / "rows.txt").json
    assert (row["unknown"], row["total"]) == (0, 4)
    assert row["perplexity"] > 1
