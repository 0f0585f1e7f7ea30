"""The complete slot-rewriting network: recipe, stacked runs, the cost of steps, learning."""

from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from mnemic.models import IGNORE, MemoryNetwork, StoryInputs, build_model
from mnemic.models.ensemble import StackedNetworks
from mnemic.objectives.answer import AnswerAndStepsLoss, AnswerLoss
from mnemic.recipe import load_recipe
from mnemic.train.phases import read_phases

VOCAB = 12
MODEL = {
    "width": 16,
    "encode": {"kind": "masked-bag"},
    "memory": {"kind": "slot-rewriting", "steps": 3, "heads": 4},
    "respond": {"kind": "word"},
}


class Batch(NamedTuple):
    """The part of a batch that objectives read."""

    inputs: StoryInputs
    answers: Tensor  # b m


def network_of(seed: int = 0, **memory: Any) -> MemoryNetwork:
    torch.manual_seed(seed)
    return build_model({**MODEL, "memory": MODEL["memory"] | memory}, {"vocab": VOCAB, "max_length": 6})


def inputs_of(batch: int = 4, seed: int = 0) -> StoryInputs:
    generator = torch.Generator().manual_seed(seed)
    texts = torch.randint(1, VOCAB, (7, 5), generator=generator)
    mask = torch.arange(5) < torch.randint(1, 6, (7, 1), generator=generator)
    story = torch.randint(-1, 7, (batch, 8), generator=generator)  # padding anywhere
    return StoryInputs(texts * mask, mask, story, torch.randint(7, (batch, 1), generator=generator))


def answers_of(batch: int = 4) -> Tensor:
    return torch.randint(1, VOCAB, (batch, 1), generator=torch.Generator().manual_seed(3))


def test_the_recipe_trains_all_tasks_with_a_cost_of_steps() -> None:
    recipe = load_recipe("slot-rewriting")
    network = build_model(recipe["model"], {"vocab": 178, "max_length": 12})
    assert recipe["data"]["sentences"] == network.memory.num_slots
    assert recipe["objective"]["kind"] == "answer+steps"
    assert "tasks" not in recipe["data"]
    settings = read_phases(recipe)[0].settings
    # As many steps for 1k as for 10k questions per task, and an evaluation at the same steps.
    steps = [settings.total_steps(20 * questions // settings.batch) for questions in (900, 9000)]
    assert steps[0] == steps[1] == settings.steps
    assert [step for step in range(1, 4001) if settings.evaluates_at(step, 70)] == [2000, 4000]


def test_every_weight_learns() -> None:
    network = network_of().train()
    network(inputs_of()).logits.square().sum().backward()
    for name, weight in network.named_parameters():
        assert weight.grad is not None, name
        assert weight.grad.abs().sum() > 0, name


def test_stacked_networks_equal_single_networks() -> None:
    """Losses and gradients of runs trained as one are those of each alone."""
    networks, inputs = [network_of(seed) for seed in range(3)], [inputs_of(seed=seed) for seed in range(3)]
    stacked = StoryInputs(*(torch.stack(field) for field in list(zip(*inputs))[:4]))
    objective, group = AnswerAndStepsLoss(cost=0.1), StackedNetworks(networks)
    together = group.map_networks(objective, Batch(stacked, answers_of().expand(3, -1, -1)), None)
    together.total.sum().backward()
    gradients = {name: stack.grad for name, stack in zip(group.names, group.stacked)}
    for run, (network, run_inputs) in enumerate(zip(networks, inputs)):
        alone = objective(network, Batch(run_inputs, answers_of()))
        torch.testing.assert_close(together.total[run], alone.total)
        alone.total.backward()
        for name, weight in network.named_parameters():
            torch.testing.assert_close(gradients[name][run], weight.grad, atol=1e-5, rtol=1e-4)


# The cost of steps -----------------------------------------------------------------------------


def test_each_question_costs_its_expected_steps() -> None:
    network, batch = network_of(), Batch(inputs_of(), answers_of())
    batch.answers[1] = IGNORE
    plain, costly = AnswerLoss()(network, batch), AnswerAndStepsLoss(cost=0.5)(network, batch)
    steps = network(batch.inputs).reading.steps
    torch.testing.assert_close(costly.total - plain.total, 0.5 * steps[[0, 2, 3]].sum())
    assert costly.num_targets == plain.num_targets == 3


def test_only_a_memory_with_a_learned_stop_can_be_charged() -> None:
    batch = Batch(inputs_of(), answers_of())
    with pytest.raises(ValueError, match="learned stop, such as slot-rewriting"):
        AnswerAndStepsLoss()(network_of(stop=False), batch)
    with pytest.raises(ValueError, match="0 or more"):
        AnswerAndStepsLoss(cost=-1.0)


# Learning --------------------------------------------------------------------------------------

NUM_NAMES, NUM_PLACES = 4, 4


def make_walks(batch: int, generator: torch.Generator) -> Batch:
    """Make stories of "NAME PLACE": where is the name now?"""
    names = torch.randint(NUM_NAMES, (batch, 5), generator=generator)
    places = torch.randint(NUM_PLACES, (batch, 5), generator=generator)
    asked = names[:, :1]  # is in the story
    texts = torch.cartesian_prod(torch.arange(NUM_NAMES), torch.arange(NUM_PLACES)) + torch.tensor([1, 1 + NUM_NAMES])
    questions = torch.stack([torch.arange(NUM_NAMES) + 1, torch.zeros(NUM_NAMES, dtype=torch.long)], 1)
    texts = torch.cat([texts, questions])
    last = torch.where(names == asked, torch.arange(5), -1).amax(1, keepdim=True)
    story = names * NUM_PLACES + places
    inputs = StoryInputs(texts, texts > 0, story, NUM_NAMES * NUM_PLACES + asked)
    return Batch(inputs, places.gather(1, last) + 1 + NUM_NAMES)


def test_it_learns_the_last_place_and_to_stop_after_the_one_read_that_finds_it() -> None:
    network, generator = network_of(), torch.Generator().manual_seed(1)
    optimizer, objective = torch.optim.Adam(network.parameters(), lr=0.01), AnswerAndStepsLoss(cost=0.1)
    test = make_walks(500, torch.Generator().manual_seed(2))
    steps_before = network(test.inputs).reading.steps.mean().item()
    for _ in range(100):
        loss = objective(network, make_walks(64, generator))
        optimizer.zero_grad()
        (loss.total / loss.num_targets).backward()
        optimizer.step()
    with torch.no_grad():
        output = network.eval()(test.inputs)
    assert (output.logits.argmax(-1) == test.answers).float().mean() > 0.95
    assert output.reading.steps.mean() < 1.2 < 2 < steps_before
