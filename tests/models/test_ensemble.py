"""Many runs trained as one program end with the weights they would have alone."""

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

SHORT_RUN = ["train.steps=15", "phases.0.train.steps=15", "train.validate=0", "train.batch=8"]
ADAMW = [
    'train.optimiser={kind="adamw"}',
    'train.clip={kind="norm"}',
    'phases.0.train.clip={kind="norm"}',
    'train.reduce="mean"',
]
CPU = torch.device("cpu")


def make_recipe(tasks: str = "[1]", overrides: Sequence[str] = ()) -> Recipe:
    data_override = f'data={{kind="generated", tasks={tasks}, count=60}}'
    return load_recipe("memn2n", [data_override, *SHORT_RUN, "model.width=10", *overrides])


def train_runs(
    recipe: Recipe, data: LoadedData[StoryDataset], seeds: Sequence[int], rows_per_run: Sequence[Tensor] | None = None
) -> tuple[list[MemoryNetwork], list[EnsembleStep]]:
    networks = create_networks(recipe, data, seeds)
    rows_per_run = rows_per_run or [torch.arange(len(data.train))] * len(seeds)
    return networks, list(
        train_ensemble(recipe, data, networks, seeds=seeds, rows_per_run=rows_per_run, device=CPU)
    )  # fmt: skip


