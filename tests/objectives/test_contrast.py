"""Contrastive losses: values by hand, slow twins, false negatives, gradients."""

from math import exp, log

import pytest
import torch
from torch import Tensor, nn

from mnemic.models import IGNORE
from mnemic.objectives.contrast import info_nce, nt_xent


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
