"""MemNN's loss against the papers' equations in plain loops, and learning."""

import pytest
import torch
from memnn_slow import D, Slow, slots_read

from mnemic.evaluate.error_rate import compute_task_errors
from mnemic.memory.append import find_slots
from mnemic.memory.contract import Reading
from mnemic.models import IGNORE, MemoryNetwork
from mnemic.models.ensemble import StackedNetworks
from mnemic.objectives.ranking import RankingLoss, margin_loss
from mnemic.recipe import Recipe, load_recipe
from mnemic.reproduce.train_ensemble import create_networks, train_ensemble
from mnemic.train.run import load_data

# The loss --------------------------------------------------------------------------------------


def recipe_of(name: str, task: int, overrides: list[str], count: int = 60) -> Recipe:
    data_override = f'data={{kind="generated", tasks=[{task}], count={count}, sentences=100}}'
    return load_recipe(name, [data_override, "train.validate=0", *overrides])


def scale_weights(network: MemoryNetwork) -> MemoryNetwork:
    """Enlarge the weights, so that some candidates exceed the margin and cost nothing."""
    with torch.no_grad():
        for weight in network.parameters():
            weight.mul_(3)
    return network


@pytest.mark.parametrize("name", ["memnn", "memnn-am-ng-nl"])
@pytest.mark.parametrize("task", [2, 7])
def test_the_loss_is_equations_6_to_8(name: str, task: int) -> None:
    """Over all wrong facts and answers, question by question; task 7 has many facts."""
    recipe = recipe_of(name, task, [f"model.width={D}"])
    data = load_data(recipe)
    network = scale_weights(create_networks(recipe, data, [0])[0])
    batch = data.train.batch(torch.arange(8))
    loss = RankingLoss(margin=0.3, facts=0.5)(network, batch)
    story, mask, query = network.encode_inputs(batch.inputs)
    total = 0.0
    for row in range(8):
        chain = [int(fact) for fact in batch.chain[row] if fact != IGNORE]
        assert chain
        facts = story[row, mask[row]].detach()
        reference = Slow(network.memory, facts, query[row, 0].detach())
        total += 0.5 * reference.loss(chain, 0.3)
        slots = list(chain[: network.memory.hops])
        while network.memory.nothing is None and len(slots) < network.memory.hops:
            slots.append(slots[-1])
        output = reference.joined(slots, 3, 4, 1).detach()
        reading = Reading(output.view(1, 1, D), *[torch.zeros(1)] * 2)
        logits = network.respond(query, reading, story, mask)[0, 0].tolist()
        right_logit = logits[int(batch.answers[row, 0])]
        total += sum(max(0.0, 0.3 - right_logit + logit) for logit in logits) - 0.3
    assert loss.num_targets == 8
    torch.testing.assert_close(loss.total.item(), total, rtol=1e-4, atol=1e-4)


def test_a_lead_of_the_margin_costs_nothing() -> None:
    scores = torch.tensor([[1.0, 0.5, -1e30], [0.0, 0.25, 0.9]])
    losses = margin_loss(scores, torch.tensor([0, 2]), 0.5)
    torch.testing.assert_close(losses, torch.tensor([0.0, 0.0]))
    losses = margin_loss(scores, torch.tensor([1, 0]), 0.5)
    torch.testing.assert_close(losses, torch.tensor([1.0, 0.75 + 1.4]))


def test_ignored_answers_cost_nothing() -> None:
    recipe = recipe_of("memnn", 1, [f"model.width={D}"])
    data = load_data(recipe)
    network = create_networks(recipe, data, [0])[0]
    batch = data.train.batch(torch.arange(4))
    blank = batch._replace(answers=torch.full_like(batch.answers, IGNORE), chain=torch.full_like(batch.chain, IGNORE))
    loss = RankingLoss()(network, blank)
    assert loss.total == 0
    assert loss.num_targets == 0


def test_every_weight_learns_from_the_loss() -> None:
    for name in ("memnn", "memnn-am-ng-nl"):
        recipe = recipe_of(name, 2, [f"model.width={D}"])
        data = load_data(recipe)
        network = create_networks(recipe, data, [0])[0]
        RankingLoss()(network, data.train.batch(torch.arange(20))).total.backward()
        for weight_name, weight in network.named_parameters():
            assert weight.grad is not None, weight_name
            assert weight.grad.abs().sum() > 0, weight_name


@pytest.mark.parametrize("name", ["memnn", "memnn-am-ng-nl"])
def test_many_runs_have_the_losses_and_reads_of_each(name: str) -> None:
    recipe = recipe_of(name, 2, [f"model.width={D}"])
    data = load_data(recipe)
    networks = create_networks(recipe, data, [0, 1, 2])
    rows = torch.arange(12).view(3, 4)
    stacked, batch = StackedNetworks(networks), data.train.batch(rows)
    together, output = stacked.map_networks(RankingLoss(), batch), stacked(batch.inputs)
    for run, network in enumerate(networks):
        run_batch = data.train.batch(rows[run])
        alone, reading = RankingLoss()(network, run_batch), network(run_batch.inputs).reading
        torch.testing.assert_close(together.total[run], alone.total)
        slots = reading.weights.shape[-1]
        torch.testing.assert_close(output.reading.weights[run][..., :slots], reading.weights)


# Learning --------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", [1, 2])
def test_a_tiny_memnn_learns_facts_and_answers(task: int) -> None:
    overrides = ["train.epochs=6", "train.schedule.every=3", "model.width=20", "train.rate=0.02"]
    recipe = recipe_of("memnn-am-ng-nl", task, [*overrides, "model.encode.most=1"], count=1000)
    data = load_data(recipe)
    networks = create_networks(recipe, data, [0])
    rows_per_run = [torch.arange(len(data.train))]
    cpu = torch.device("cpu")
    for _ in train_ensemble(recipe, data, networks, seeds=[0], rows_per_run=rows_per_run, device=cpu):
        pass
    assert compute_task_errors(networks[0], data.test)[task] < 10
    batch = data.test.batch(torch.arange(300))
    with torch.no_grad():
        output = networks[0].eval()(batch.inputs)
    fact_slots = find_slots(batch.chain.unsqueeze(1), output.written.weights).squeeze(1).tolist()
    is_right = [hops == facts for (hops,), facts in zip(slots_read(output.reading), fact_slots)]
    assert sum(is_right) > 0.9 * len(is_right)
