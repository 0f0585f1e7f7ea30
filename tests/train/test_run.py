"""A run from recipe to checkpoint: stopped, killed, resumed, logged."""

import shutil
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from learn_runs import OPTIMISERS, finish, log_of, numbers_in, read_progress, small, weights_in
from torch import nn

from mnemic.checkpoint.atomic_files import CheckpointError
from mnemic.checkpoint.folder import load_checkpoint
from mnemic.data.babi.format import StoryError
from mnemic.models import build_model
from mnemic.objectives import OBJECTIVES, CarriedState, Loss
from mnemic.objectives.answer import AnswerLoss
from mnemic.recipe import ConfigError
from mnemic.train import initialize
from mnemic.train.optim.optimizers import Sgd
from mnemic.train.run import fit

# Beginning --------------------------------------------------------------------------------------


@pytest.mark.parametrize("fresh", [False, True])
def test_what_is_no_checkpoint_is_not_replaced(tmp_path: Path, fresh: bool) -> None:
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "notes.txt").write_text("precious", encoding="utf-8")
    with pytest.raises(CheckpointError, match="checkpoint is no checkpoint of mnemic"):
        finish(small(), tmp_path, fresh=fresh)
    assert (tmp_path / "checkpoint" / "notes.txt").read_text(encoding="utf-8") == "precious"


def test_a_fresh_run_never_passes_for_the_one_it_replaces(tmp_path: Path) -> None:
    """The old run is removed when the new one starts, and not before."""
    finish(small(), tmp_path)
    with pytest.raises(StoryError):
        finish(small("data.tasks=[99]"), tmp_path, fresh=True)
    assert load_checkpoint(tmp_path).progress.done  # nothing had begun
    steps = fit(small("train.rate=0.5"), tmp_path, fresh=True)
    next(steps)
    with pytest.raises(CheckpointError, match="no checkpoint in"):
        load_checkpoint(tmp_path)
    steps.close()
    assert not load_checkpoint(tmp_path).progress.done


def test_weights_may_be_read_by_whom_the_recipe_may(tmp_path: Path) -> None:
    finish(small(), tmp_path)
    modes = {path.stat().st_mode for path in (tmp_path / "checkpoint").iterdir()}
    assert len(modes) == 1


# Going on --------------------------------------------------------------------------------------


class NoisyLoss:
    """The answer's loss times a random factor of the global generator, like dropout."""

    def __call__(self, network: nn.Module, batch: Any, carried: Any = None) -> Loss:
        loss = AnswerLoss()(network, batch, carried)
        return loss._replace(total=loss.total * (0.5 + torch.rand(())))


@pytest.mark.parametrize(
    ("optimizer", "stops"),
    [("sgd", [3]), ("sgd", [14]), ("momentum", [17, 9]), ("adamw", [5, 1]), ("adamw", [7, 7, 7]), ("lamb", [6, 13])],
)
def test_a_stopped_run_ends_with_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, optimizer: str, stops: list[int]
) -> None:
    """Closed within an epoch, at its end and at a phase's end, with random numbers."""
    monkeypatch.setitem(OBJECTIVES, "noisy", NoisyLoss)
    recipe = small(*OPTIMISERS[optimizer], "objective.kind=noisy")
    uninterrupted = finish(recipe, tmp_path / "whole")
    for count in stops:
        steps = fit(recipe, tmp_path / "stopped")
        reports = list(islice(steps, count))
        assert len(reports) == count
        steps.close()
        assert read_progress(tmp_path / "stopped") == (reports[-1].phase, reports[-1].step)  # saved here
        torch.rand(count)  # somebody else's random numbers
    finish(recipe, tmp_path / "stopped")
    assert weights_in(tmp_path / "stopped") == weights_in(uninterrupted)
    assert log_of(tmp_path / "stopped") == log_of(uninterrupted)
    assert numbers_in(tmp_path / "stopped") == numbers_in(uninterrupted)


