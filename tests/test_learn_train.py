"""The training generator and its parts: clipping, schedules, optimisers, draws."""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations_with_replacement, islice, repeat
from math import cos, pi
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from mnemic.learn.clip import CLIPS, SQUARINGS, ClipSpectral, spectral_norms
from mnemic.learn.draws import Draws, dice_of, edges
from mnemic.learn.optimise import OPTIMISERS, Sgd, adam, adamw
from mnemic.learn.schedule import SCHEDULES
from mnemic.learn.train import TrainSettings, optimiser_of, train
from mnemic.objectives import Carried, Loss
from mnemic.recipe import ConfigError, build

# Clipping --------------------------------------------------------------------------------------


def orthogonal(size: int) -> Tensor:
    return torch.linalg.qr(torch.randn(size, size)).Q


MATRICES = {
    "random": torch.randn(30, 20, generator=torch.Generator().manual_seed(0)),
    "wide": torch.randn(8, 50, generator=torch.Generator().manual_seed(0)),
    "tall": torch.randn(150, 50, generator=torch.Generator().manual_seed(0)),
    "rank 1": torch.outer(torch.arange(1.0, 9), torch.arange(1.0, 6)),
    "all the same": torch.eye(50),
    "two of a size": torch.diag(torch.tensor([3.0, 3.0, 1.0, 0.1])),
    "one number": torch.tensor([[-2.5]]),
    "a column": torch.randn(40, 1, generator=torch.Generator().manual_seed(0)),
    "small": 1e-9 * torch.randn(30, 20, generator=torch.Generator().manual_seed(0)),
    "large": 1e9 * torch.randn(30, 20, generator=torch.Generator().manual_seed(0)),
}


@pytest.mark.parametrize("name", MATRICES)
def test_spectral_norm_is_the_largest_singular_value(name: str) -> None:
    """Against an SVD: never below it (but for rounding), and less than a percent above it."""
    matrix = MATRICES[name]
    exact = torch.linalg.svdvals(matrix.double())[0].item()
    found = spectral_norms([matrix])[0].item()
    assert exact * (1 - 1e-5) <= found <= exact * 1.01


@pytest.mark.parametrize("size", [100, 300, 768])
def test_spectral_norm_of_a_large_matrix_of_full_rank(size: int) -> None:
    """The worst case: all singular values alike, so that each squaring shrinks them all."""
    found = spectral_norms([3 * orthogonal(size)])[0].item()
    assert 3 * (1 - 1e-4) <= found <= 3 * size ** (1 / 2 ** (SQUARINGS + 1)) * (1 + 1e-4)


def test_spectral_norm_of_many_matrices_and_of_zeros() -> None:
    matrices = torch.randn(3, 4, 9, 6)
    matrices[1, 2] = 0
    (found,) = spectral_norms([matrices])
    exact = torch.linalg.matrix_norm(matrices, ord=2)
    assert found.shape == (3, 4)
    assert (found >= exact * (1 - 1e-5)).all()
    assert (found <= exact * 1.01 + 1e-9).all()


def gradients(seed: int = 0, size: float = 1.0) -> list[Tensor]:
    dice = torch.Generator().manual_seed(seed)
    shapes = [(12, 5), (5, 12), (12, 5), (7,), (1, 4)]
    return [size * (n + 1) * torch.randn(s, generator=dice) for n, s in enumerate(shapes)]


def test_spectral_clipping_bounds_each_matrix_by_itself() -> None:
    before, after = gradients(), gradients()
    norms = [torch.linalg.svdvals(g.view(len(g), -1))[0].item() for g in before]
    most = sorted(norms)[2] + 0.1  # two matrices are too large, three are not
    ClipSpectral(most)(after, runs=False)
    for old, new, norm in zip(before, after, norms):
        if norm <= most / 1.01:
            assert torch.equal(new, old)
        else:
            scale = most / norm
            assert (new <= old.abs() * scale * (1 + 1e-5)).all()
            torch.testing.assert_close(new, old * scale, rtol=0.011, atol=0)
            assert torch.linalg.svdvals(new.view(len(new), -1))[0] <= most * (1 + 1e-5)


@pytest.mark.parametrize("norm", [0.5, 0.999, 1.02, 1.5, 30.0])
def test_a_matrix_of_rank_one_just_above_the_bound_is_clipped(norm: float) -> None:
    """Here the quick look at the Frobenius norm is exact: it must not let anything through."""
    matrix = norm * torch.outer(*nn.functional.normalize(torch.randn(2, 6), dim=1))
    clipped = matrix.clone()
    ClipSpectral(1.0)([clipped], runs=False)
    if norm < 1:
        assert torch.equal(clipped, matrix)
    else:
        assert torch.linalg.svdvals(clipped)[0].item() == pytest.approx(1, rel=0.01)


