"""``train.keep = "best"`` keeps the weights with the lowest validation error, per run."""

from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from mnemic.checkpoint.folder import load_checkpoint, weights_of
from mnemic.evaluate.by_task import mean_error
from mnemic.evaluate.error_rate import compute_task_errors
from mnemic.recipe import ConfigError, Recipe, load_recipe
from mnemic.reproduce.train_ensemble import create_networks, train_ensemble
from mnemic.train.early_stopping import BestWeights
from mnemic.train.phases import read_phases
from mnemic.train.run import fit, load_data

# One phase of 6 epochs, 7 steps per epoch, with a rate so high that errors go up and down.
SMALL = [
    'data={kind="generated", tasks=[1], count=80, validation=0.25}',
    "model.width=6",
    "train.batch=8",
    "train.epochs=6",
    "train.rate=0.03",
    "train.validate=1",
    "train.save=7",
    "train.keep=best",
]


def small(*sets: str) -> Recipe:
    recipe = load_recipe("memn2n", [*SMALL, *sets])
    return {key: section for key, section in recipe.items() if key != "phases"}


def finish(recipe: Recipe, folder: Path) -> dict[str, Tensor]:
    for _ in fit(recipe, folder, device="cpu"):
        pass
    return weights_of(load_checkpoint(folder).network)


def same(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    return all(torch.equal(first[name], second[name]) for name in first)


def test_each_run_keeps_its_own_best_and_of_equals_the_later() -> None:
    runs = nn.Linear(1, 3, bias=False)  # its rows are three runs
    best = BestWeights()
    for step, errors in enumerate([[9.0, 2.0, 5.0], [3.0, 4.0, 5.0], [4.0, 3.0, 6.0]]):
        nn.init.constant_(runs.weight, step)
        best.update(runs, torch.tensor(errors))
    assert best.error is not None
    assert best.error.tolist() == [3.0, 2.0, 5.0]
    copy = BestWeights.from_state_dict(best.state_dict(), torch.device("cpu"))
    for best_weights in (best, copy):
        nn.init.constant_(runs.weight, 9)
        best_weights.copy_to(runs)
        assert runs.weight.flatten().tolist() == [1.0, 0.0, 1.0]


def test_what_is_kept_does_not_change_with_the_network() -> None:
    network, best = nn.Linear(2, 2), BestWeights()
    before = network.weight.detach().clone()
    best.update(network, torch.tensor(1.0))
    nn.init.zeros_(network.weight)
    best.copy_to(network)
    assert torch.equal(network.weight, before)


def test_nothing_offered_changes_nothing() -> None:
    network = nn.Linear(2, 2)
    before = network.weight.detach().clone()
    BestWeights().copy_to(network)
    assert torch.equal(network.weight, before)
    assert BestWeights().state_dict() == {}


def test_a_run_ends_with_the_weights_of_its_best_epoch(tmp_path: Path) -> None:
    recipe = small()
    validation_errors, weights = [], []
    for report in fit(recipe, tmp_path, device="cpu"):
        if report.row is not None:
            validation_errors.append(report.row["validation"])
            weights.append(weights_of(load_checkpoint(tmp_path).network))
    best = max(range(6), key=lambda epoch: (-validation_errors[epoch], epoch))
    assert best < 5, "the last epoch is the best one: this test shows nothing"
    checkpoint = load_checkpoint(tmp_path)
    assert same(weights_of(checkpoint.network), weights[best])
    errors = compute_task_errors(checkpoint.network, load_data(recipe).validation)
    assert mean_error(list(errors.values())) == validation_errors[best]
    assert not any(name.startswith("best.") for name in checkpoint.state)


@pytest.mark.parametrize("stops", [[10], [35, 6], [41]])
def test_a_stopped_run_ends_with_the_same_bits(tmp_path: Path, stops: list[int]) -> None:
    """Stopped before, at and after the best epoch; the best weights are in the checkpoint."""
    uninterrupted = finish(small(), tmp_path / "whole")
    for count in stops:
        steps = fit(small(), tmp_path / "stopped", device="cpu")
        assert len(list(islice(steps, count))) == count
        steps.close()
    assert same(finish(small(), tmp_path / "stopped"), uninterrupted)


def trained(recipe: Recipe, data: Any, seeds: list[int]) -> list[dict[str, Tensor]]:
    networks = create_networks(recipe, data, seeds)
    pools = [torch.arange(len(data.train))] * len(seeds)
    for _ in train_ensemble(recipe, data, networks, seeds=seeds, rows_per_run=pools, device=torch.device("cpu")):
        pass
    return [weights_of(network) for network in networks]


def test_many_runs_keep_what_each_would_keep_alone(tmp_path: Path) -> None:
    recipe = small()
    data = load_data(recipe)
    together = trained(recipe, data, [0, 1, 2])
    for seed in range(3):
        (alone,) = trained(recipe, data, [seed])
        for name, weight in alone.items():
            torch.testing.assert_close(together[seed][name], weight, atol=1e-4, rtol=1e-3)
    assert same(trained(recipe, data, [0])[0], finish(recipe, tmp_path))


def test_the_best_needs_looks_and_something_to_look_at(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"train\.validate to 1 or more"):
        finish(small("train.validate=0"), tmp_path)
    with pytest.raises(ConfigError, match=r"data\.validation above 0"):
        finish(small("data.validation=0.0"), tmp_path)


def test_a_phase_ends_when_looks_get_no_better(tmp_path: Path) -> None:
    """Steps are the same up to the stop; a run closed there does not continue."""
    validation_errors = [
        report.row["validation"] for report in fit(small(), tmp_path / "all", device="cpu") if report.row
    ]
    better = [not n or validation_errors[n] < min(validation_errors[:n]) for n in range(6)]
    stop = next(n for n in range(2, 6) if not better[n] and not better[n - 1])
    assert stop < 5, "it never stops before the end: this test shows nothing"
    recipe = small("train.patience=2")
    steps = list(fit(recipe, tmp_path / "patient", device="cpu"))
    assert [report.row["validation"] for report in steps if report.row] == validation_errors[: stop + 1]
    stopped_run = fit(recipe, tmp_path / "closed", device="cpu")
    assert len(list(islice(stopped_run, len(steps)))) == len(steps)
    stopped_run.close()
    weights = finish(recipe, tmp_path / "closed")
    assert same(weights, weights_of(load_checkpoint(tmp_path / "patient").network))
    (alone,) = trained(recipe, load_data(recipe), [0])
    assert same(alone, weights)


def test_patience_needs_the_best_to_be_kept() -> None:
    with pytest.raises(ConfigError, match=r'train\.keep = "best"'):
        read_phases(small("train.keep=last", "train.patience=3"))