class CarryingLoss:
    """The loss divided by a moving average that is carried from step to step."""

    def __call__(self, network: nn.Module, batch: Any, carried: CarriedState | None = None) -> Loss:
        loss = AnswerLoss()(network, batch)
        mean = loss.total.new_ones(1) if carried is None else carried["mean"]
        assert not mean.requires_grad  # no gradient crosses a step
        return Loss(loss.total / (1 + mean.sum()), loss.num_targets, {"mean": 0.9 * mean + loss.total / 300})


@pytest.mark.parametrize("stop", [3, 9, 17])
def test_what_steps_hand_on_survives_a_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: int) -> None:
    monkeypatch.setitem(OBJECTIVES, "carrying", CarryingLoss)
    recipe = small('objective={kind="carrying"}')
    uninterrupted = finish(recipe, tmp_path / "whole")
    stopped = fit(recipe, tmp_path / "stopped")
    for _ in islice(stopped, stop):
        pass
    stopped.close()
    state = load_checkpoint(tmp_path / "stopped").state
    assert [name for name in state if name.startswith("carried.")] == ["carried.mean"]
    finish(recipe, tmp_path / "stopped")
    assert weights_in(tmp_path / "stopped") == weights_in(uninterrupted)
    plain = finish(small(), tmp_path / "plain")
    assert weights_in(plain) != weights_in(uninterrupted)  # what is carried does matter


def test_a_run_killed_between_two_phases_ends_with_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed right after a phase is saved: the next phase draws the same numbers."""
    monkeypatch.setitem(OBJECTIVES, "noisy", NoisyLoss)
    recipe = small("objective.kind=noisy")
    uninterrupted = finish(recipe, tmp_path / "whole")
    for report in fit(recipe, tmp_path / "whole2"):
        if (report.phase, report.step) == (1, 1):
            killed_run = shutil.copytree(tmp_path / "whole2", tmp_path / "killed")
            break
    progress = load_checkpoint(Path(killed_run)).progress
    assert (progress.phase, progress.step, len(progress.history)) == (1, 0, 2)
    finish(recipe, tmp_path / "killed")
    assert weights_in(tmp_path / "killed") == weights_in(uninterrupted)


def test_an_interrupt_within_a_step_leaves_the_last_checkpoint(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C after the weights changed, before the step counted: nothing is saved."""
    step, calls = Sgd.step, []

    def step_and_interrupt(optimizer: Sgd, closure: None = None) -> None:
        step(optimizer, closure)
        calls.append(1)
        if len(calls) == 8:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Sgd, "step", step_and_interrupt)
        with pytest.raises(KeyboardInterrupt):
            finish(small(), tmp_path / "run")
    assert read_progress(tmp_path / "run") == (0, 5)
    assert weights_in(finish(small(), tmp_path / "run")) == weights_in(finished)


def test_a_finished_run_stays_finished(finished: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(finished, tmp_path / "run"))
    assert list(fit(small(), run)) == []
    assert weights_in(run) == weights_in(finished)
    assert load_checkpoint(run).progress.done
    assert log_of(run) == log_of(finished)


