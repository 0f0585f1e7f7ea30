"""Scores and losses of pictures with captions, against sums that are written out."""

import pytest
import torch
from torch import Tensor

from mnemic.objectives.pictures.alignment import AlignmentLoss, rank_both_ways
from mnemic.recipe import ConfigError
from mnemic.respond.pictures.alignment import AlignmentHead

PICTURES, CAPTIONS, WORDS, REGIONS, WIDTH = 3, 4, 5, 6, 16


def make_states() -> tuple[Tensor, Tensor, Tensor]:
    """Make regions, words and the mask of words."""
    generator = torch.Generator().manual_seed(0)
    regions = torch.randn(PICTURES, REGIONS, WIDTH, generator=generator)
    words = torch.randn(CAPTIONS, WORDS, WIDTH, generator=generator)
    return regions, words, torch.arange(WORDS) < torch.tensor([[5], [2], [1], [4]])


@pytest.mark.parametrize("score", ["best", "all"])
def test_scores_are_sums_over_words_and_regions(score: str) -> None:
    regions, words, mask = make_states()
    scores = AlignmentHead(score=score)(regions, words, mask)  # type: ignore[arg-type]
    for k in range(PICTURES):
        for c in range(CAPTIONS):
            products = [[float(v @ s) / WIDTH**0.5 for v in regions[k]] for s in words[c][mask[c]]]
            expected = sum(max(row) if score == "best" else sum(max(0.0, value) for value in row) for row in products)
            assert float(scores[k, c]) == pytest.approx(expected, abs=1e-4)


def test_the_loss_ranks_both_ways_by_a_margin() -> None:
    scores = torch.randn(5, 5, generator=torch.Generator().manual_seed(1))
    ids = torch.tensor([0, 1, 2, 1, 4])  # two captions say the same
    expected = 0.0
    for k in range(5):
        for c in range(5):
            if ids[k] != ids[c]:
                expected += max(0.0, float(scores[k, c] - scores[k, k]) + 1)  # captions of a picture
                expected += max(0.0, float(scores[c, k] - scores[k, k]) + 1)  # pictures of a caption
    assert float(rank_both_ways(scores, ids, 1.0)) == pytest.approx(expected, abs=1e-4)


def test_scores_beyond_the_margin_cost_nothing() -> None:
    scores = 3 * torch.eye(4)
    assert float(rank_both_ways(scores, torch.arange(4), 2.9)) == 0
    assert float(rank_both_ways(scores, torch.arange(4), 3.5)) == pytest.approx(0.5 * 24)
    assert float(rank_both_ways(torch.zeros(4, 4), torch.zeros(4), 1.0)) == 0  # all captions are equal


def test_a_margin_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"objective.margin is above 0, not 0"):
        AlignmentLoss(margin=0)