def test_norm_clipping_is_torchs() -> None:
    for most in (1.0, 1e3):
        ours, theirs = gradients(), [nn.Parameter(torch.zeros_like(g)) for g in gradients()]
        for weight, gradient in zip(theirs, gradients(), strict=True):
            weight.grad = gradient
        expected = nn.utils.clip_grad_norm_(theirs, most)
        norm = build(CLIPS, {"kind": "norm", "most": most})(ours, runs=False)
        torch.testing.assert_close(norm, expected)
        for gradient, weight in zip(ours, theirs, strict=True):
            torch.testing.assert_close(gradient, weight.grad)


def test_value_clipping_cuts_every_number() -> None:
    ours = gradients()
    build(CLIPS, {"kind": "value", "most": 0.5})(ours, runs=False)
    for found, before in zip(ours, gradients(), strict=True):
        assert torch.equal(found, before.clamp(-0.5, 0.5))


def test_no_clipping_changes_nothing() -> None:
    ours = gradients()
    build(CLIPS, {"kind": "none"})(ours, runs=False)
    assert all(torch.equal(found, before) for found, before in zip(ours, gradients(), strict=True))


@pytest.mark.parametrize("kind", CLIPS)
def test_the_norm_returned_is_the_whole_one_before_clipping(kind: str) -> None:
    expected = torch.cat([g.flatten() for g in gradients()]).norm()
    torch.testing.assert_close(build(CLIPS, {"kind": kind})(gradients(), runs=False), expected)


@pytest.mark.parametrize("kind", CLIPS)
def test_many_runs_are_clipped_each_by_itself(kind: str) -> None:
    """With a runs axis, one of three runs too large: the others are as they were."""
    clip = build(CLIPS, {"kind": kind, "most": 20.0} if kind != "none" else {"kind": kind})
    sizes = [0.1, 3.0, 0.5]
    alone = [gradients(seed, size) for seed, size in enumerate(sizes)]
    together = [torch.stack(parts) for parts in zip(*alone, strict=True)]
    norms = clip(together, runs=True)
    assert norms.shape == (3,)
    for run, own in enumerate(alone):
        norm = clip(own, runs=False)
        torch.testing.assert_close(norms[run], norm)
        for stack, gradient in zip(together, own, strict=True):
            torch.testing.assert_close(stack[run], gradient)


# Schedules -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "points"),
    [
        ({"kind": "constant"}, {0: 1.0, 99: 1.0}),
        # epochs of 10 steps; the 3rd begins at step 20, the 6th at 50
        ({"kind": "halving", "every": 3}, {0: 1, 19: 1, 20: 0.5, 49: 0.5, 50: 0.25, 80: 0.125}),
        ({"kind": "triangle", "every": 2, "low": 0.2}, {0: 0.2, 5: 0.6, 10: 1, 15: 0.6, 20: 0.2}),
        ({"kind": "halving", "every": 1}, {0: 0.5, 9: 0.5, 10: 0.25}),
        ({"kind": "linear"}, {0: 1 / 11, 9: 10 / 11, 10: 1.0, 55: 0.5, 99: 1 / 90}),
        ({"kind": "linear", "warmup": 0.0}, {0: 1.0, 50: 0.5, 99: 0.01}),
        (
            {"kind": "cosine"},
            {0: 1 / 11, 10: 1.0, 40: (1 - cos(pi * 2 / 3)) / 2, 55: 0.5, 70: 0.25},
        ),
    ],
)
def test_schedules_at_points_computed_by_hand(
    spec: dict[str, Any], points: dict[int, float]
) -> None:
    schedule = build(SCHEDULES, spec)
    found = {step: schedule(step, 10, 100) for step in points}
    assert found == pytest.approx(points)


@pytest.mark.parametrize("kind", SCHEDULES)
@pytest.mark.parametrize("total", [1, 2, 7, 100])
def test_every_step_of_every_schedule_has_a_rate(kind: str, total: int) -> None:
    factors = [build(SCHEDULES, {"kind": kind})(step, 3, total) for step in range(total)]
    assert all(0 < factor <= 1 for factor in factors)


# Optimisers ------------------------------------------------------------------------------------


