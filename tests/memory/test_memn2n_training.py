"""MemN2N in training: its noise counted, its places set by the data, and that it learns."""

import re
from collections import Counter
from itertools import combinations
from math import ceil, comb, sqrt
from typing import Any

import pytest
import torch
from story_runs import trained
from torch import Tensor

from mnemic.data.babi import dataset
from mnemic.data.babi.dataset import GeneratedStories
from mnemic.evaluate.error_rate import compute_task_errors
from mnemic.memory.memn2n import MemN2N, shift_ages
from mnemic.models import build_model
from mnemic.recipe import load_recipe
from mnemic.train.run import load_data

# Random noise ----------------------------------------------------------------------------------


def rolled(length: int, noise: float, count: int, slots: int = 50) -> Tensor:
    """The ages of ``length`` slots, oldest first, after ``count`` rolls."""
    memory = MemN2N(2, slots=slots, noise=noise)
    dice = torch.Generator().manual_seed(length)
    rolls = torch.rand(count, memory.num_uniforms, generator=dice)
    ages = torch.arange(length - 1, -1, -1).expand(count, -1)
    return shift_ages(ages, torch.ones(count, length, dtype=torch.bool), rolls, noise)


@pytest.mark.parametrize("length", [1, 2, 9, 10, 11, 37, 50])
def test_shifted_ages_stay_sorted_distinct_and_in_bounds(length: int) -> None:
    ages = rolled(length, 0.1, 2000)
    assert (ages[:, :-1] > ages[:, 1:]).all()
    assert ages.min() >= 0
    assert ages.max() == length + ceil(length / 10) - 1  # reached, and never passed


