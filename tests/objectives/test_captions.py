"""Losses of captions: REINFORCE is exact in expectation, padding counts nowhere, the baseline."""

from itertools import product
from typing import Any, NamedTuple

import pytest
import torch
from picture_runs import HARD, make_captioner, small_scenes
from torch import Tensor

from mnemic.data.pictures.batches import CaptionBatch
from mnemic.models import IGNORE, PictureInputs
from mnemic.objectives.captions import CaptionLoss, SampledCaptionLoss, doubly_stochastic_penalty, score_words
from mnemic.recipe import ConfigError

REGIONS = 4  # of a picture of 2×2 regions


class TinyCase(NamedTuple):
    """A network whose picture has four regions, and a caption of two words."""

    network: Any
    batch: CaptionBatch


@pytest.fixture(scope="module")
def tiny() -> TinyCase:
    memory = HARD | {"expectation": 0.0}
    encode = {"kind": "patches", "patch": 24, "stack": {"depth": 1}}
    network = make_captioner(memory, encode=encode).double().train()
    for weight in network.memory.parameters():
        torch.nn.init.normal_(weight)  # so that regions differ in their shares
    generator = torch.Generator().manual_seed(0)
    picture = torch.rand(1, 3, 48, 48, generator=generator, dtype=torch.double)
    words, targets = torch.tensor([[39, 3]]), torch.tensor([[3, 7]])
    inputs = PictureInputs(picture, words, words > 0)
    return TinyCase(network, CaptionBatch(inputs, targets, targets))


