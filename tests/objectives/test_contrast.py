"""Contrastive losses: values by hand, slow twins, false negatives, gradients."""

from math import exp, log
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from mnemic.models import IGNORE, TextOutput, WindowBatch
from mnemic.objectives.contrast import info_nce, nt_xent
from mnemic.objectives.contrast_views import ContrastLoss, compute_vectors, one_way_loss
from mnemic.recipe import ConfigError


def make_vectors(count: int, *, seed: int = 0) -> Tensor:
    """Make random vectors: count 6."""
    return torch.randn(count, 6, generator=torch.Generator().manual_seed(seed))


def slow_nt_xent(first: Tensor, second: Tensor, temperature: float) -> float:
    """Sum −log e^s⁺ / Σ e^s over all views, one pair at a time."""
    views, total = [*first, *second], 0.0
    for index, view in enumerate(views):
        scores = [exp(float(nn.functional.cosine_similarity(view, other, dim=0)) / temperature) for other in views]
        positive = scores[(index + len(first)) % len(views)]
        total -= log(positive / (sum(scores) - scores[index]))
    return total


def test_info_nce_has_the_value_by_hand() -> None:
    """Columns 0 and 1 are in-batch, column 2 is a hard negative of no query."""
    similarities = torch.tensor([[1.0, 0.5, 0.0], [0.0, 1.0, 0.5]])
    loss = info_nce(similarities, torch.tensor([0, 1]), temperature=0.5)
    expected = 2 * log(1 + exp(-1) + exp(-2))
    assert float(loss.total) == pytest.approx(expected)
    assert int(loss.num_targets) == 2


def test_a_hard_negative_raises_the_loss_and_is_pushed_away() -> None:
    similarities = torch.tensor([[1.0, 0.0, 0.9]], requires_grad=True)
    loss = info_nce(similarities, torch.tensor([0]), temperature=0.1).total
    assert loss > info_nce(similarities[:, :2], torch.tensor([0]), temperature=0.1).total
    loss.backward()
    assert similarities.grad is not None
    positive, easy, hard = similarities.grad[0].tolist()
    assert positive < 0 < easy < hard


def test_false_negatives_are_as_if_absent() -> None:
    """Equal key ids and hidden pairs count as little as removed columns, and get no gradient."""
    similarities = make_vectors(1).requires_grad_()
    hidden = torch.tensor([[False, False, False, True, False, False]])
    key_ids = torch.tensor([7, 1, 7, 2, 3, 4])
    loss = info_nce(similarities, torch.tensor([0]), temperature=0.3, key_ids=key_ids, hidden=hidden).total
    expected = info_nce(similarities[:, [0, 1, 4, 5]], torch.tensor([0]), temperature=0.3).total
    torch.testing.assert_close(loss, expected)
    loss.backward()
    assert similarities.grad is not None
    assert similarities.grad[0, [2, 3]].tolist() == [0.0, 0.0]


def test_a_hidden_positive_is_still_the_positive() -> None:
    everything = torch.ones(1, 6, dtype=torch.bool)
    loss = info_nce(make_vectors(1), torch.tensor([0]), temperature=0.3, hidden=everything)
    assert float(loss.total) == 0.0


def test_a_query_without_a_key_does_not_count() -> None:
    similarities = make_vectors(2)
    loss = info_nce(similarities, torch.tensor([3, IGNORE]), temperature=0.3)
    torch.testing.assert_close(loss.total, info_nce(similarities[:1], torch.tensor([3]), temperature=0.3).total)
    assert int(loss.num_targets) == 1


def test_nt_xent_equals_its_slow_twin() -> None:
    first, second = make_vectors(4), make_vectors(4, seed=1)
    loss = nt_xent(first, second, temperature=0.2)
    assert float(loss.total) == pytest.approx(slow_nt_xent(first, second, 0.2), rel=1e-5)
    assert int(loss.num_targets) == 8
    torch.testing.assert_close(nt_xent(second, 3 * first, temperature=0.2).total, loss.total)


def test_nt_xent_of_one_text_twice_leaves_the_copies_out() -> None:
    """Copies of a text lower no loss: the rows of other texts lose nothing, theirs lose a rival."""
    first, second = make_vectors(3), make_vectors(3, seed=1)
    first[2], second[2] = first[0], second[0]
    with_copies = nt_xent(first, second, temperature=0.2)
    masked = nt_xent(first, second, temperature=0.2, text_ids=torch.tensor([0, 1, 0]))
    assert float(masked.total) < float(with_copies.total)
    only_copies = nt_xent(first[[0, 2]], second[[0, 2]], temperature=0.2, text_ids=torch.tensor([5, 5]))
    assert float(only_copies.total) == pytest.approx(0.0)


