"""MemN2N in training: random noise on ages, sizes set by the data, and learning."""

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


def sample_shifted_ages(length: int, noise: float, count: int, slots: int = 50) -> Tensor:
    """Return ages of ``length`` slots, oldest first, for ``count`` rows of uniforms."""
    memory = MemN2N(2, slots=slots, noise=noise)
    generator = torch.Generator().manual_seed(length)
    uniforms = torch.rand(count, memory.num_uniforms, generator=generator)
    ages = torch.arange(length - 1, -1, -1).expand(count, -1)
    return shift_ages(ages, torch.ones(count, length, dtype=torch.bool), uniforms, noise)


@pytest.mark.parametrize("length", [1, 2, 9, 10, 11, 37, 50])
def test_shifted_ages_stay_sorted_distinct_and_in_bounds(length: int) -> None:
    ages = sample_shifted_ages(length, 0.1, 2000)
    assert (ages[:, :-1] > ages[:, 1:]).all()
    assert ages.min() >= 0
    assert ages.max() == length + ceil(length / 10) - 1  # reached, and never exceeded


def test_at_most_a_tenth_is_added_at_every_length() -> None:
    """Uniforms that select the farthest positions show the maximum number of blanks."""
    for length in range(1, 51):
        farthest = torch.linspace(0.9, 0.1, 55)
        uniforms = torch.cat([torch.tensor([0.999999]), farthest]).unsqueeze(0)
        ages = torch.arange(length).unsqueeze(0)
        shifted = shift_ages(ages, torch.ones(1, length, dtype=torch.bool), uniforms, 0.1)
        assert shifted.max().item() == length - 1 + -(-length // 10)


def test_every_set_of_gaps_is_equally_likely() -> None:
    """8 slots, 0 to 2 blanks, 20,000 rows: frequencies match the definition."""
    length, max_blanks, count = 8, 2, 20_000
    probabilities: Counter[tuple[int, ...]] = Counter()
    for blanks in range(max_blanks + 1):
        for positions in combinations(range(length + blanks), length):
            probabilities[positions] += 1 / (max_blanks + 1) / comb(length + blanks, length)  # type: ignore[assignment]
    ages = sample_shifted_ages(length, 0.25, count, slots=length)
    frequencies = Counter(tuple(sorted(row)) for row in ages.tolist())
    assert set(frequencies) <= set(probabilities)
    chi_square = sum(
        (frequencies[positions] - count * probability) ** 2 / (count * probability)
        for positions, probability in probabilities.items()
    )
    degrees = len(probabilities) - 1
    assert abs(chi_square - degrees) < 5 * sqrt(2 * degrees)  # within five standard deviations of its mean


def test_the_number_of_blanks_is_uniform() -> None:
    """With the farthest positions selected, the oldest age shows the number of blanks."""
    length, max_blanks = 40, 4
    farthest = torch.linspace(0.9, 0.1, 55).expand(20_000, -1)
    first_uniform = torch.rand(20_000, 1, generator=torch.Generator().manual_seed(0))
    ages = torch.arange(length).expand(20_000, -1)
    mask = torch.ones(20_000, length, dtype=torch.bool)
    shifted = shift_ages(ages, mask, torch.cat([first_uniform, farthest], 1), 0.1)
    blanks = (shifted.max(1).values - (length - 1)).bincount(minlength=max_blanks + 1)
    assert len(blanks) == max_blanks + 1
    assert (blanks / 20_000 - 1 / (max_blanks + 1)).abs().max() < 0.015


def test_rows_of_different_lengths_are_shifted_each_by_its_own() -> None:
    mask = torch.tensor([[True] * 20, [False] * 15 + [True] * 5, [False] * 20])
    ages = (mask.flip(1).long().cumsum(1).flip(1) - 1).clamp(min=0)
    generator = torch.Generator().manual_seed(0)
    max_ages = []
    for _ in range(200):
        shifted = shift_ages(ages, mask, torch.rand(3, 56, generator=generator), 0.1)
        for row in range(3):
            real_ages = shifted[row, mask[row]].tolist()
            assert real_ages == sorted(set(real_ages), reverse=True)
        max_ages.append((shifted[0, mask[0]].max().item(), shifted[1, mask[1]].max().item()))
    assert max(max_age for max_age, _ in max_ages) == 21
    assert max(max_age for _, max_age in max_ages) == 5


def test_noise_moves_ages_only_and_never_hides_a_slot() -> None:
    """In training uniforms shift the time; it never exceeds the end of the table."""
    memory = MemN2N(4, hops=1, slots=5, noise=1.0).train()
    with torch.no_grad():
        for table in memory.time:
            table.copy_(torch.arange(5.0).unsqueeze(1).expand(5, 4))
            table.div_(memory.last)  # undo the weight of the last position: time = age
    states = torch.zeros(300, 3, 2, 4)
    state = memory.write(memory.empty(300, states), states, states[:, :, 0, 0] == 0).state
    without_noise = memory.add_time(state, None)[0][..., 0]
    torch.testing.assert_close(without_noise, torch.tensor([2.0, 1.0, 0.0]).expand(300, -1))
    with_noise = memory.add_time(state, torch.rand(300, memory.num_uniforms))[0][..., 0]
    assert (with_noise >= without_noise - 1e-5).all()
    assert (with_noise.max(1).values > 2.5).float().mean() > 0.5
    assert with_noise.max() <= 4 + 1e-5  # 3 sentences, up to 3 blanks, but only 5 times
    assert torch.equal(memory.eval().add_time(state, torch.rand(300, memory.num_uniforms))[0][..., 0], without_noise)


@pytest.mark.parametrize("options", [{"noise": 0.0}, {"time": False}])
def test_without_noise_or_time_no_uniforms_are_used(options: dict[str, Any]) -> None:
    assert MemN2N(4, **options).num_uniforms == 0
    assert (
        MemN2N(4, slots=50, noise=0.1).num_uniforms == 56
    )  # number of blanks, and a sort key for each of 55 positions


# With the data ---------------------------------------------------------------------------------


def test_the_longest_text_of_the_dataset_sets_the_number_of_positions() -> None:
    """J is one more than the longest text of all splits: the position of time."""
    data = GeneratedStories(count=40, tasks=[1, 5]).load()
    texts: set[str] = set()
    for task in (1, 5):
        for count, seed in ((40, 0), (dataset.NUM_TEST_QUESTIONS, 1)):
            for example in dataset.generate_examples(task, count, seed):
                texts.update([*example.sentences, example.question])
    max_words = max(len(re.findall(r"\w+", text)) for text in texts)
    assert data.sizes["max_length"] == max_words + 1
    model = load_recipe("memn2n")["model"]
    network = build_model(model, data.sizes)
    assert network.encode.max_length == max_words + 1
    channels = torch.arange(1, 21)
    expected = 1 + 4 * (channels - 10.5) * ((max_words + 1) - (max_words + 2) / 2) / (20 * (max_words + 1))
    torch.testing.assert_close(network.memory.last, expected)


def test_a_tiny_memn2n_learns_one_supporting_fact() -> None:
    """One of up to five seeds fits the training set; its test error is low."""
    data_override = 'data={kind="generated", tasks=[1], count=1000}'
    overrides = ["phases.0.train.epochs=5", "train.epochs=15", "train.schedule.every=5"]
    recipe = load_recipe("memn2n", [data_override, *overrides, "model.memory.hops=1"])
    data = load_data(recipe)
    for seed in range(5):
        network = trained(recipe, data, seed)
        if compute_task_errors(network, data.train)[1] < 5:
            break
    assert compute_task_errors(network, data.test)[1] < 10


@pytest.mark.slow
def test_two_supporting_facts_need_more_than_one_hop() -> None:
    data_override = 'data={kind="generated", tasks=[2], count=1000}'
    overrides = ["phases.0.train.epochs=20", "train.epochs=15", "train.schedule.every=5"]
    errors = {}
    for hops in (1, 3):
        recipe = load_recipe("memn2n", [data_override, *overrides, f"model.memory.hops={hops}"])
        data = load_data(recipe)
        errors[hops] = compute_task_errors(trained(recipe, data, 0), data.test)[2]
    assert errors[1] > 50  # six rooms: guessing has 83 % errors
    assert errors[3] < errors[1] - 15
