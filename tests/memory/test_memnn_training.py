"""MemNN's loss against the papers' equations in slow loops, and that it learns."""

import pytest
import torch
from memnn_slow import D, Slow
from memnn_slow import slots_read as chosen

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


def recipe_of(name: str, task: int, sets: list[str], count: int = 60) -> Recipe:
    made = f'data={{kind="generated", tasks=[{task}], count={count}, sentences=100}}'
    return load_recipe(name, [made, "train.validate=0", *sets])


def scaled(network: MemoryNetwork) -> MemoryNetwork:
    """Larger weights, so that some candidates are far enough apart to cost nothing."""
    with torch.no_grad():
        for weight in network.parameters():
            weight.mul_(3)
    return network


@pytest.mark.parametrize("name", ["memnn", "memnn-am-ng-nl"])
@pytest.mark.parametrize("task", [2, 7])
def test_the_loss_is_equations_6_to_8(name: str, task: int) -> None:
    """Over all wrong facts and all wrong answers, question by question; task 7 has many facts."""
    recipe = recipe_of(name, task, [f"model.width={D}"])
    data = load_data(recipe)
    network = scaled(create_networks(recipe, data, [0])[0])
    batch = data.train.batch(torch.arange(8))
    loss = RankingLoss(margin=0.3, facts=0.5)(network, batch)
    story, seen, query = network.encode_inputs(batch.inputs)
    total = 0.0
    for row in range(8):
        chain = [int(fact) for fact in batch.chain[row] if fact != IGNORE]
        assert chain
        facts = story[row, seen[row]].detach()
        slow = Slow(network.memory, facts, query[row, 0].detach())
        total += 0.5 * slow.loss(chain, 0.3)
        read = list(chain[: network.memory.hops])
        while network.memory.nothing is None and len(read) < network.memory.hops:
            read.append(read[-1])
        found = slow.joined(read, 3, 4, 1).detach()
        reading = Reading(found.view(1, 1, D), *[torch.zeros(1)] * 2)
        scores = network.respond(query, reading, story, seen)[0, 0].tolist()
        right = scores[int(batch.answers[row, 0])]
        total += sum(max(0.0, 0.3 - right + s) for s in scores) - 0.3
    assert loss.num_targets == 8
    torch.testing.assert_close(loss.total.item(), total, rtol=1e-4, atol=1e-4)


def test_a_lead_of_the_margin_costs_nothing() -> None:
    scores = torch.tensor([[1.0, 0.5, -1e30], [0.0, 0.25, 0.9]])
    lost = margin_loss(scores, torch.tensor([0, 2]), 0.5)
    torch.testing.assert_close(lost, torch.tensor([0.0, 0.0]))
    lost = margin_loss(scores, torch.tensor([1, 0]), 0.5)
    torch.testing.assert_close(lost, torch.tensor([1.0, 0.75 + 1.4]))


def test_an_answer_that_is_not_asked_for_costs_nothing() -> None:
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
        for part, weight in network.named_parameters():
            assert weight.grad is not None, part
            assert weight.grad.abs().sum() > 0, part


@pytest.mark.parametrize("name", ["memnn", "memnn-am-ng-nl"])
def test_many_runs_have_the_losses_and_reads_of_each(name: str) -> None:
    recipe = recipe_of(name, 2, [f"model.width={D}"])
    data = load_data(recipe)
    networks = create_networks(recipe, data, [0, 1, 2])
    rows = torch.arange(12).view(3, 4)
    many, batch = StackedNetworks(networks), data.train.batch(rows)
    together, output = many.map_networks(RankingLoss(), batch), many(batch.inputs)
    for run, network in enumerate(networks):
        own = data.train.batch(rows[run])
        alone, read = RankingLoss()(network, own), network(own.inputs).reading
        torch.testing.assert_close(together.total[run], alone.total)
        slots = read.weights.shape[-1]
        torch.testing.assert_close(output.reading.weights[run][..., :slots], read.weights)


# Learning --------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", [1, 2])
def test_a_tiny_memnn_learns_facts_and_answers(task: int) -> None:
    short = ["train.epochs=8", "train.schedule.every=4", "model.width=20", "train.rate=0.02"]
    recipe = recipe_of("memnn-am-ng-nl", task, [*short, "model.encode.most=1"], count=1000)
    data = load_data(recipe)
    networks = create_networks(recipe, data, [0])
    pools = [torch.arange(len(data.train))]
    cpu = torch.device("cpu")
    for _ in train_ensemble(recipe, data, networks, seeds=[0], rows_per_run=pools, device=cpu):
        pass
    assert compute_task_errors(networks[0], data.test)[task] < 10
    batch = data.test.batch(torch.arange(300))
    with torch.no_grad():
        output = networks[0].eval()(batch.inputs)
    gold = find_slots(batch.chain.unsqueeze(1), output.written.weights).squeeze(1).tolist()
    right = [hops == facts for (hops,), facts in zip(chosen(output.reading), gold)]
    assert sum(right) > 0.9 * len(right)
