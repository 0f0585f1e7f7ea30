"""Averaging the weights of several runs, and runs that cannot be averaged."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from mnemic.checkpoint.average import average_checkpoints
from mnemic.checkpoint.folder import load_checkpoint, save_checkpoint, weights_of
from mnemic.cli.main import main
from mnemic.recipe import ConfigError
from mnemic.recipe import load_recipe as recipe_of
from mnemic.train.run import fit

TINY = ["data.kind=generated", "data.tasks=[1]", "data.count=60", "model.width=8", "train.epochs=1", "train.validate=1"]


def train_run(folder: Path, seed: int, *sets: str) -> Path:
    for _ in fit(recipe_of("memn2n", [*TINY, *sets]), folder, seed=seed, device="cpu"):
        pass
    return folder


def test_every_weight_is_the_mean(tmp_path: Path) -> None:
    runs = [train_run(tmp_path / str(seed), seed) for seed in range(3)]
    argv = ["average", *map(str, runs), "--out", str(tmp_path / "mean")]
    assert main(argv) == 0
    averaged, checkpoints = load_checkpoint(tmp_path / "mean"), [load_checkpoint(run) for run in runs]
    for name, weight in weights_of(averaged.network).items():
        stacked = torch.stack([weights_of(checkpoint.network)[name] for checkpoint in checkpoints])
        torch.testing.assert_close(weight, stacked.mean(0))
        assert not torch.equal(weight, stacked[0])
    assert averaged.recipe == checkpoints[0].recipe
    assert averaged.progress.done
    assert len(averaged.progress.history) == sum(len(checkpoint.progress.history) for checkpoint in checkpoints)
    assert checkpoints[0].progress.history[0]["validation"] is not None
    assert all(row["validation"] is None for row in averaged.progress.history)
    assert main(["average", *argv[1:4], "--out", str(tmp_path / "mean")]) == 2  # is there already
    assert averaged.state == {}


def test_what_has_no_mean_is_refused(tmp_path: Path) -> None:
    """Nothing is written then."""
    run, out = train_run(tmp_path / "one", 0), tmp_path / "mean"
    wider = train_run(tmp_path / "wider", 0, "model.width=10")
    with pytest.raises(ConfigError, match="differ in their models"):
        average_checkpoints([run, wider], out)
    with pytest.raises(ConfigError, match="at least two runs"):
        average_checkpoints([run], out)
    checkpoint = load_checkpoint(run)
    save_checkpoint(tmp_path / "begun", replace(checkpoint, progress=replace(checkpoint.progress, done=False)))
    with pytest.raises(ConfigError, match="not trained to the end"):
        average_checkpoints([run, tmp_path / "begun"], out)
    assert not out.exists()
    with pytest.raises(ConfigError, match="exists already"):
        average_checkpoints([run, run], run)
