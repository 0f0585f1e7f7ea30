"""Networks with rounded weights and states: the same network, but for the rounding."""

from pathlib import Path
from typing import Any

import pytest
import torch
from learn_runs import finish
from pretraining_runs import compute_unigram_loss, load_sequences, load_tiny_recipe
from torch import Tensor, nn

from mnemic.checkpoint.folder import load_checkpoint
from mnemic.objectives import OBJECTIVES
from mnemic.recipe import ConfigError, build
from mnemic.train import phases
from mnemic.train.initialize import build_network
from mnemic.train.rounded import RoundedNetwork

RECIPES = ["bert-pretrain", "electra-pretrain", "xlnet-pretrain"]


def make_case(name: str) -> tuple[Any, Any, Any]:
    """Build the network and objective of a recipe, and a batch."""
    recipe = load_tiny_recipe(name, *(["model.encode.stack.heads=4"] if "xlnet" in name else []))
    train, _ = load_sequences(format=recipe["data"]["format"], folder=recipe["data"]["folder"])
    network = build_network(recipe["model"], {"vocab": 200, "max_length": 32}, 0)
    return network, build(OBJECTIVES, recipe["objective"], network=network), train.batch(torch.arange(8))


def compute_gradients(network: nn.Module, runner: Any, objective: Any, batch: Any) -> tuple[Tensor, list[Tensor]]:
    torch.manual_seed(0)
    network.zero_grad()
    loss = objective(runner, batch)
    loss.total.backward()
    assert all(weight.grad is not None for weight in network.parameters())
    return loss.total.detach(), [weight.grad.clone() for weight in network.parameters() if weight.grad is not None]


@pytest.mark.parametrize("name", RECIPES)
def test_without_rounding_it_is_the_same_network(name: str) -> None:
    """Loss and gradients have the same bits, those of shared word vectors, too."""
    network, objective, batch = make_case(name)
    loss, gradients = compute_gradients(network, network, objective, batch)
    again, gradients_again = compute_gradients(network, RoundedNetwork(network, torch.float32), objective, batch)
    assert torch.equal(loss, again)
    assert all(map(torch.equal, gradients, gradients_again))


@pytest.mark.parametrize("name", RECIPES)
def test_rounding_changes_little(name: str) -> None:
    """Weights and gradients stay in float32; gradients point where they did."""
    network, objective, batch = make_case(name)
    loss, gradients = compute_gradients(network, network, objective, batch)
    rounded, rounded_gradients = compute_gradients(network, RoundedNetwork(network), objective, batch)
    assert {gradient.dtype for gradient in rounded_gradients} == {torch.float32}
    assert {weight.dtype for weight in network.parameters()} == {torch.float32}
    torch.testing.assert_close(rounded, loss, rtol=0.02, atol=0)
    flat, rounded_flat = (torch.cat([g.flatten() for g in group]) for group in (gradients, rounded_gradients))
    assert not torch.equal(flat, rounded_flat)
    assert torch.cosine_similarity(flat, rounded_flat, dim=0) > 0.98


def test_a_run_learns_with_rounded_states(tmp_path: Path) -> None:
    """Small steps are not rounded away: the weights themselves are float32."""
    sets = ["train.steps=80", "train.log=80", "train.matmul=bf16-states"]
    finish(load_tiny_recipe("bert-pretrain", *sets), tmp_path, device="cpu")
    checkpoint = load_checkpoint(tmp_path)
    assert checkpoint.progress.history[-1]["figures"]["loss"] < compute_unigram_loss()
    weights = torch.cat([weight.flatten() for weight in checkpoint.network.parameters()])
    assert (weights.bfloat16().float() != weights).double().mean() > 0.9


def test_several_processes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phases, "world_size", lambda: 2)
    with pytest.raises(ConfigError, match="for one run in one process"):
        finish(load_tiny_recipe("bert-pretrain", "train.steps=1", "train.matmul=bf16-states"), tmp_path, device="cpu")
