"""Rates by layer, gradual unfreezing, and decay towards the starting weights."""

from pathlib import Path
from typing import Any

import pytest
import torch
from learn_runs import finish, stop_after, weights_in
from text_runs import files, tiny
from torch import nn

from mnemic.checkpoint.folder import load_checkpoint, weights_of
from mnemic.models import build_model
from mnemic.recipe import ConfigError, build
from mnemic.train.initialize import initialize_network
from mnemic.train.loop import TrainSettings, build_optimizer, set_learning_rate
from mnemic.train.optim.optimizers import OPTIMIZERS, optimizer_tensors_of, restore_optimizer
from mnemic.train.optim.parameter_groups import GradualUnfreezing, number_layers
from mnemic.train.optim.towards import StartingWeights
from mnemic.train.run import load_data

SIZES = {"vocab": 50, "max_length": 16, "classes": 2}
MODEL = {
    "width": 8,
    "encode": {"kind": "transformer", "stack": {"depth": 3, "attention": {"heads": 2}, "norm": "pre"}},
    "respond": {"kind": "classes"},
}


def network() -> Any:
    torch.manual_seed(0)
    return build_model(MODEL, SIZES)


def layer_names() -> dict[str, int]:
    model = network()
    layers = number_layers(model)
    return {name: layers[parameter] for name, parameter in model.named_parameters()}


def test_layers_are_numbered_from_the_embeddings_to_the_response() -> None:
    layers = layer_names()
    assert layers["encode.embeddings.tokens"] == layers["encode.embeddings.norm.weight"] == 0
    assert layers["encode.stack.blocks.0.feed.widen.bias"] == 1
    assert layers["encode.stack.blocks.2.feed.widen.bias"] == layers["encode.stack.norm.weight"] == 3
    assert layers["respond.out.weight"] == 4
    assert set(layers.values()) == set(range(5))


@pytest.mark.parametrize("kind", ["adamw", "lamb", "sgd"])
def test_each_layer_has_its_share_of_the_rate(kind: str) -> None:
    """Gradients of equal size move each layer as far as one with that rate alone."""
    settings = TrainSettings(rate=0.5, layer_rate=0.5, optimizer={"kind": kind})
    scaled, layers = network(), layer_names()
    optimizer = build_optimizer(scaled, settings)
    set_learning_rate(optimizer, 0.2)
    for parameter in scaled.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    for number in range(5):
        single = network()
        reference = build(
            OPTIMIZERS,
            settings.optimizer,
            parameters=list(single.parameters()),
            rate=0.2 * 0.5 ** (4 - number),
            runs=False,
        )
        for parameter in single.parameters():
            parameter.grad = torch.ones_like(parameter)
        reference.step()
        for name, parameter in single.named_parameters():
            if layers[name] == number:
                torch.testing.assert_close(scaled.get_parameter(name), parameter)


def test_one_more_layer_learns_every_second_epoch() -> None:
    model, layers = network(), layer_names()
    model.encode.embeddings.requires_grad_(False)  # train.frozen stays frozen
    unfreezing = GradualUnfreezing(model, 2)
    for step, lowest in {0: 4, 5: 4, 6: 3, 11: 3, 12: 2, 18: 1, 24: 1, 600: 1}.items():
        unfreezing.start_step(step, steps_per_epoch=3)
        learning = {layers[name] for name, parameter in model.named_parameters() if parameter.requires_grad}
        assert learning == set(range(lowest, 5)), step
    unfreezing.start_step(0, steps_per_epoch=3)
    unfreezing.unfreeze()
    assert not any(parameter.requires_grad for parameter in model.encode.embeddings.parameters())
    assert all(parameter.requires_grad for parameter in model.encode.stack.parameters())


def test_without_a_gradient_only_the_distance_to_the_start_shrinks() -> None:
    """By the rate times the strength, per step, whatever the optimizer."""
    weight = nn.Parameter(torch.tensor([[1.0, -2.0]], dtype=torch.float64))
    optimizer = build(OPTIMIZERS, {"kind": "adamw", "decay": 0.0}, parameters=[weight], rate=0.5, runs=False)
    StartingWeights(optimizer, 0.2)
    with torch.no_grad():
        weight += torch.tensor([[3.0, 4.0]])
    weight.grad = torch.zeros_like(weight)
    for step in range(1, 4):
        optimizer.step()
        distance = 0.9**step * torch.tensor([[3.0, 4.0]], dtype=torch.float64)
        torch.testing.assert_close(weight.detach(), torch.tensor([[1.0, -2.0]], dtype=torch.float64) + distance)