def test_nt_xent_of_two_pairs_by_hand() -> None:
    """Views on the axes: of each view's three candidates one is equal and two are orthogonal."""
    views = torch.tensor([[2.0, 0.0], [0.0, 3.0]])
    loss = nt_xent(views, views, temperature=0.5)
    assert float(loss.total) == pytest.approx(4 * log(1 + 2 * exp(-2)))
    assert int(loss.num_targets) == 4


def test_hard_negatives_and_their_copies() -> None:
    """A hard negative is one more candidate of every view, unless it is one of the view's texts."""
    first, second, negatives = make_vectors(3), make_vectors(3, seed=1), make_vectors(2, seed=2)
    ids = torch.arange(3)

    def total(negative_ids: list[int], rows: Tensor = negatives) -> float:
        options: dict[str, Any] = {"text_ids": ids, "negatives": rows, "negative_ids": torch.tensor(negative_ids)}
        return float(nt_xent(first, second, temperature=0.3, **options).total)

    plain = float(nt_xent(first, second, temperature=0.3).total)
    assert total([7, 8]) > total([7], negatives[:1]) > plain
    assert plain < total([7, 0]) < total([7, 8])  # for two of three texts it is a negative
    views = nn.functional.normalize(torch.cat([first, second]), dim=1)
    scores = (views @ torch.cat([views, nn.functional.normalize(negatives, dim=1)]).mT / 0.3).exp()
    scores.fill_diagonal_(0)
    positives = torch.stack([scores[row, (row + 3) % 6] for row in range(6)])
    assert total([7, 8]) == pytest.approx(float(-(positives / scores.sum(1)).log().sum()), rel=1e-5)


def test_views_that_are_too_similar_are_no_negatives() -> None:
    first, second = make_vectors(4), make_vectors(4, seed=1)
    first[3] = 2 * first[0]  # cosine 1
    options: dict[str, Any] = {"temperature": 0.2, "text_ids": torch.arange(4)}
    masked = nt_xent(first, second, max_cosine=0.999, **options).total
    expected = nt_xent(first, second, temperature=0.2).total
    assert masked < expected
    torch.testing.assert_close(nt_xent(first, second, max_cosine=1.0, **options).total, expected)


def test_a_low_temperature_asks_for_the_nearest() -> None:
    """As τ → 0, τ · loss becomes how far the best wrong key is ahead."""
    similarities = torch.tensor([[0.5, 0.9, 0.1], [0.2, 0.8, 0.3]])
    loss = info_nce(similarities, torch.tensor([0, 1]), temperature=1e-4)
    assert 1e-4 * float(loss.total) == pytest.approx(0.9 - 0.5, abs=1e-5)
    high = info_nce(similarities, torch.tensor([0, 1]), temperature=1e4)
    assert float(high.total) == pytest.approx(2 * log(3), abs=1e-3)


@pytest.mark.parametrize("correlation", [0.3, 0.7, 0.9])
def test_info_nce_bounds_mutual_information(correlation: float) -> None:
    """Of Gaussian pairs with the best critic, log K - loss is near the truth and below log K."""
    num_keys, generator = 256, torch.Generator().manual_seed(0)
    truth, estimates = -0.5 * log(1 - correlation**2), []
    for _ in range(20):
        x = torch.randn(num_keys, generator=generator)
        y = correlation * x + (1 - correlation**2) ** 0.5 * torch.randn(num_keys, generator=generator)
        critic = -((y - correlation * x.unsqueeze(1)) ** 2) / (2 * (1 - correlation**2)) + y**2 / 2
        loss = info_nce(critic, torch.arange(num_keys), temperature=1.0)
        estimates.append(log(num_keys) - float(loss.total / loss.num_targets))
    assert max(estimates) <= log(num_keys)
    assert sum(estimates) / len(estimates) == pytest.approx(truth, abs=0.05)


def test_mutual_information_beyond_the_bound_is_not_seen() -> None:
    """Of 4 keys, 16 Gaussian dimensions tell at most log 4 = 1.39 nats of 27."""
    generator, correlation = torch.Generator().manual_seed(0), 0.983
    x = torch.randn(4, 16, generator=generator)
    y = correlation * x + (1 - correlation**2) ** 0.5 * torch.randn(4, 16, generator=generator)
    critic = (-((y - correlation * x.unsqueeze(1)) ** 2) / (2 * (1 - correlation**2)) + y**2 / 2).sum(-1)
    loss = info_nce(critic, torch.arange(4), temperature=1.0)
    assert -8 * log(1 - correlation**2) > 27
    assert log(4) - 0.01 < log(4) - float(loss.total / 4) <= log(4)


# Large batches ---------------------------------------------------------------------------------


