"""Viterbi's chains of regions equal those of a search through all chains."""

from itertools import pairwise, product

import pytest
import torch

from mnemic.predict.pictures.chain_decoding import decode_chain

WORDS, REGIONS = 5, 4


def search_all_chains(scores: list[list[float]], beta: float) -> tuple[int, ...]:
    """Return the best of all chains."""

    def energy(chain: tuple[int, ...]) -> float:
        return sum(row[region] for row, region in zip(scores, chain)) + beta * sum(a == b for a, b in pairwise(chain))

    return max(product(range(len(scores[0])), repeat=len(scores)), key=energy)


@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0, 2.5])
def test_chains_are_the_best_of_all(beta: float) -> None:
    scores = torch.randn(20, WORDS, REGIONS, generator=torch.Generator().manual_seed(1))
    mask = torch.arange(WORDS) < torch.randint(1, WORDS + 1, (20, 1), generator=torch.Generator().manual_seed(2))
    chains = decode_chain(scores.masked_fill(~mask.unsqueeze(2), 9.0), mask, beta=beta)
    for row, (chain, length) in enumerate(zip(chains.tolist(), mask.sum(1).tolist())):
        assert tuple(chain[:length]) == search_all_chains(scores[row, :length].tolist(), beta)
        assert chain[length:] == [-1] * (WORDS - length)


def test_without_beta_each_word_is_aligned_by_itself_and_with_a_large_one_all_together() -> None:
    scores = torch.randn(8, WORDS, REGIONS, generator=torch.Generator().manual_seed(1))
    mask = torch.ones(8, WORDS, dtype=torch.bool)
    torch.testing.assert_close(decode_chain(scores, mask), scores.argmax(2))
    together = scores.sum(1).argmax(1, keepdim=True).expand(-1, WORDS)
    torch.testing.assert_close(decode_chain(scores, mask, beta=1e4), together)
    assert (together != scores.argmax(2)).any()


def test_a_penalty_for_neighbors_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 0, not -1"):
        decode_chain(torch.zeros(1, 2, 2), torch.ones(1, 2, dtype=torch.bool), beta=-1)
