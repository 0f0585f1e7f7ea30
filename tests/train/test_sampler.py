"""The examples of a step are a pure function of seed, phase and epoch."""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations_with_replacement, islice
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from mnemic.train.sampler import BatchSampler, choose_bucket_bounds, make_generator


def make_sampler(**options: Any) -> BatchSampler:
    kwargs = {"pools": [torch.arange(100, 123)], "seeds": [7], "batch_size": 5, "num_uniforms": 3}
    return BatchSampler(**{**kwargs, **options})


def sample_steps(sampler: BatchSampler, count: int, first_step: int = 0) -> tuple[Tensor, Tensor | None]:
    steps = list(islice(sampler.iterate_from(first_step), count))
    uniforms = None if steps[0].uniforms is None else torch.stack([s.uniforms for s in steps])
    return torch.stack([step.rows for step in steps]), uniforms


@pytest.mark.parametrize("replace", [True, False])
def test_draws_are_a_pure_function(replace: bool) -> None:
    """The same every time, independent of the global generator, which is not used."""
    first = sample_steps(make_sampler(replace=replace), 9)
    torch.manual_seed(99)
    before = torch.get_rng_state()
    again = sample_steps(make_sampler(replace=replace), 9)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(
        torch.equal(first_tensor, second_tensor) for first_tensor, second_tensor in zip(first, again, strict=True)
    )


@pytest.mark.parametrize("replace", [True, False])
def test_seeds_phases_and_epochs_differ(replace: bool) -> None:
    plain, uniforms = sample_steps(make_sampler(replace=replace), 8)
    for change in ({"seeds": [8]}, {"phase": 1}):
        rows, changed_uniforms = sample_steps(make_sampler(replace=replace, **change), 8)
        assert not torch.equal(rows, plain)
        assert not torch.equal(changed_uniforms, uniforms)
    assert not torch.equal(plain[:4], plain[4:])  # two epochs of 4 steps


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("step", [1, 3, 4, 5, 8, 11])
def test_going_on_from_a_step_drops_what_was_before(replace: bool, step: int) -> None:
    sampler = make_sampler(replace=replace)
    all_rows, all_uniforms = sample_steps(sampler, 16)
    rows, uniforms = sample_steps(sampler, 16 - step, first_step=step)
    assert torch.equal(rows, all_rows[step:])
    assert torch.equal(uniforms, all_uniforms[step:])


def test_a_shuffle_shows_each_example_once_an_epoch() -> None:
    sampler = make_sampler()
    assert sampler.steps_per_epoch == 4  # of 23 examples, 3 fill no batch
    rows, _ = sample_steps(sampler, 400)
    for epoch in rows.view(100, 20):
        assert len(epoch.unique()) == 20
    assert set(rows.flatten().tolist()) == set(range(100, 123))


def test_drawing_with_replacement_is_uniform() -> None:
    rows, _ = sample_steps(make_sampler(replace=True), 4000)
    counts = Counter(rows.flatten().tolist())
    assert set(counts) == set(range(100, 123))
    expected = rows.numel() / 23
    assert all(abs(count - expected) < 6 * expected**0.5 for count in counts.values())
    assert any(len(epoch.unique()) < 20 for epoch in rows[:40].view(10, 20))


LENGTHS = torch.tensor([0] * 100 + [3] * 9 + [4] * 3 + [7] * 2 + [30] * 2 + [9] * 7)


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("batch", [1, 2, 5])
def test_a_bucket_holds_what_is_about_as_long(replace: bool, batch: int) -> None:
    sampler = make_sampler(lengths=LENGTHS, num_buckets=3, replace=replace, batch_size=batch)
    steps = list(islice(sampler.iterate_from(0), 60 * sampler.steps_per_epoch))
    bounds = sorted({step.max_length for step in steps if step.max_length is not None})
    assert bounds == ([4, 30] if batch == 5 else [4, 9, 30])
    for step in steps:
        below = max([b for b in bounds if b < step.max_length], default=-1)
        assert (LENGTHS[step.rows] <= step.max_length).all()
        assert (LENGTHS[step.rows] > below).all()
    assert set(torch.cat([step.rows for step in steps]).tolist()) == set(range(100, 123))
    first = [step.max_length for step in steps[: sampler.steps_per_epoch]]
    assert first != sorted(first)  # long and short ones are mixed
    if not replace:
        rows = torch.stack([step.rows for step in steps[: sampler.steps_per_epoch]])
        assert len(rows.unique()) == rows.numel()