class DropoutVectors(nn.Module):
    """Embed windows with dropout, in float64, and count the tokens of each call."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.words, self.out = nn.Embedding(20, 6), nn.Linear(6, 5)
        self.dropout, self.sizes = nn.Dropout(dropout), list[int]()
        self.double()

    def forward(self, inputs: WindowBatch) -> TextOutput:
        """Return vectors as logits."""
        self.sizes.append(len(inputs.tokens))
        states = self.dropout(self.words(inputs.tokens)) * inputs.mask.unsqueeze(-1)
        return TextOutput(self.out(states.sum(1).tanh()), states)


def make_windows(count: int) -> WindowBatch:
    generator = torch.Generator().manual_seed(3)
    tokens = torch.randint(20, (count, 7), generator=generator)
    mask = torch.arange(7) < torch.randint(1, 8, (count, 1), generator=generator)
    return WindowBatch(tokens, mask, torch.zeros_like(tokens), mask)


def gradients(network: nn.Module, vectors: Tensor) -> list[Tensor]:
    """Compute the gradients of NT-Xent of vectors, in float64."""
    first, second = vectors.chunk(2)
    return list(torch.autograd.grad(nt_xent(first, second, temperature=0.1).total, list(network.parameters())))


@pytest.mark.parametrize("num_shards", [2, 3, 5])
def test_shards_have_the_gradient_of_the_whole_batch(num_shards: int) -> None:
    network = DropoutVectors(0.0)
    expected = gradients(network, compute_vectors(network, make_windows(12)))
    for gradient, right in zip(gradients(network, compute_vectors(network, make_windows(12), num_shards)), expected):
        torch.testing.assert_close(gradient, right, atol=1e-10, rtol=1e-10)


def test_shards_drop_the_same_states_in_both_passes() -> None:
    """With dropout they equal the same shards with their graphs kept."""
    network, windows = DropoutVectors(0.4), make_windows(12)
    torch.manual_seed(5)
    cached = gradients(network, compute_vectors(network, windows, 3))
    after = torch.rand(3)
    torch.manual_seed(5)
    shards = [WindowBatch(*(leaf[start : start + 4] for leaf in windows[:4])) for start in (0, 4, 8)]
    # padding that a shard does not need draws no random numbers
    shards = [WindowBatch(*(leaf[:, : int(shard.mask.sum(1).max())] for leaf in shard[:4])) for shard in shards]
    expected = gradients(network, torch.cat([network(shard).logits for shard in shards]))
    for gradient, right in zip(cached, expected):
        torch.testing.assert_close(gradient, right, atol=1e-12, rtol=1e-12)
    assert torch.equal(after, torch.rand(3))  # and the random numbers after them are the same


def test_no_more_than_one_shard_has_a_graph() -> None:
    """Each shard is computed twice, the second time in the backward pass."""
    network = DropoutVectors(0.0)
    vectors = compute_vectors(network, make_windows(12), 4)
    assert network.sizes == [3, 3, 3, 3]
    gradients(network, vectors)
    assert network.sizes == [3] * 8


def test_one_way_contrast_has_second_views_as_keys() -> None:
    first, second, negatives = make_vectors(3), make_vectors(3, seed=1), make_vectors(1, seed=2)
    loss = one_way_loss(
        first, second, temperature=0.2, text_ids=torch.tensor([0, 1, 0]), negatives=negatives,
        negative_ids=torch.tensor([1]),
    )  # fmt: skip
    cosines = nn.functional.cosine_similarity(first.unsqueeze(1), torch.cat([second, negatives]), dim=-1) / 0.2
    candidates = [[0, 1, 3], [1, 0, 2], [2, 1, 3]]  # without equal texts; the positive first
    expected = [-cosines[row, columns].log_softmax(0)[0] for row, columns in enumerate(candidates)]
    torch.testing.assert_close(loss.total, torch.stack(expected).sum())


def test_what_is_out_of_range_is_refused() -> None:
    for options in ({"temperature": 0.0}, {"max_cosine": 0.0}, {"max_cosine": 1.1}):
        with pytest.raises(ConfigError, match=r"takes a temperature above 0 and a max_cosine above 0 up to 1"):
            ContrastLoss(**options)  # type: ignore[arg-type]


def test_a_linear_map_learns_to_match_views() -> None:
    """From views that share a signal under strong noise, the map keeps the signal."""
    generator = torch.Generator().manual_seed(0)
    signal = torch.randn(32, 4, generator=generator)
    first, second = (torch.cat([signal, 3 * torch.randn(32, 4, generator=generator)], 1) for _ in range(2))
    weight = torch.eye(8, requires_grad=True)
    optimizer = torch.optim.Adam([weight], lr=0.03)
    for _ in range(150):
        optimizer.zero_grad()
        loss = nt_xent(first @ weight, second @ weight, temperature=0.1)
        (loss.total / loss.num_targets).backward()
        optimizer.step()
    first_vectors, second_vectors = (nn.functional.normalize(views @ weight, dim=1) for views in (first, second))
    matches = (first_vectors @ second_vectors.mT).argmax(1) == torch.arange(32)
    assert matches.float().mean() > 0.9