def test_at_most_a_tenth_is_added_at_every_length() -> None:
    """Rolls that keep the farthest places show how many blanks there can be."""
    for length in range(1, 51):
        farthest = torch.linspace(0.9, 0.1, 55)
        rolls = torch.cat([torch.tensor([0.999999]), farthest]).unsqueeze(0)
        ages = torch.arange(length).unsqueeze(0)
        found = shift_ages(ages, torch.ones(1, length, dtype=torch.bool), rolls, 0.1)
        assert found.max().item() == length - 1 + -(-length // 10)


def test_every_set_of_gaps_is_equally_likely() -> None:
    """8 slots, 0 to 2 blanks, 20,000 rolls: each outcome as often as the definition says."""
    length, most, count = 8, 2, 20_000
    chance: Counter[tuple[int, ...]] = Counter()
    for blanks in range(most + 1):
        for kept in combinations(range(length + blanks), length):
            chance[kept] += 1 / (most + 1) / comb(length + blanks, length)  # type: ignore[assignment]
    ages = rolled(length, 0.25, count, slots=length)
    seen = Counter(tuple(sorted(row)) for row in ages.tolist())
    assert set(seen) <= set(chance)
    off = sum((seen[kept] - count * p) ** 2 / (count * p) for kept, p in chance.items())
    freedom = len(chance) - 1
    assert abs(off - freedom) < 5 * sqrt(2 * freedom)  # chi-square: mean and five deviations


def test_the_number_of_blanks_is_uniform() -> None:
    """Seen where the farthest places are kept, so that the oldest age tells the blanks."""
    length, most = 40, 4
    farthest = torch.linspace(0.9, 0.1, 55).expand(20_000, -1)
    first = torch.rand(20_000, 1, generator=torch.Generator().manual_seed(0))
    ages = torch.arange(length).expand(20_000, -1)
    mask = torch.ones(20_000, length, dtype=torch.bool)
    found = shift_ages(ages, mask, torch.cat([first, farthest], 1), 0.1)
    blanks = (found.max(1).values - (length - 1)).bincount(minlength=most + 1)
    assert len(blanks) == most + 1
    assert (blanks / 20_000 - 1 / (most + 1)).abs().max() < 0.015


def test_rows_of_different_lengths_are_shifted_each_by_its_own() -> None:
    mask = torch.tensor([[True] * 20, [False] * 15 + [True] * 5, [False] * 20])
    ages = (mask.flip(1).long().cumsum(1).flip(1) - 1).clamp(min=0)
    dice = torch.Generator().manual_seed(0)
    tops = []
    for _ in range(200):
        found = shift_ages(ages, mask, torch.rand(3, 56, generator=dice), 0.1)
        for row in range(3):
            real = found[row, mask[row]].tolist()
            assert real == sorted(set(real), reverse=True)
        tops.append((found[0, mask[0]].max().item(), found[1, mask[1]].max().item()))
    assert max(top for top, _ in tops) == 21
    assert max(top for _, top in tops) == 5


def test_noise_moves_ages_only_and_never_hides_a_slot() -> None:
    """With rolls, in training, another time is read; the oldest time is the end of the table."""
    memory = MemN2N(4, hops=1, slots=5, noise=1.0).train()
    with torch.no_grad():
        for table in memory.time:
            table.copy_(torch.arange(5.0).unsqueeze(1).expand(5, 4))
            table.div_(memory.last)  # undo the weight of the last place: time = age
    states = torch.zeros(300, 3, 2, 4)
    state = memory.write(memory.empty(300, states), states, states[:, :, 0, 0] == 0).state
    still = memory.add_time(state, None)[0][..., 0]
    torch.testing.assert_close(still, torch.tensor([2.0, 1.0, 0.0]).expand(300, -1))
    moved = memory.add_time(state, torch.rand(300, memory.num_uniforms))[0][..., 0]
    assert (moved >= still - 1e-5).all()
    assert (moved.max(1).values > 2.5).float().mean() > 0.5
    assert moved.max() <= 4 + 1e-5  # 3 sentences, up to 3 blanks, but only 5 times
    assert torch.equal(memory.eval().add_time(state, torch.rand(300, memory.num_uniforms))[0][..., 0], still)


@pytest.mark.parametrize("options", [{"noise": 0.0}, {"time": False}])
def test_nothing_is_rolled_for_nothing(options: dict[str, Any]) -> None:
    assert MemN2N(4, **options).num_uniforms == 0
    assert MemN2N(4, slots=50, noise=0.1).num_uniforms == 56  # blanks, and a key for each of 55 places


# With the data ---------------------------------------------------------------------------------


def test_the_longest_text_of_the_data_set_sets_the_places() -> None:
    """J is one more than the longest text of training, validation and test: the time's place."""
    data = GeneratedStories(count=40, tasks=[1, 5]).load()
    texts: set[str] = set()
    for task in (1, 5):
        for count, seed in ((40, 0), (dataset.NUM_TEST_QUESTIONS, 1)):
            for example in dataset.generate_examples(task, count, seed):
                texts.update([*example.sentences, example.question])
    longest = max(len(re.findall(r"\w+", text)) for text in texts)
    assert data.sizes["max_length"] == longest + 1
    model = load_recipe("memn2n")["model"]
    network = build_model(model, data.sizes)
    assert network.encode.max_length == longest + 1
    k = torch.arange(1, 21)
    expected = 1 + 4 * (k - 10.5) * ((longest + 1) - (longest + 2) / 2) / (20 * (longest + 1))
    torch.testing.assert_close(network.memory.last, expected)


def test_a_tiny_memn2n_learns_one_supporting_fact() -> None:
    """The first of up to five restarts that fits its training set answers 90 % of unseen ones."""
    made = 'data={kind="generated", tasks=[1], count=1000}'
    short = ["phases.0.train.epochs=5", "train.epochs=15", "train.schedule.every=5"]
    recipe = load_recipe("memn2n", [made, *short, "model.memory.hops=1"])
    data = load_data(recipe)
    for seed in range(5):
        network = trained(recipe, data, seed)
        if compute_task_errors(network, data.train)[1] < 5:
            break
    assert compute_task_errors(network, data.test)[1] < 10


@pytest.mark.slow
def test_two_supporting_facts_need_more_than_one_hop() -> None:
    made = 'data={kind="generated", tasks=[2], count=1000}'
    short = ["phases.0.train.epochs=20", "train.epochs=15", "train.schedule.every=5"]
    errors = {}
    for hops in (1, 3):
        recipe = load_recipe("memn2n", [made, *short, f"model.memory.hops={hops}"])
        data = load_data(recipe)
        errors[hops] = compute_task_errors(trained(recipe, data, 0), data.test)[2]
    assert errors[1] > 50  # six places: 83 % by chance
    assert errors[3] < errors[1] - 15