def weights() -> list[nn.Parameter]:
    return [nn.Parameter(gradient) for gradient in gradients(5)]


@pytest.mark.parametrize(
    "options", [{}, {"momentum": 0.9}, {"decay": 0.1}, {"momentum": 0.8, "decay": 0.01}]
)
def test_sgd_is_torchs(options: dict[str, float]) -> None:
    ours, theirs = weights(), weights()
    mine = build(OPTIMISERS, {"kind": "sgd", **options}, parameters=ours, rate=0.05, runs=False)
    decay = {"weight_decay": options.get("decay", 0.0), "momentum": options.get("momentum", 0.0)}
    reference = torch.optim.SGD(theirs, lr=0.05, **decay)
    for seed in range(4):
        for parameters, optimiser in ((ours, mine), (theirs, reference)):
            for weight, gradient in zip(parameters, gradients(seed), strict=True):
                weight.grad = gradient
            optimiser.step()
        for one, other in zip(ours, theirs, strict=True):
            torch.testing.assert_close(one, other)


def test_sgd_leaves_weights_without_a_gradient_and_takes_a_rate_that_is_a_tensor() -> None:
    moved, still = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3))
    optimiser = Sgd([moved, still], torch.tensor(0.5), decay=0.1, momentum=0.9)
    moved.grad = torch.ones(3)
    optimiser.step()
    assert torch.equal(still, torch.ones(3))
    torch.testing.assert_close(moved.detach(), torch.full((3,), 1 - 0.5 * 1.1))


@pytest.mark.parametrize("runs", [False, True])
def test_adamw_decays_matrices_but_no_biases(runs: bool) -> None:
    """Without a gradient to follow, decay is all that moves; a runs axis makes no matrix."""
    matrix, bias = torch.ones(3, 4, 5) if runs else torch.ones(4, 5), torch.ones(5)
    if runs:
        bias = bias.expand(3, 5).clone()
    parameters = [nn.Parameter(matrix), nn.Parameter(bias)]
    optimiser = adamw(parameters, 0.1, decay=0.5, runs=runs)
    for weight in parameters:
        weight.grad = torch.zeros_like(weight)
    optimiser.step()
    torch.testing.assert_close(parameters[0].detach(), 0.95 * torch.ones_like(matrix))
    assert torch.equal(parameters[1], torch.ones_like(bias))


@pytest.mark.parametrize("runs", [False, True])
def test_adams_decay_is_a_penalty_on_matrices(runs: bool) -> None:
    """A decay of 2λ steps as plain Adam does with λ‖W‖² in the loss; biases are free."""
    lead = (3,) if runs else ()
    start = [torch.randn(*lead, 4, 2), torch.randn(*lead, 4)]
    mine, plain = ([nn.Parameter(part.clone()) for part in start] for _ in range(2))
    ours, theirs = adam(mine, 0.05, decay=0.2, runs=runs), torch.optim.Adam(plain, lr=0.05)
    for _ in range(20):
        for (weight, bias), optimiser, penalty in ((mine, ours, 0.0), (plain, theirs, 0.1)):
            optimiser.zero_grad()
            loss = (weight.sum(-1) - 3 * bias).square().sum() + penalty * weight.square().sum()
            loss.backward()
            optimiser.step()
    for one, other in zip(mine, plain):
        torch.testing.assert_close(one, other)


def test_adamw_is_torchs_with_the_options_of_a_recipe() -> None:
    spec = {"kind": "adamw", "betas": [0.8, 0.95], "epsilon": 1e-6, "decay": 0.2}
    ours, theirs = weights(), weights()
    mine = build(OPTIMISERS, spec, parameters=ours, rate=0.05, runs=False)
    groups = [
        {"params": [w for w in theirs if w.dim() > 1], "weight_decay": 0.2},
        {"params": [w for w in theirs if w.dim() == 1], "weight_decay": 0.0},
    ]
    reference = torch.optim.AdamW(groups, lr=0.05, betas=(0.8, 0.95), eps=1e-6)
    for seed in range(4):
        for parameters, optimiser in ((ours, mine), (theirs, reference)):
            for weight, gradient in zip(parameters, gradients(seed), strict=True):
                weight.grad = gradient
            optimiser.step()
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other)


# Draws -----------------------------------------------------------------------------------------


def draws_of(**options: Any) -> Draws:
    given = {"pools": [torch.arange(100, 123)], "seeds": [7], "batch": 5, "rolls": 3}
    return Draws(**{**given, **options})