def log_probability(tiny: TinyCase, regions: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Return log p(y|s) and log p(s) for looks s, by teacher forcing of each read."""
    network, inputs = tiny.network, tiny.batch.inputs
    states = network.encode(inputs.pictures)
    mask = torch.ones_like(states[..., 0], dtype=torch.bool)
    slots = network.write(states, mask).state
    state, log_words, log_looks = network.respond.start(states, mask, slots), 0.0, 0.0
    for number, region in enumerate(regions):
        forced = Forced(network.memory, region)
        logits, state, reading = network.respond.step(forced, inputs.words[:, number], state)
        log_words = log_words + logits.log_softmax(-1)[0, tiny.batch.targets[0, number]]
        log_looks = log_looks + reading.scores[0, 0, 0, 0].log_softmax(-1)[region]
    return log_words, log_looks  # type: ignore[return-value]


class Forced:
    """A memory that always reads one region."""

    def __init__(self, memory: Any, region: int) -> None:
        self.memory, self.region = memory, region

    def read(self, state: Any, query: Tensor, *, uniforms: None = None) -> Any:
        return self.memory.read(state, query, teacher_slots=torch.full((1, 1, 1), self.region))


def find_uniforms(tiny: TinyCase, regions: tuple[int, ...]) -> Tensor:
    """Find random numbers that make the network look at these regions."""
    uniforms = torch.zeros(1, 1 + len(regions), dtype=torch.double)
    for number, region in enumerate(regions):
        inputs = tiny.batch.inputs._replace(uniforms=uniforms)
        shares = tiny.network(inputs).reading.scores[0, 0, 0, number].softmax(-1)
        uniforms[0, 1 + number] = (shares.cumsum(0) - shares / 2)[region]
    return uniforms.detach()


def gradients(loss: Tensor, network: Any) -> Tensor:
    values = torch.autograd.grad(loss, list(network.parameters()), allow_unused=True)
    return torch.cat([torch.zeros_like(w).flatten() if g is None else g.flatten()
                      for w, g in zip(network.parameters(), values)])  # fmt: skip


@pytest.mark.parametrize("baseline", [None, -3.0])
def test_reinforce_is_the_exact_gradient_in_expectation(tiny: TinyCase, baseline: float | None) -> None:
    """Over all 4² looks: Σ p(s) of the estimate is the gradient of Σ p(s) log p(y|s)."""
    objective = SampledCaptionLoss(entropy=0.0)
    carried = {"baseline": torch.tensor(-1.5 if baseline is None else baseline, dtype=torch.double)}
    bound, estimate, total = torch.zeros(()).double(), torch.zeros(()).double(), 0.0
    for regions in product(range(REGIONS), repeat=2):
        log_words, log_looks = log_probability(tiny, regions)
        bound = bound + log_looks.exp() * log_words
        inputs = tiny.batch.inputs._replace(uniforms=find_uniforms(tiny, regions))
        looks = tiny.network(inputs).reading.weights[0, 0, 0].argmax(-1)
        assert looks.tolist() == list(regions)
        loss = objective(tiny.network, tiny.batch._replace(inputs=inputs), carried)
        estimate = estimate - float(log_looks.detach().exp()) * gradients(loss.total, tiny.network)
        total += float(log_looks.detach().exp())
    assert total == pytest.approx(1.0)
    exact = gradients(bound, tiny.network)
    torch.testing.assert_close(estimate, exact, atol=1e-6, rtol=1e-5)
    scores = tiny.network.memory.out.weight
    assert torch.autograd.grad(log_probability(tiny, (0, 1))[1], scores)[0].abs().max() > 1e-4  # not all zeros


def test_a_soft_read_adds_nothing_to_reinforce() -> None:
    network, dataset = make_captioner(HARD | {"expectation": 1.0}).double().train(), small_scenes()
    batch = dataset.batch(torch.arange(4), torch.rand(4, network.num_uniforms, dtype=torch.double))
    batch = batch._replace(inputs=batch.inputs._replace(pictures=batch.inputs.pictures.double()))
    hard = SampledCaptionLoss(entropy=0.0)(network, batch, {"baseline": torch.tensor(-50.0).double()})
    soft = CaptionLoss(doubly=0.0)(network, batch)
    torch.testing.assert_close(gradients(hard.total, network), gradients(soft.total, network), atol=1e-6, rtol=1e-5)


def test_entropy_is_added_to_the_objective(tiny: TinyCase) -> None:
    """A larger weight lowers the loss by the entropy of the looks."""
    uniforms = torch.full((1, 3), 0.4, dtype=torch.double)
    batch = tiny.batch._replace(inputs=tiny.batch.inputs._replace(uniforms=uniforms))
    totals = [SampledCaptionLoss(entropy=weight)(tiny.network, batch).total for weight in (0.0, 1.0)]
    shares = tiny.network(batch.inputs).reading.scores[0, 0, 0].softmax(-1)
    torch.testing.assert_close(totals[0] - totals[1], torch.distributions.Categorical(shares).entropy().sum())


def test_the_baseline_moves_and_has_no_gradient(tiny: TinyCase) -> None:
    uniforms = torch.full((1, 3), 0.4, dtype=torch.double)
    batch = tiny.batch._replace(inputs=tiny.batch.inputs._replace(uniforms=uniforms))
    objective = SampledCaptionLoss()
    first = objective(tiny.network, batch)
    assert first.carried is not None
    log_words = score_words(tiny.network(batch.inputs).logits, batch.targets)[0].sum().detach()
    torch.testing.assert_close(first.carried["baseline"], log_words)
    second = objective(tiny.network, batch, {"baseline": torch.tensor(-10.0).double()})
    assert second.carried is not None
    expected = 0.9 * -10 + 0.1 * float(log_words)
    assert float(second.carried["baseline"]) == pytest.approx(expected, abs=1e-5)
    assert not second.carried["baseline"].requires_grad


def test_padding_counts_neither_as_words_nor_as_looks() -> None:
    network, dataset = make_captioner(HARD).eval(), small_scenes()
    rows = torch.arange(6)
    for objective in (CaptionLoss(), SampledCaptionLoss(reinforce=0.0, entropy=0.5)):
        together = objective(network, dataset.batch(rows))
        wide = objective(network, dataset.batch(rows, compact=False))
        alone = [objective(network, dataset.batch(row.view(1))) for row in rows]
        torch.testing.assert_close(together.total, wide.total, atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(
            together.total, torch.stack([loss.total for loss in alone]).sum(), atol=1e-3, rtol=1e-4
        )
        assert together.num_targets == wide.num_targets == dataset.lengths[rows].sum()


def test_the_penalty_by_hand() -> None:
    weights = torch.tensor([[[1.0, 0.0], [0.5, 0.5], [0.3, 0.7]]])
    is_word = torch.tensor([[True, True, False]])
    assert doubly_stochastic_penalty(weights, is_word).tolist() == [(1 - 1.5) ** 2 + (1 - 0.5) ** 2]
    log_probs, mask = score_words(torch.zeros(1, 2, 4), torch.tensor([[2, IGNORE]]))
    torch.testing.assert_close(log_probs, torch.tensor([[-1.3863, 0.0]]), atol=1e-4, rtol=0)
    assert mask.tolist() == [[True, False]]


@pytest.mark.parametrize("options", [{"reinforce": -1.0}, {"entropy": -1.0}, {"momentum": 1.0}])
def test_options_are_checked(options: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="objective takes"):
        SampledCaptionLoss(**options)
    with pytest.raises(ConfigError, match=r"objective\.doubly"):
        CaptionLoss(doubly=-1.0)
