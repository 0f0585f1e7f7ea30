"""Many runs as one program end where each would have ended alone."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from mnemic.checkpoint.folder import load_checkpoint
from mnemic.data.babi.batches import StoryDataset
from mnemic.data.contract import LoadedData
from mnemic.evaluate.error_rate import find_wrong_answers
from mnemic.models import MemoryNetwork
from mnemic.models.ensemble import StackedNetworks
from mnemic.objectives.answer import AnswerLoss
from mnemic.recipe import Recipe, load_recipe
from mnemic.reproduce.train_ensemble import (
    EnsembleStep,
    create_networks,
    find_wrong_answers_per_run,
    stack_networks,
    train_ensemble,
)
from mnemic.train.initialize import build_network
from mnemic.train.run import fit, load_data

SHORT = ["train.steps=15", "phases.0.train.steps=15", "train.validate=0", "train.batch=8"]
ADAMW = [
    'train.optimiser={kind="adamw"}',
    'train.clip={kind="norm"}',
    'phases.0.train.clip={kind="norm"}',
    'train.reduce="mean"',
]
CPU = torch.device("cpu")


def recipe_of(tasks: str = "[1]", sets: Sequence[str] = ()) -> Recipe:
    made = f'data={{kind="generated", tasks={tasks}, count=60}}'
    return load_recipe("memn2n", [made, *SHORT, "model.width=10", *sets])


def trained(
    recipe: Recipe, data: LoadedData[StoryDataset], seeds: Sequence[int], pools: Sequence[Tensor] | None = None
) -> tuple[list[MemoryNetwork], list[EnsembleStep]]:
    networks = create_networks(recipe, data, seeds)
    pools = pools or [torch.arange(len(data.train))] * len(seeds)
    return networks, list(
        train_ensemble(recipe, data, networks, seeds=seeds, rows_per_run=pools, device=CPU)
    )  # fmt: skip


def same_weights(one: nn.Module, other: nn.Module) -> None:
    for (name, mine), (also, theirs) in zip(one.named_parameters(), other.named_parameters(), strict=True):
        assert name == also
        torch.testing.assert_close(mine, theirs, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("sets", [[], ADAMW], ids=["sgd, spectral", "adamw, norm"])
def test_seeds_trained_as_one_are_seeds_trained_alone(sets: list[str]) -> None:
    """Both phases, with noise: weights, losses and norms."""
    recipe = recipe_of(sets=sets)
    data, seeds = load_data(recipe), [0, 3, 4]
    networks, steps = trained(recipe, data, seeds)
    assert [(w.phase.number, w.step.number) for w in steps] == [
        (phase, step) for phase in range(2) for step in range(1, 16)
    ]
    for run, seed in enumerate(seeds):
        (alone,), own = trained(recipe, data, [seed])
        same_weights(networks[run], alone)
        for many, one in zip(steps, own, strict=True):
            assert many.step.loss.shape == many.step.norm.shape == (3,)
            torch.testing.assert_close(many.step.loss[run], one.step.loss, atol=1e-4, rtol=1e-4)
            torch.testing.assert_close(many.step.norm[run], one.step.norm, atol=1e-3, rtol=1e-3)
            assert many.step.rate == one.step.rate
    started = create_networks(recipe, data, seeds)
    for before, after in zip(started, networks, strict=True):
        moved = (before.encode.tables[0] - after.encode.tables[0]).abs().max()
        assert moved > 0.01


def test_a_run_among_many_is_the_run_that_fit_trains(tmp_path: Path) -> None:
    recipe = recipe_of()
    networks, _ = trained(recipe, load_data(recipe), [2, 1])
    for _ in fit(recipe, tmp_path, seed=1):
        pass
    same_weights(networks[1], load_checkpoint(tmp_path).network)


def test_tasks_trained_as_one_are_tasks_trained_alone() -> None:
    """Each run draws from its own questions of one data set."""
    recipe = recipe_of("[1, 6, 15]")
    data, seeds = load_data(recipe), [0, 0, 7]
    pools = [(data.train.task == task).nonzero().squeeze(1) for task in (1, 6, 15)]
    assert len({len(pool) for pool in pools}) == 1
    networks, _ = trained(recipe, data, seeds, pools)
    for run in range(3):
        (alone,), _ = trained(recipe, data, [seeds[run]], [pools[run]])
        same_weights(networks[run], alone)
    apart = (networks[0].encode.tables[0] - networks[1].encode.tables[0]).abs().max()
    assert apart > 0.01


def test_errors_of_many_are_the_errors_of_each() -> None:
    recipe = recipe_of("[1, 6]")
    data = load_data(recipe)
    networks = create_networks(recipe, data, [0, 1, 2])
    rows = torch.stack([torch.randperm(len(data.test))[:40] for _ in networks])
    found = find_wrong_answers_per_run(networks, data.test, rows, CPU)
    assert found.shape == rows.shape
    for run, network in enumerate(networks):
        assert torch.equal(found[run], find_wrong_answers(network, data.test, rows[run]))
    alone = find_wrong_answers_per_run(networks[:1], data.test, rows[:1], CPU)
    assert torch.equal(alone, found[:1])


def test_networks_of_seeds_are_theirs_and_leave_the_dice() -> None:
    recipe = recipe_of()
    data = load_data(recipe)
    before = torch.get_rng_state()
    first, second = create_networks(recipe, data, [0, 5])
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(123)
    for mine, theirs in zip(
        second.parameters(), build_network(recipe["model"], data.sizes, 5).parameters(), strict=True
    ):
        assert torch.equal(mine, theirs)
    assert not torch.equal(first.encode.tables[0], second.encode.tables[0])


# The stack itself ------------------------------------------------------------------------------


@pytest.fixture
def few() -> tuple[list[MemoryNetwork], Any]:
    recipe = recipe_of()
    data = load_data(recipe)
    rows = torch.tensor([[0, 1, 2], [3, 4, 5]])
    rolls = torch.rand(2, 3, build_network(recipe["model"], data.sizes, 0).num_uniforms)
    return create_networks(recipe, data, [0, 1]), data.train.batch(rows, rolls)


def own_batch(batch: Any, run: int) -> Any:
    inputs = type(batch.inputs)(*(None if p is None else p[run] for p in batch.inputs))
    return type(batch)(inputs, batch.answers[run], batch.chain[run])


def test_the_gradient_of_the_sum_is_each_runs_own(few: tuple[list[MemoryNetwork], Any]) -> None:
    networks, batch = few
    many = StackedNetworks(networks)
    loss = many.map_networks(AnswerLoss(), batch)
    assert loss.total.shape == loss.num_targets.shape == (2,)
    assert loss.carried is None
    loss.total.sum().backward()
    for run, network in enumerate(networks):
        alone = AnswerLoss()(network, own_batch(batch, run))
        torch.testing.assert_close(loss.total[run], alone.total)
        alone.total.backward()
        for name, stack in zip(many.names, many.stacked, strict=True):
            gradient = dict(network.named_parameters())[name].grad
            torch.testing.assert_close(stack.grad[run], gradient, atol=1e-5, rtol=1e-4)


def test_weights_are_stacked_once_and_put_back(few: tuple[list[MemoryNetwork], Any]) -> None:
    networks, _ = few
    many = StackedNetworks(networks)
    assert many.names == [name for name, _ in networks[0].named_parameters()]  # tied ones once
    assert len(list(many.parameters())) == len(many.names)
    kept = [network.encode.tables[0].detach().clone() for network in networks]
    with torch.no_grad():
        for stack in many.stacked:
            stack[0] += 1
            stack[1] += 2
    for network, before in zip(networks, kept, strict=True):
        assert torch.equal(network.encode.tables[0], before)  # a copy until it is put back
    many.copy_weights_to(networks)
    for run, (network, before) in enumerate(zip(networks, kept, strict=True)):
        assert torch.equal(network.encode.tables[0], before + (run + 1))
        assert network.respond.table is network.encode.tables[-1]


def test_many_runs_train_and_rest_together(few: tuple[list[MemoryNetwork], Any]) -> None:
    """Noise is on in training and off in evaluation, for all runs."""
    networks, batch = few
    many = StackedNetworks(networks)
    plain = batch.inputs._replace(uniforms=None)
    for mode in (True, False):
        many.train(mode)
        scores = many(batch.inputs).logits
        for run, network in enumerate(networks):
            alone = network.train(mode)(own_batch(batch, run).inputs).logits
            torch.testing.assert_close(scores[run], alone)
    torch.testing.assert_close(scores, many(plain).logits)
    assert many.num_uniforms == networks[0].num_uniforms > 0


def test_only_networks_of_one_shape_go_together(few: tuple[list[MemoryNetwork], Any]) -> None:
    networks, _ = few
    recipe = recipe_of(sets=["model.width=12"])
    other = create_networks(recipe, load_data(recipe), [0])
    with pytest.raises(ValueError, match="only networks of one shape"):
        StackedNetworks([*networks, *other])
    assert stack_networks(networks[:1]) is networks[0]