def assert_same_weights(first: nn.Module, second: nn.Module) -> None:
    for (name, first_weight), (second_name, second_weight) in zip(
        first.named_parameters(), second.named_parameters(), strict=True
    ):
        assert name == second_name
        torch.testing.assert_close(first_weight, second_weight, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("overrides", [[], ADAMW], ids=["sgd, spectral", "adamw, norm"])
def test_seeds_trained_as_one_are_seeds_trained_alone(overrides: list[str]) -> None:
    """Both phases, with noise: weights, losses and gradient norms."""
    recipe = make_recipe(overrides=overrides)
    data, seeds = load_data(recipe), [0, 3, 4]
    networks, steps = train_runs(recipe, data, seeds)
    assert [(report.phase.number, report.step.number) for report in steps] == [
        (phase, step) for phase in range(2) for step in range(1, 16)
    ]
    for run, seed in enumerate(seeds):
        (alone,), steps_alone = train_runs(recipe, data, [seed])
        assert_same_weights(networks[run], alone)
        for together, single in zip(steps, steps_alone, strict=True):
            assert together.step.loss.shape == together.step.norm.shape == (3,)
            torch.testing.assert_close(together.step.loss[run], single.step.loss, atol=1e-4, rtol=1e-4)
            torch.testing.assert_close(together.step.norm[run], single.step.norm, atol=1e-3, rtol=1e-3)
            assert together.step.rate == single.step.rate
    initial_networks = create_networks(recipe, data, seeds)
    for before, after in zip(initial_networks, networks, strict=True):
        change = (before.encode.tables[0] - after.encode.tables[0]).abs().max()
        assert change > 0.01


def test_a_run_among_many_is_the_run_that_fit_trains(tmp_path: Path) -> None:
    recipe = make_recipe()
    networks, _ = train_runs(recipe, load_data(recipe), [2, 1])
    for _ in fit(recipe, tmp_path, seed=1):
        pass
    assert_same_weights(networks[1], load_checkpoint(tmp_path).network)


def test_tasks_trained_as_one_are_tasks_trained_alone() -> None:
    """Each run samples from its task's questions of one dataset."""
    recipe = make_recipe("[1, 6, 15]")
    data, seeds = load_data(recipe), [0, 0, 7]
    rows_per_run = [(data.train.task == task).nonzero().squeeze(1) for task in (1, 6, 15)]
    assert len({len(rows) for rows in rows_per_run}) == 1
    networks, _ = train_runs(recipe, data, seeds, rows_per_run)
    for run in range(3):
        (alone,), _ = train_runs(recipe, data, [seeds[run]], [rows_per_run[run]])
        assert_same_weights(networks[run], alone)
    difference = (networks[0].encode.tables[0] - networks[1].encode.tables[0]).abs().max()
    assert difference > 0.01


def test_errors_of_many_are_the_errors_of_each() -> None:
    recipe = make_recipe("[1, 6]")
    data = load_data(recipe)
    networks = create_networks(recipe, data, [0, 1, 2])
    rows = torch.stack([torch.randperm(len(data.test))[:40] for _ in networks])
    wrong = find_wrong_answers_per_run(networks, data.test, rows, CPU)
    assert wrong.shape == rows.shape
    for run, network in enumerate(networks):
        assert torch.equal(wrong[run], find_wrong_answers(network, data.test, rows[run]))
    alone = find_wrong_answers_per_run(networks[:1], data.test, rows[:1], CPU)
    assert torch.equal(alone, wrong[:1])


def test_networks_depend_only_on_their_seed_and_keep_the_rng_state() -> None:
    recipe = make_recipe()
    data = load_data(recipe)
    before = torch.get_rng_state()
    first, second = create_networks(recipe, data, [0, 5])
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(123)
    for weight, expected in zip(
        second.parameters(), build_network(recipe["model"], data.sizes, 5).parameters(), strict=True
    ):
        assert torch.equal(weight, expected)
    assert not torch.equal(first.encode.tables[0], second.encode.tables[0])


# The stack itself ------------------------------------------------------------------------------


@pytest.fixture
def stacked_pair() -> tuple[list[MemoryNetwork], Any]:
    recipe = make_recipe()
    data = load_data(recipe)
    rows = torch.tensor([[0, 1, 2], [3, 4, 5]])
    uniforms = torch.rand(2, 3, build_network(recipe["model"], data.sizes, 0).num_uniforms)
    return create_networks(recipe, data, [0, 1]), data.train.batch(rows, uniforms)


def slice_run(batch: Any, run: int) -> Any:
    inputs = type(batch.inputs)(*(None if field is None else field[run] for field in batch.inputs))
    return type(batch)(inputs, batch.answers[run], batch.chain[run])


def test_the_gradient_of_the_sum_is_each_runs_own(stacked_pair: tuple[list[MemoryNetwork], Any]) -> None:
    networks, batch = stacked_pair
    stacked = StackedNetworks(networks)
    loss = stacked.map_networks(AnswerLoss(), batch)
    assert loss.total.shape == loss.num_targets.shape == (2,)
    assert loss.carried is None
    loss.total.sum().backward()
    for run, network in enumerate(networks):
        alone = AnswerLoss()(network, slice_run(batch, run))
        torch.testing.assert_close(loss.total[run], alone.total)
        alone.total.backward()
        for name, stacked_weight in zip(stacked.names, stacked.stacked, strict=True):
            gradient = dict(network.named_parameters())[name].grad
            torch.testing.assert_close(stacked_weight.grad[run], gradient, atol=1e-5, rtol=1e-4)


def test_weights_are_stacked_once_and_put_back(stacked_pair: tuple[list[MemoryNetwork], Any]) -> None:
    networks, _ = stacked_pair
    stacked = StackedNetworks(networks)
    assert stacked.names == [name for name, _ in networks[0].named_parameters()]  # tied ones once
    assert len(list(stacked.parameters())) == len(stacked.names)
    originals = [network.encode.tables[0].detach().clone() for network in networks]
    with torch.no_grad():
        for stacked_weight in stacked.stacked:
            stacked_weight[0] += 1
            stacked_weight[1] += 2
    for network, original in zip(networks, originals, strict=True):
        assert torch.equal(network.encode.tables[0], original)  # unchanged until it is copied back
    stacked.copy_weights_to(networks)
    for run, (network, original) in enumerate(zip(networks, originals, strict=True)):
        assert torch.equal(network.encode.tables[0], original + (run + 1))
        assert network.respond.table is network.encode.tables[-1]


def test_stacked_networks_switch_between_training_and_evaluation(stacked_pair: tuple[list[MemoryNetwork], Any]) -> None:
    """Noise is on in training and off in evaluation, for all runs."""
    networks, batch = stacked_pair
    stacked = StackedNetworks(networks)
    without_uniforms = batch.inputs._replace(uniforms=None)
    for mode in (True, False):
        stacked.train(mode)
        logits = stacked(batch.inputs).logits
        for run, network in enumerate(networks):
            alone = network.train(mode)(slice_run(batch, run).inputs).logits
            torch.testing.assert_close(logits[run], alone)
    torch.testing.assert_close(logits, stacked(without_uniforms).logits)
    assert stacked.num_uniforms == networks[0].num_uniforms > 0


def test_only_networks_of_one_shape_go_together(stacked_pair: tuple[list[MemoryNetwork], Any]) -> None:
    networks, _ = stacked_pair
    recipe = make_recipe(overrides=["model.width=12"])
    wider = create_networks(recipe, load_data(recipe), [0])
    with pytest.raises(ValueError, match="only networks of one shape"):
        StackedNetworks([*networks, *wider])
    assert stack_networks(networks[:1]) is networks[0]