def drawn(draws: Draws, count: int, start: int = 0) -> tuple[Tensor, Tensor | None]:
    steps = list(islice(draws.from_step(start), count))
    rolls = None if steps[0].rolls is None else torch.stack([s.rolls for s in steps])
    return torch.stack([step.rows for step in steps]), rolls


@pytest.mark.parametrize("replace", [True, False])
def test_draws_are_a_pure_function(replace: bool) -> None:
    """The same every time, whatever the global dice show, which stay as they were."""
    first = drawn(draws_of(replace=replace), 9)
    torch.manual_seed(99)
    before = torch.get_rng_state()
    again = drawn(draws_of(replace=replace), 9)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(one, other) for one, other in zip(first, again, strict=True))


@pytest.mark.parametrize("replace", [True, False])
def test_seeds_phases_and_epochs_differ(replace: bool) -> None:
    plain, rolls = drawn(draws_of(replace=replace), 8)
    for change in ({"seeds": [8]}, {"phase": 1}):
        rows, other = drawn(draws_of(replace=replace, **change), 8)
        assert not torch.equal(rows, plain)
        assert not torch.equal(other, rolls)
    assert not torch.equal(plain[:4], plain[4:])  # two epochs of 4 steps


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("step", [1, 3, 4, 5, 8, 11])
def test_going_on_from_a_step_drops_what_was_before(replace: bool, step: int) -> None:
    draws = draws_of(replace=replace)
    whole, rolls = drawn(draws, 16)
    rows, own = drawn(draws, 16 - step, start=step)
    assert torch.equal(rows, whole[step:])
    assert torch.equal(own, rolls[step:])


def test_a_shuffle_shows_each_example_once_an_epoch() -> None:
    draws = draws_of()
    assert draws.epoch == 4  # of 23 examples, 3 fill no batch
    rows, _ = drawn(draws, 400)
    for epoch in rows.view(100, 20):
        assert len(epoch.unique()) == 20
    assert set(rows.flatten().tolist()) == set(range(100, 123))


def test_drawing_with_replacement_is_uniform() -> None:
    rows, _ = drawn(draws_of(replace=True), 4000)
    counts = Counter(rows.flatten().tolist())
    assert set(counts) == set(range(100, 123))
    expected = rows.numel() / 23
    assert all(abs(count - expected) < 6 * expected**0.5 for count in counts.values())
    assert any(len(epoch.unique()) < 20 for epoch in rows[:40].view(10, 20))


LENGTHS = torch.tensor([0] * 100 + [3] * 9 + [4] * 3 + [7] * 2 + [30] * 2 + [9] * 7)


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("batch", [1, 2, 5])
def test_a_bucket_holds_what_is_about_as_long(replace: bool, batch: int) -> None:
    draws = draws_of(lengths=LENGTHS, buckets=3, replace=replace, batch=batch)
    steps = list(islice(draws.from_step(0), 60 * draws.epoch))
    bounds = sorted({step.most for step in steps if step.most is not None})
    assert bounds == ([4, 30] if batch == 5 else [4, 9, 30])
    for step in steps:
        below = max([b for b in bounds if b < step.most], default=-1)
        assert (LENGTHS[step.rows] <= step.most).all()
        assert (LENGTHS[step.rows] > below).all()
    assert set(torch.cat([step.rows for step in steps]).tolist()) == set(range(100, 123))
    first = [step.most for step in steps[: draws.epoch]]
    assert first != sorted(first)  # long and short ones are mixed
    if not replace:
        rows = torch.stack([step.rows for step in steps[: draws.epoch]])
        assert len(rows.unique()) == rows.numel()


def test_runs_draw_from_buckets_as_each_alone() -> None:
    pools = [torch.arange(100, 123), torch.arange(100, 123)]
    options = {"lengths": LENGTHS, "buckets": 3, "batch": 2}
    both = islice(draws_of(pools=pools, seeds=[7, 8], stacked=True, **options).from_step(3), 20)
    alone = [islice(draws_of(seeds=[n], **options).from_step(3), 20) for n in (7, 8)]
    for step, *own in zip(both, *alone, strict=True):
        for run, one in enumerate(own):
            assert torch.equal(step.rows[run], one.rows)
            assert step.most == one.most


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 12), min_size=1, max_size=30), st.integers(1, 5))
def test_no_other_bounds_leave_less_padding(lengths: list[int], buckets: int) -> None:
    def work(bounds: Sequence[int]) -> int:
        return sum(min(b for b in bounds if b >= length) for length in lengths)

    found = edges(torch.tensor(lengths), buckets)
    others = combinations_with_replacement(sorted(set(lengths)), buckets)
    assert len(found) <= buckets
    assert work(found) == min(work(bounds) for bounds in others if max(bounds) == max(lengths))