def test_sgd_ends_where_the_gradient_and_the_pull_balance() -> None:
    """Of (w - 5)² / 2 + λ(w - 1)² / 2 with λ = 3: at (5 + 3) / 4."""
    weight = nn.Parameter(torch.ones(1, dtype=torch.float64))
    optimizer = build(OPTIMIZERS, {"kind": "sgd"}, parameters=[weight], rate=0.01, runs=False)
    StartingWeights(optimizer, 3.0)
    for _ in range(2000):
        weight.grad = weight.detach() - 5
        optimizer.step()
    assert float(weight.detach()) == pytest.approx(
        2.0, abs=0.04
    )  # the step of the pull comes after that of the gradient


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_stored_starting_weights_go_on_pulling(kind: str) -> None:
    def learn(weight: nn.Parameter, optimizer: torch.optim.Optimizer, steps: int) -> None:
        for _ in range(steps):
            weight.grad = weight.detach() - 5
            optimizer.step()

    def build_one(weight: nn.Parameter) -> torch.optim.Optimizer:
        optimizer = build(OPTIMIZERS, {"kind": kind}, parameters=[weight], rate=0.1, runs=False)
        StartingWeights(optimizer, 0.5)
        return optimizer

    whole, stopped = (nn.Parameter(torch.ones(2, 2)) for _ in range(2))
    learn(whole, build_one(whole), 5)
    first = build_one(stopped)
    learn(stopped, first, 2)
    second = build_one(stopped)
    restore_optimizer(second, optimizer_tensors_of(first))
    learn(stopped, second, 3)
    assert torch.equal(whole, stopped)


ULMFIT = ["train.unfreeze=1", "train.layer_rate=0.4", "train.towards=0.3", 'train.schedule={kind="slanted"}']


def fine_tuned(folder: Path, *sets: str) -> dict[str, Any]:
    return tiny("classes", folder, "train.epochs=4", "train.save=3", "train.batch=32", "train.keep=last", *sets)


def test_a_stopped_run_unfreezes_as_if_it_had_gone_on(tmp_path: Path) -> None:
    folder = files("classes", tmp_path)
    recipe = fine_tuned(folder, *ULMFIT, 'train.optimizer={kind="lamb"}')
    whole = finish(recipe, tmp_path / "whole", device="cpu")
    for count in (2, 5):
        stop_after(count, recipe, tmp_path / "stopped", device="cpu")
    finish(recipe, tmp_path / "stopped", device="cpu")
    assert weights_in(tmp_path / "stopped") == weights_in(whole)


def test_the_first_epoch_trains_the_response_alone(tmp_path: Path) -> None:
    folder = files("classes", tmp_path)
    recipe = fine_tuned(folder, "train.unfreeze=1", "train.epochs=1")
    data = load_data(recipe)
    start = weights_of(initialize_network(recipe["model"], data.sizes, 0))
    end = weights_of(load_checkpoint(finish(recipe, tmp_path / "run", device="cpu")).network)
    changed = {name.split(".")[0] for name, weight in start.items() if not torch.equal(weight, end[name])}
    assert changed == {"respond"}


def test_a_strong_pull_keeps_weights_near_their_start(tmp_path: Path) -> None:
    folder = files("classes", tmp_path)
    distances = []
    for strength in (0.0, 100.0):
        recipe = fine_tuned(folder, f"train.towards={strength}", "train.epochs=2")
        start = weights_of(initialize_network(recipe["model"], load_data(recipe).sizes, 0))
        end = weights_of(load_checkpoint(finish(recipe, tmp_path / str(strength), device="cpu")).network)
        distances.append(sum(float((start[name] - end[name]).square().sum()) for name in start))
    assert distances[1] < 0.2 * distances[0]


@pytest.mark.parametrize("setting", ["unfreeze=-1", "layer_rate=0", "layer_rate=1.5", "towards=-1"])
def test_settings_out_of_range_are_refused(setting: str, tmp_path: Path) -> None:
    name, value = setting.split("=")
    with pytest.raises(ConfigError, match=f"train.{name}|train.layer_rate is .* and train.towards"):
        TrainSettings(**{name: int(value) if name == "unfreeze" else float(value)})
