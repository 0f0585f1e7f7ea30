"""Distance-aware attention alone: its function of the distance, mirrors, and near and far heads.

Shapes: n tokens, d width, h heads.
"""

import pytest
import torch
from torch import Tensor, nn

from mnemic.encode.attention import DistanceAwareAttention
from mnemic.encode.attention.distance_aware import rescale_distances
from mnemic.encode.causal import CausalEncoder
from mnemic.encode.transformer import TransformerEncoder

SHAPES = torch.tensor([-6.0, -1.0, 0.0, 0.5, 4.0], dtype=torch.float64).unsqueeze(1)
NO_POSITIONS = {"kind": "sum", "positions": {"kind": "none"}}


def rescale(*distances: float) -> Tensor:
    """Return f for each of ``SHAPES`` (rows) and weighted distance (columns)."""
    return rescale_distances(torch.tensor(distances, dtype=torch.float64), SHAPES)


def test_the_factor_is_the_formula() -> None:
    distances = torch.linspace(-8, 8, 33, dtype=torch.float64)
    expected = (1 + SHAPES.exp()) / (1 + (SHAPES - distances).exp())
    torch.testing.assert_close(rescale(*distances.tolist()), expected)


def test_the_factor_is_one_without_distance() -> None:
    assert torch.equal(rescale(0.0), torch.ones(len(SHAPES), 1, dtype=torch.float64))


def test_the_factor_vanishes_below() -> None:
    torch.testing.assert_close(rescale(-80.0, -1e6), torch.zeros(len(SHAPES), 2, dtype=torch.float64))


def test_the_factor_is_bounded_above() -> None:
    bound = (1 + SHAPES.exp()).expand(-1, 2)
    torch.testing.assert_close(rescale(80.0, 1e6), bound)


def test_the_factor_grows_with_the_distance() -> None:
    assert (rescale(*torch.linspace(-9, 9, 50).tolist()).diff(dim=1) > 0).all()


def test_the_factor_is_tuned_by_its_shape() -> None:
    """A larger v gives larger factors above 0 and smaller ones below."""
    assert (rescale(-2.0, 2.0)[:, 1].diff() > 0).all()
    assert (rescale(-2.0, 2.0)[:, 0].diff() < 0).all()


@pytest.mark.parametrize("function", ["learned", "clip", "linear", "exponent", "sigmoid"])
def test_every_function_is_one_at_distance_zero(function: str) -> None:
    attention = DistanceAwareAttention(16, function=function)  # type: ignore[arg-type]
    factors = attention.compute_factors(5, 5)
    torch.testing.assert_close(factors.diagonal(dim1=1, dim2=2), torch.ones(4, 5))
    assert factors.isfinite().all()
    assert attention.compute_factors(2, 9_000).isfinite().all()


def make_encoder(causal: bool) -> nn.Module:
    torch.manual_seed(0)
    attention = {"kind": "distance-aware", "heads": 2}
    if causal:
        return CausalEncoder(
            16, 9, embeddings=NO_POSITIONS, stack={"kind": "transformer", "attention": attention}
        ).eval()
    return TransformerEncoder(16, 9, embeddings=NO_POSITIONS, stack={"kind": "encoder", "attention": attention}).eval()


@pytest.mark.parametrize("causal", [True, False])
def test_a_mirrored_text_gives_mirrored_states(causal: bool) -> None:
    """Unless the mask has a direction."""
    encoder, tokens = make_encoder(causal), torch.tensor([[3, 1, 4, 1, 5, 8, 2, 6]])
    mask = torch.ones_like(tokens, dtype=torch.bool)
    is_mirrored = torch.allclose(encoder(tokens.flip(1), mask).flip(1), encoder(tokens, mask), atol=1e-5)
    assert is_mirrored != causal


@pytest.mark.parametrize(("weight", "is_near"), [(-20.0, True), (20.0, False)])
def test_a_head_looks_near_or_far(weight: float, is_near: bool) -> None:
    """With w below 0 at itself alone, with w above 0 at all others."""
    attention = DistanceAwareAttention(8, heads=1)
    with torch.no_grad():
        for linear in (attention.project.query, attention.project.key):
            linear.weight.copy_(3 * torch.eye(8))
            linear.bias.zero_()
        attention.weight.fill_(weight)
    x = torch.ones(1, 6, 8)  # equal tokens: only distances differ
    weights = attention.attention_weights(x, x, torch.ones(1, 1, 1, 6, dtype=torch.bool))[0, 0]
    own_weights = weights.diagonal()
    assert (own_weights > 0.99).all() if is_near else (own_weights < 0.01).all()


def test_neighbors_fade_with_the_distance() -> None:
    attention = DistanceAwareAttention(8, heads=1)
    with torch.no_grad():
        for linear in (attention.project.query, attention.project.key):
            linear.weight.copy_(torch.eye(8))
            linear.bias.zero_()
        attention.weight.fill_(-1.0)
    x = torch.ones(1, 9, 8)
    weights = attention.attention_weights(x, x, torch.ones(1, 1, 1, 9, dtype=torch.bool))[0, 0, 4]
    assert (weights[:5].diff() > 0).all()
    torch.testing.assert_close(weights, weights.flip(0))


def test_a_hidden_position_is_hidden_after_the_product() -> None:
    """A zero of the ReLU still has its share; a hidden position has none."""
    attention = DistanceAwareAttention(8, heads=1)
    with torch.no_grad():
        attention.project.query.weight.copy_(torch.eye(8))
        attention.project.key.weight.copy_(-torch.eye(8))
        attention.project.query.bias.zero_()
        attention.project.key.bias.zero_()
    x = torch.ones(1, 4, 8)  # all scores are negative
    mask = torch.tensor([True, True, False, True])
    weights = attention.attention_weights(x, x, mask)
    torch.testing.assert_close(weights, (mask / 3).expand(1, 1, 4, 4))