def test_long_lengths_are_told_apart_roughly() -> None:
    lengths = torch.cat([torch.randint(1, 100, (500,)), torch.tensor([99_000, 100_000])])
    bounds = edges(lengths, 4)
    assert len(bounds) <= 4
    assert bounds[0] < 1000  # the short ones are by themselves
    assert bounds[-1] >= 100_000


def test_rolls_are_uniform_and_only_made_when_asked_for() -> None:
    _, rolls = drawn(draws_of(), 4000)
    assert rolls.shape == (4000, 5, 3)
    assert 0 <= rolls.min() < 0.001
    assert 0.999 < rolls.max() < 1
    assert abs(rolls.mean().item() - 0.5) < 0.005
    assert drawn(draws_of(rolls=0), 3)[1] is None


@pytest.mark.parametrize("replace", [True, False])
def test_a_run_draws_the_same_alone_as_among_many(replace: bool) -> None:
    pools = [torch.arange(20), torch.arange(30, 52), torch.arange(60, 84)]
    seeds = [3, 1, 3]
    many = draws_of(pools=pools, seeds=seeds, stacked=True, replace=replace)
    rows, rolls = drawn(many, 9)
    assert rows.shape == (9, 3, 5)
    for run, (pool, seed) in enumerate(zip(pools, seeds)):
        alone, own = drawn(draws_of(pools=[pool], seeds=[seed], replace=replace), 9)
        assert torch.equal(rows[:, run], alone)
        assert torch.equal(rolls[:, run], own)


def test_a_batch_larger_than_its_pool_is_refused() -> None:
    with pytest.raises(
        ValueError,
        match="a batch of 24 cannot be drawn from 23 training",
    ):
        draws_of(batch=24)
    with pytest.raises(ValueError, match="stacked=True"):
        draws_of(pools=[torch.arange(9)] * 2, seeds=[0, 1])


def test_dice_differ_by_seed_and_purpose() -> None:
    purposes = [(0, "weights"), (1, "weights"), (0, "dropout"), (0, "phase", 1), (0, "phase", 0)]
    first = [torch.rand((), generator=dice_of(*purpose)).item() for purpose in purposes]
    assert len(set(first)) == len(purposes)
    again = [torch.rand((), generator=dice_of(*purpose)).item() for purpose in purposes]
    assert first == again
    # The same on every machine and in every release: published runs began with this number.
    assert dice_of(0, "weights").initial_seed() == 133441691874178746


# The generator ---------------------------------------------------------------------------------

PLAIN = {"optimiser": {"kind": "sgd"}, "clip": {"kind": "none"}, "rate": 0.1}


def line(seed: int = 0) -> nn.Linear:
    torch.manual_seed(seed)
    return nn.Linear(3, 1)


def squares(network: nn.Module, batch: tuple[Tensor, Tensor], carried: Any) -> Loss:
    inputs, targets = batch
    return Loss((network(inputs) - targets).square().sum(), torch.tensor(len(inputs)), carried)


def points(count: int = 6, seed: int = 0) -> tuple[Tensor, Tensor]:
    dice = torch.Generator().manual_seed(seed)
    return torch.randn(count, 3, generator=dice), torch.randn(count, 1, generator=dice)


def run(network: nn.Module, settings: TrainSettings, batches: Any = None, **options: Any) -> Any:
    batches = repeat(points()) if batches is None else batches
    optimiser = optimiser_of(network, settings)
    return train(
        network, squares, batches, settings, optimiser=optimiser, epoch=options.pop("epoch", 4),
        **options,
    )  # fmt: skip


def test_training_is_the_loop_anyone_would_write() -> None:
    network, twin = line(), line()
    settings = TrainSettings(epochs=3, schedule={"kind": "halving", "every": 2}, **PLAIN)
    batches = [points(6, seed) for seed in range(12)]
    steps = list(run(network, settings, iter(batches)))
    assert [step.number for step in steps] == list(range(1, 13))
    reference = torch.optim.SGD(twin.parameters(), lr=0.1)
    for number, (batch, step) in enumerate(zip(batches, steps, strict=True)):
        rate = 0.1 if number < 4 else 0.05
        reference.param_groups[0]["lr"] = rate
        reference.zero_grad()
        loss = nn.functional.mse_loss(twin(batch[0]), batch[1])
        loss.backward()
        norm = torch.cat([w.grad.flatten() for w in twin.parameters()]).norm()
        reference.step()
        assert step.rate == pytest.approx(rate)
        torch.testing.assert_close(step.loss, loss.detach())
        torch.testing.assert_close(step.norm, norm)
    for mine, theirs in zip(network.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs)


