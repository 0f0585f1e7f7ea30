"""Positions and embeddings: formulas, explicit positions, and error messages."""

import math

import pytest
import torch
from torch import Tensor

from mnemic.encode.embeddings import Embeddings
from mnemic.encode.positions import POSITIONS
from mnemic.recipe import ConfigError, build

TOKENS = torch.tensor([[3, 1, 4, 1, 5], [9, 2, 6, 0, 0]])
MASK = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])


@pytest.mark.parametrize("kind", POSITIONS)
def test_explicit_positions_equal_counted_ones(kind: str) -> None:
    positions = build(POSITIONS, {"kind": kind}, width=6)
    counted = positions(TOKENS, start=2)
    assert counted.shape == (5, 6)
    explicit = torch.tensor([[2, 3, 4, 5, 6], [6, 5, 4, 3, 2]])
    explicit_embedding = positions(TOKENS, positions=explicit).expand(2, 5, 6)
    torch.testing.assert_close(explicit_embedding[0], counted)
    torch.testing.assert_close(explicit_embedding[1], counted.flip(0))


def test_sinusoids_are_the_papers_formula() -> None:
    table = build(POSITIONS, {"kind": "sinusoidal"}, width=6)(torch.zeros(1, 50))
    for position in range(50):
        for pair in range(3):
            angle = position / 10000 ** (2 * pair / 6)
            assert table[position, 2 * pair].item() == pytest.approx(math.sin(angle), abs=1e-5)
            assert table[position, 2 * pair + 1].item() == pytest.approx(math.cos(angle), abs=1e-5)


@pytest.mark.parametrize(("start", "positions"), [(0, None), (3, None), (0, TOKENS), (0, TOKENS - 4)])
def test_positions_beyond_the_learned_ones_are_refused(start: int, positions: Tensor | None) -> None:
    learned = build(POSITIONS, {"kind": "learned", "length": 7}, width=6)
    assert learned(TOKENS, start=2).shape == (5, 6)
    tokens = TOKENS if start else torch.zeros(1, 8)
    with pytest.raises(ValueError, match=r"there are 7 learned positions, 0 to 6.*sinusoidal"):
        learned(tokens, start=start, positions=positions)


def test_an_embedding_is_the_sum_of_its_parts() -> None:
    embeddings = Embeddings(6, 10, segments=2, norm=False, positions={"kind": "learned"})
    segments = torch.tensor([[0, 0, 1, 1, 1], [0, 1, 0, 0, 0]])
    actual = embeddings(TOKENS, MASK, segments=segments, start=1)
    for row, position in [(0, 0), (0, 4), (1, 1)]:
        token, segment = TOKENS[row, position], segments[row, position]
        position_embedding = embeddings.positions.table[position + 1]
        expected = embeddings.tokens[token] + embeddings.segments[segment] + position_embedding
        torch.testing.assert_close(actual[row, position], expected)
    assert (actual[1, 3:] == 0).all()
    plain = embeddings(TOKENS, MASK)
    torch.testing.assert_close(plain, embeddings(TOKENS, MASK, segments=torch.zeros_like(TOKENS)))


def test_scaled_tokens_are_as_large_as_sinusoidal_positions() -> None:
    torch.manual_seed(0)
    options = {"norm": False, "positions": {"kind": "none"}}
    plain, scaled = Embeddings(64, 500, **options), Embeddings(64, 500, scale=True, **options)
    scaled.load_state_dict(plain.state_dict())
    tokens = torch.arange(500)[None]
    mask = torch.ones_like(tokens, dtype=torch.bool)
    torch.testing.assert_close(scaled(tokens, mask), 8 * plain(tokens, mask))
    assert scaled(tokens, mask).std().item() == pytest.approx(1, abs=0.05)


def test_the_norm_is_a_layer_norm_of_the_sum() -> None:
    torch.manual_seed(0)
    plain, normed = Embeddings(6, 10, norm=False), Embeddings(6, 10, norm=True, epsilon=0.1)
    normed.load_state_dict(plain.state_dict(), strict=False)
    expected = torch.nn.functional.layer_norm(plain(TOKENS, MASK), (6,), eps=0.1)
    torch.testing.assert_close(normed(TOKENS, MASK), expected * MASK.unsqueeze(-1))


def test_any_number_of_leading_axes() -> None:
    embeddings = Embeddings(6, 10)
    actual = embeddings(TOKENS.expand(3, 2, 5), MASK.expand(3, 2, 5))
    torch.testing.assert_close(actual[1], embeddings(TOKENS, MASK))


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match="build with segments=2"):
        Embeddings(6, 10)(TOKENS, MASK, segments=TOKENS)
    with pytest.raises(ConfigError, match="width 5 is odd"):
        build(POSITIONS, {"kind": "sinusoidal"}, width=5)
    with pytest.raises(ConfigError, match="at least 1"):
        Embeddings(6, 0)


def test_with_one_segment_the_segment_ids_are_ignored() -> None:
    """As in RoBERTa, whose pairs differ only by their separator tokens."""
    one_segment = Embeddings(6, 10, segments=1)
    segment_ids = torch.tensor([[0, 0, 1, 1, 1], [0, 1, 0, 0, 0]])
    assert torch.equal(one_segment(TOKENS, MASK, segments=segment_ids), one_segment(TOKENS, MASK))
    two_segments = Embeddings(6, 10, segments=2)
    assert not torch.equal(two_segments(TOKENS, MASK, segments=segment_ids), two_segments(TOKENS, MASK))
