"""The mean of several runs: what it is of, and what has none."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from mnemic.checkpoint.average import average_checkpoints
from mnemic.checkpoint.folder import load_checkpoint, weights_of
from mnemic.checkpoint.folder import save_checkpoint
from mnemic.cli.main import main
from mnemic.recipe import ConfigError
from mnemic.recipe import load_recipe as recipe_of
from mnemic.train.run import fit

TINY = [
    "data.kind=generated",
    "data.tasks=[1]",
    "data.count=60",
    "model.width=8",
    "train.epochs=1",
    "train.validate=1",
]


def trained(folder: Path, seed: int, *sets: str) -> Path:
    for _ in fit(recipe_of("memn2n", [*TINY, *sets]), folder, seed=seed, device="cpu"):
        pass
    return folder


def test_every_weight_is_the_mean(tmp_path: Path) -> None:
    runs = [trained(tmp_path / str(seed), seed) for seed in range(3)]
    words = ["average", *map(str, runs), "--out", str(tmp_path / "mean")]
    assert main(words) == 0
    whole, parts = load_checkpoint(tmp_path / "mean"), [load_checkpoint(run) for run in runs]
    for name, weight in weights_of(whole.network).items():
        each = torch.stack([weights_of(own.network)[name] for own in parts])
        torch.testing.assert_close(weight, each.mean(0))
        assert not torch.equal(weight, each[0])
    assert whole.recipe == parts[0].recipe
    assert whole.progress.done
    assert len(whole.progress.history) == sum(len(own.progress.history) for own in parts)
    assert parts[0].progress.history[0]["validation"] is not None
    assert all(row["validation"] is None for row in whole.progress.history)
    assert main(["average", *words[1:4], "--out", str(tmp_path / "mean")]) == 2  # is there already
    assert whole.state == {}


def test_what_has_no_mean_is_refused(tmp_path: Path) -> None:
    """And nothing is written."""
    one, out = trained(tmp_path / "one", 0), tmp_path / "mean"
    wider = trained(tmp_path / "wider", 0, "model.width=10")
    with pytest.raises(ConfigError, match="differ in their models"):
        average_checkpoints([one, wider], out)
    with pytest.raises(ConfigError, match="at least two runs"):
        average_checkpoints([one], out)
    own = load_checkpoint(one)
    save_checkpoint(tmp_path / "begun", replace(own, progress=replace(own.progress, done=False)))
    with pytest.raises(ConfigError, match="not trained to the end"):
        average_checkpoints([one, tmp_path / "begun"], out)
    assert not out.exists()
    with pytest.raises(ConfigError, match="exists already"):
        average_checkpoints([one, one], one)