def test_a_network_is_built_once_per_way_to_use_its_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shapes are checked on the meta device; a phase rebuilds only another model."""
    devices: list[str] = []

    def build_and_record(model: dict[str, Any], sizes: Any) -> Any:
        network = build_model(model, sizes)
        devices.append(next(network.parameters()).device.type)
        return network

    monkeypatch.setattr(initialize, "build_model", build_and_record)
    finish(small(), tmp_path / "two ways")  # a phase without the softmax, and one with it
    assert (devices.count("cpu"), devices.count("meta")) == (2, 2)
    devices.clear()
    finish(small("phases=[{}, {}]"), tmp_path / "one way")
    assert (devices.count("cpu"), devices.count("meta")) == (1, 1)


def test_the_last_checkpoint_holds_the_recipes_own_model(finished: Path) -> None:
    """It is not the model of the linear start or of any other phase."""
    checkpoint = load_checkpoint(finished)
    assert checkpoint.network.memory.softmax
    assert checkpoint.progress.phase == 2
    assert not checkpoint.state


def test_a_folder_of_another_run_is_left_alone(finished: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(finished, tmp_path / "run"))
    for recipe, seed in ((small("train.rate=0.1"), 0), (small(), 1)):
        with pytest.raises(ConfigError, match=r"of another recipe or seed; .*--fresh"):
            next(fit(recipe, run, seed=seed))
    assert weights_in(run) == weights_in(finished)
    finish(small(), run, seed=1, fresh=True)
    assert load_checkpoint(run).seed == 1
    assert weights_in(run) != weights_in(finished)
    assert len(log_of(run)) == len(log_of(finished))
    assert numbers_in(run).keys() == numbers_in(finished).keys()  # nothing of the run before


def test_seeds_give_runs_of_their_own(finished: Path, tmp_path: Path) -> None:
    other_seed = finish(small(), tmp_path / "other", seed=1)
    again = finish(small(), tmp_path / "again")
    assert weights_in(other_seed) != weights_in(finished)
    assert weights_in(again) == weights_in(finished)


@pytest.mark.parametrize("device", ["tpu9", "cuda:0"])
def test_a_device_that_is_not_there(tmp_path: Path, device: str) -> None:
    if device.startswith("cuda") and torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(ConfigError, match=device):
        next(fit(small(), tmp_path, device=device))


# The log ---------------------------------------------------------------------------------------


def test_the_log_is_a_table_with_a_row_an_epoch(finished: Path) -> None:
    rows = log_of(finished)
    assert [(row["phase"], row["epoch"], row["step"]) for row in rows] == [
        ("1", "1", "7"), ("1", "2", "14"), ("2", "1", "7"), ("2", "2", "14"),
    ]  # fmt: skip
    assert all(0 < float(row["loss"]) < 10 and float(row["norm"]) > 0 for row in rows)
    assert all(float(row["rate"]) == 0.005 for row in rows)
    assert all(0 <= float(row["validation"]) <= 100 for row in rows)


def test_a_row_is_the_mean_of_its_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare with the losses that the objective computed in these steps."""
    losses = []

    class RecordingLoss(AnswerLoss):
        def __call__(self, network: nn.Module, batch: Any, carried: Any = None) -> Loss:
            loss = super().__call__(network, batch, carried)
            losses.append((loss.total / loss.num_targets).item())
            return loss

    monkeypatch.setitem(OBJECTIVES, "recording", RecordingLoss)
    run = finish(small("objective.kind=recording"), tmp_path / "run")
    assert len(losses) == 28
    means = [sum(losses[first : first + 7]) / 7 for first in range(0, 28, 7)]
    assert [float(row["loss"]) for row in log_of(run)] == pytest.approx(means, rel=1e-5)


def test_a_run_without_validation_says_so(tmp_path: Path) -> None:
    run = finish(small("train.validate=0"), tmp_path / "run")
    assert {row["validation"] for row in log_of(run)} == {"-"}
    without_split = finish(small("data.validation=0.0"), tmp_path / "other")
    assert {row["validation"] for row in log_of(without_split)} == {"-"}


def test_tensorboard_reads_the_numbers_of_the_log(finished: Path) -> None:
    """TensorBoard's reader checks all checksums; steps are counted over all phases."""
    numbers = numbers_in(finished)
    rows = log_of(finished)
    assert sorted({step for step, _ in numbers}) == [7, 14, 21, 28]
    for step, row in zip((7, 14, 21, 28), rows, strict=True):
        for name in ("loss", "norm", "rate", "validation"):
            assert numbers[step, f"train/{name}"] == pytest.approx(float(row[name]), rel=1e-5)
    assert len(numbers) == 16
