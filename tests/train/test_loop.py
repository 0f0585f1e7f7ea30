"""The training generator: compared with a plain loop, and where it stops."""

from itertools import repeat
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from mnemic.objectives import CarriedState, Loss
from mnemic.recipe import ConfigError
from mnemic.train.loop import TrainSettings, build_optimizer, train

PLAIN = {"optimizer": {"kind": "sgd"}, "clip": {"kind": "none"}, "rate": 0.1}


def line(seed: int = 0) -> nn.Linear:
    torch.manual_seed(seed)
    return nn.Linear(3, 1)


def squares(network: nn.Module, batch: tuple[Tensor, Tensor], carried: Any) -> Loss:
    inputs, targets = batch
    return Loss((network(inputs) - targets).square().sum(), torch.tensor(len(inputs)), carried)


def points(count: int = 6, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, 3, generator=generator), torch.randn(count, 1, generator=generator)


def run(network: nn.Module, settings: TrainSettings, batches: Any = None, **options: Any) -> Any:
    batches = repeat(points()) if batches is None else batches
    optimizer = build_optimizer(network, settings)
    return train(
        network, squares, batches, settings, optimizer=optimizer, steps_per_epoch=options.pop("epoch", 4),
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
    for weight, expected in zip(network.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(weight, expected)


def test_a_step_is_taken_only_when_it_is_asked_for() -> None:
    """The caller may stop between any two steps; no batch is made in advance."""
    network, batch_numbers = line(), []

    def batches() -> Any:
        for number in range(100):
            batch_numbers.append(number)
            yield points(6, number)

    before = network.weight.detach().clone()
    steps = run(network, TrainSettings(epochs=5, **PLAIN), batches())
    assert batch_numbers == []
    assert torch.equal(network.weight, before)
    next(steps)
    assert batch_numbers == [0]
    assert not torch.equal(network.weight, before)
    next(steps)
    steps.close()
    assert batch_numbers == [0, 1]


@pytest.mark.parametrize(
    ("epochs", "steps", "start", "expected"),
    [(2, 0, 0, 8), (2, 5, 0, 5), (2, 50, 0, 8), (2, 0, 6, 2), (2, 0, 8, 0), (2, 5, 7, 0), (0, 0, 0, 0)],
)
def test_a_phase_ends_where_it_should(epochs: int, steps: int, start: int, expected: int) -> None:
    settings = TrainSettings(epochs=epochs, steps=steps, **PLAIN)
    numbers = [step.number for step in run(line(), settings, first_step=start)]
    assert numbers == list(range(start + 1, start + 1 + expected))


def test_sum_is_mean_times_the_number_of_targets() -> None:
    changes = {}
    for reduce in ("mean", "sum"):
        network = line()
        before = network.weight.detach().clone()
        (step,) = run(network, TrainSettings(steps=1, reduce=reduce, **PLAIN))
        changes[reduce] = network.weight.detach() - before, step.loss
    torch.testing.assert_close(changes["sum"][0], 6 * changes["mean"][0])
    assert torch.equal(changes["sum"][1], changes["mean"][1])  # the reported loss is a mean


def test_noise_is_added_to_the_gradient() -> None:
    """A step of SGD moves by rate × (gradient + noise of the given deviation)."""
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

    def compute_loss(network: nn.Module, batch: Any, carried: CarriedState | None) -> Loss:
        assert carried is not None
        loss = squares(network, batch, None)
        return loss._replace(carried={"sum": carried["sum"] + loss.total})

    optimizer = build_optimizer(network, settings)
    initial = {"sum": torch.zeros(())}
    steps = train(
        network, compute_loss, repeat(points()), settings, optimizer=optimizer, steps_per_epoch=4, carried=initial
    )
    total = 0.0
    for step in steps:
        assert step.carried is not None
        total += float(step.loss) * len(points()[0])
        assert float(step.carried["sum"]) == pytest.approx(total)
        assert not step.carried["sum"].requires_grad  # no gradient crosses a step


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