def test_a_step_is_taken_only_when_it_is_asked_for() -> None:
    """The caller may stop between any two steps; no batch is drawn ahead."""
    network, taken = line(), []

    def batches() -> Any:
        for number in range(100):
            taken.append(number)
            yield points(6, number)

    before = network.weight.detach().clone()
    steps = run(network, TrainSettings(epochs=5, **PLAIN), batches())
    assert taken == []
    assert torch.equal(network.weight, before)
    next(steps)
    assert taken == [0]
    assert not torch.equal(network.weight, before)
    next(steps)
    steps.close()
    assert taken == [0, 1]


@pytest.mark.parametrize(
    ("epochs", "steps", "start", "expected"),
    [
        (2, 0, 0, 8),
        (2, 5, 0, 5),
        (2, 50, 0, 8),
        (2, 0, 6, 2),
        (2, 0, 8, 0),
        (2, 5, 7, 0),
        (0, 0, 0, 0),
    ],
)
def test_a_phase_ends_where_it_should(epochs: int, steps: int, start: int, expected: int) -> None:
    settings = TrainSettings(epochs=epochs, steps=steps, **PLAIN)
    numbers = [step.number for step in run(line(), settings, start=start)]
    assert numbers == list(range(start + 1, start + 1 + expected))


def test_sum_is_mean_times_the_number_of_targets() -> None:
    changes = {}
    for reduce in ("mean", "sum"):
        network = line()
        before = network.weight.detach().clone()
        (step,) = run(network, TrainSettings(steps=1, reduce=reduce, **PLAIN))
        changes[reduce] = network.weight.detach() - before, step.loss
    torch.testing.assert_close(changes["sum"][0], 6 * changes["mean"][0])
    assert torch.equal(changes["sum"][1], changes["mean"][1])  # the loss that is told is a mean


def test_noise_is_added_to_the_gradient() -> None:
    """A step of plain descent moves by rate times gradient and noise, which has its deviation."""
    changes = {}
    for noise in (0.0, 5.0):
        torch.manual_seed(0)
        network = nn.Linear(3, 2000)
        before = network.weight.detach().clone()
        points = torch.ones(4, 3), torch.zeros(4, 2000)
        next(run(network, TrainSettings(steps=1, noise=noise, **PLAIN), repeat(points)))
        changes[noise] = network.weight.detach() - before
    added = (changes[5.0] - changes[0.0]) / PLAIN["rate"]
    assert added.std().item() == pytest.approx(5.0, rel=0.05)
    assert abs(added.mean().item()) < 0.3


def test_carried_state_is_handed_from_batch_to_batch() -> None:
    network, settings = line(), TrainSettings(epochs=1, **PLAIN)

    def loss_of(network: nn.Module, batch: Any, carried: Carried | None) -> Loss:
        assert carried is not None
        loss = squares(network, batch, None)
        return loss._replace(carried={"sum": carried["sum"] + loss.total})

    optimiser = optimiser_of(network, settings)
    begin = {"sum": torch.zeros(())}
    steps = train(
        network, loss_of, repeat(points()), settings, optimiser=optimiser, epoch=4, carried=begin
    )
    total = 0.0
    for step in steps:
        assert step.carried is not None
        total += float(step.loss) * len(points()[0])
        assert float(step.carried["sum"]) == pytest.approx(total)
        assert not step.carried["sum"].requires_grad  # gradients end at a step's border


def test_the_network_is_set_to_training() -> None:
    network = line().eval()
    next(run(network, TrainSettings(steps=1, **PLAIN)))
    assert network.training


def test_frozen_weights_stay() -> None:
    network = line()
    network.bias.requires_grad_(False)
    before = network.bias.clone()
    list(run(network, TrainSettings(steps=3)))
    assert torch.equal(network.bias, before)


@pytest.mark.parametrize("name", ["epochs", "steps", "batch", "validate", "save"])
def test_settings_below_their_least_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"train\.{name} is at least \d, not -1"):
        TrainSettings(**{name: -1})