def test_runs_draw_from_buckets_as_each_alone() -> None:
    pools = [torch.arange(100, 123), torch.arange(100, 123)]
    options = {"lengths": LENGTHS, "num_buckets": 3, "batch_size": 2}
    both = islice(make_sampler(pools=pools, seeds=[7, 8], stacked=True, **options).iterate_from(3), 20)
    alone = [islice(make_sampler(seeds=[n], **options).iterate_from(3), 20) for n in (7, 8)]
    for step, *run_steps in zip(both, *alone, strict=True):
        for run, run_step in enumerate(run_steps):
            assert torch.equal(step.rows[run], run_step.rows)
            assert step.max_length == run_step.max_length


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 12), min_size=1, max_size=30), st.integers(1, 5))
def test_no_other_bounds_leave_less_padding(lengths: list[int], buckets: int) -> None:
    def work(bounds: Sequence[int]) -> int:
        return sum(min(b for b in bounds if b >= length) for length in lengths)

    bounds_found = choose_bucket_bounds(torch.tensor(lengths), buckets)
    alternatives = combinations_with_replacement(sorted(set(lengths)), buckets)
    assert len(bounds_found) <= buckets
    assert work(bounds_found) == min(work(bounds) for bounds in alternatives if max(bounds) == max(lengths))


def test_long_lengths_are_told_apart_roughly() -> None:
    lengths = torch.cat([torch.randint(1, 100, (500,)), torch.tensor([99_000, 100_000])])
    bounds = choose_bucket_bounds(lengths, 4)
    assert len(bounds) <= 4
    assert bounds[0] < 1000  # the short ones are by themselves
    assert bounds[-1] >= 100_000


def test_rolls_are_uniform_and_only_made_when_asked_for() -> None:
    _, uniforms = sample_steps(make_sampler(), 4000)
    assert uniforms.shape == (4000, 5, 3)
    assert 0 <= uniforms.min() < 0.001
    assert 0.999 < uniforms.max() < 1
    assert abs(uniforms.mean().item() - 0.5) < 0.005
    assert sample_steps(make_sampler(num_uniforms=0), 3)[1] is None


@pytest.mark.parametrize("replace", [True, False])
def test_a_run_draws_the_same_alone_as_among_many(replace: bool) -> None:
    pools = [torch.arange(20), torch.arange(30, 52), torch.arange(60, 84)]
    seeds = [3, 1, 3]
    many = make_sampler(pools=pools, seeds=seeds, stacked=True, replace=replace)
    rows, uniforms = sample_steps(many, 9)
    assert rows.shape == (9, 3, 5)
    for run, (pool, seed) in enumerate(zip(pools, seeds)):
        alone, alone_uniforms = sample_steps(make_sampler(pools=[pool], seeds=[seed], replace=replace), 9)
        assert torch.equal(rows[:, run], alone)
        assert torch.equal(uniforms[:, run], alone_uniforms)


def test_a_batch_larger_than_its_pool_is_refused() -> None:
    with pytest.raises(ValueError, match="a batch of 24 cannot be drawn from 23 training"):
        make_sampler(batch_size=24)
    with pytest.raises(ValueError, match="stacked=True"):
        make_sampler(pools=[torch.arange(9)] * 2, seeds=[0, 1])


def test_dice_differ_by_seed_and_purpose() -> None:
    purposes = [(0, "weights"), (1, "weights"), (0, "dropout"), (0, "phase", 1), (0, "phase", 0)]
    first = [torch.rand((), generator=make_generator(*purpose)).item() for purpose in purposes]
    assert len(set(first)) == len(purposes)
    again = [torch.rand((), generator=make_generator(*purpose)).item() for purpose in purposes]
    assert first == again
    # The same on every machine and in every release: published runs began with this number.
    assert make_generator(0, "weights").initial_seed() == 133441691874178746
