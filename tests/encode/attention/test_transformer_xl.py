"""Attention by content and distance: equal to a slow twin, both ways, causal and clamped.

Shapes: b batch, n queries, m context positions, d width, h heads, c channels of one head.
"""

from math import cos, sin
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from mnemic.encode.attention import FullAttention
from mnemic.encode.attention.transformer_xl import TransformerXLAttention, align_distances, encode_distances
from mnemic.encode.masks import CausalMask
from mnemic.recipe import ConfigError

D, HEADS = 12, 2
C = D // HEADS


def make_attention(width: int = D, **options: Any) -> TransformerXLAttention:
    """Make attention in float64, with biases that are not small."""
    torch.manual_seed(0)
    attention = TransformerXLAttention(width, heads=HEADS, **options).double().eval()
    nn.init.normal_(attention.content_bias)
    nn.init.normal_(attention.distance_bias)
    return attention


def random_states(*shape: int, width: int = D) -> Tensor:
    return torch.randn(*shape, width, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def slow_attention(attention: Any, x: Tensor, context: Tensor, mask: Tensor) -> Tensor:
    """Compute the definition, one score of one head at a time; ``mask`` is b n m."""
    project, offset = attention.project, context.shape[1] - x.shape[1]
    out = torch.zeros_like(x)
    for b, n in ((b, n) for b in range(x.shape[0]) for n in range(x.shape[1])):
        visible = mask[b, n].nonzero().flatten().tolist()
        heads = []
        for h in range(HEADS):
            channels = slice(h * C, (h + 1) * C)
            query = project.query.weight[channels] @ x[b, n]
            scores = []
            for j in visible:
                distance = offset + n - j
                if attention.clamp:
                    distance = min(max(distance, -attention.clamp), attention.clamp)
                angles = [distance / 10_000 ** (2 * i / D) for i in range(D // 2)]
                r = torch.tensor([*map(sin, angles), *map(cos, angles)], dtype=torch.float64)
                content = (query + attention.content_bias[h, 0]) @ (project.key.weight[channels] @ context[b, j])
                position = (query + attention.distance_bias[h, 0]) @ (attention.distance.weight[channels] @ r)
                scores.append((content + position) / C**0.5)
            weights = torch.stack(scores).softmax(0) if visible else []
            values = [project.value.weight[channels] @ context[b, j] for j in visible]
            heads.append(sum((w * v for w, v in zip(weights, values)), torch.zeros(C, dtype=torch.float64)))
        out[b, n] = project.out.weight @ torch.cat(heads)
    return out


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "plain"])
@pytest.mark.parametrize("clamp", [0, 2])
@pytest.mark.parametrize(("n", "m"), [(5, 5), (3, 7), (1, 6), (1, 1)])
def test_it_equals_the_definition(fused: bool, clamp: int, n: int, m: int) -> None:
    """Queries see what is before and after them, as far as each one's mask lets them."""
    attention, context = make_attention(fused=fused, clamp=clamp), random_states(2, m)
    mask = torch.rand(2, n, m, generator=torch.Generator().manual_seed(2)) < 0.7
    x = context[:, m - n :] + 1
    actual = attention(x, context, mask.unsqueeze(1))
    torch.testing.assert_close(actual, slow_attention(attention, x, context, mask))


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "plain"])
@pytest.mark.parametrize(("n", "m"), [(6, 6), (2, 9), (1, 4)])
def test_causal_attention_equals_the_definition(fused: bool, n: int, m: int) -> None:
    """Also with padding, which counts as distance, and with a memory before the queries."""
    attention, context = make_attention(fused=fused), random_states(3, m)
    keys = torch.ones(3, m, dtype=torch.bool)
    keys[1, m // 2] = False
    keys[2] = False
    mask, x = CausalMask(keys), context[:, m - n :]
    dense = mask.to_dense_mask(n)
    torch.testing.assert_close(attention(x, context, mask), slow_attention(attention, x, context, dense[:, 0]))
    torch.testing.assert_close(attention(x, context, mask), attention(x, context, dense))


def test_gradients_are_those_of_the_definition() -> None:
    attention, x = make_attention(), random_states(2, 5)
    mask = torch.ones(2, 5, 5, dtype=torch.bool)
    weights = list(attention.parameters())
    actual = torch.autograd.grad(attention(x, x, mask.unsqueeze(1)).square().sum(), weights)
    expected = torch.autograd.grad(slow_attention(attention, x, x, mask).square().sum(), weights)
    torch.testing.assert_close(actual, expected)


def test_all_sines_come_before_all_cosines() -> None:
    vectors = encode_distances(torch.tensor([3, -3]), 4, 0, torch.float64)
    expected = [sin(3), sin(0.03), cos(3), cos(0.03)]
    torch.testing.assert_close(vectors[0], torch.tensor(expected, dtype=torch.float64))
    torch.testing.assert_close(vectors[1], vectors[0] * torch.tensor([-1, -1, 1, 1]))


@pytest.mark.parametrize("n", [1, 2, 5])
def test_scores_of_distances_are_aligned_with_keys(n: int) -> None:
    m = 7
    distances = torch.arange(m - 1, -n, -1)  # of the last query, and on to the first query's last key
    aligned = align_distances(distances.expand(2, n, -1))[..., :m]
    expected = torch.arange(m - n, m).unsqueeze(1) - torch.arange(m)
    assert torch.equal(aligned, expected.expand(2, n, m))


def test_without_distances_and_biases_it_is_full_attention() -> None:
    attention, full = make_attention(), FullAttention(D, heads=HEADS).double()
    with torch.no_grad():
        for weight in (attention.distance.weight, attention.content_bias, attention.distance_bias):
            weight.zero_()
        full.load_state_dict({name: torch.zeros_like(weight) for name, weight in full.state_dict().items()})
        full.load_state_dict(
            {name: weight for name, weight in attention.state_dict().items() if "project" in name}, strict=False
        )
    x, mask = random_states(2, 6), torch.ones(1, 1, 6, 6, dtype=torch.bool)
    torch.testing.assert_close(attention(x, x, mask), full(x, x, mask))


def test_only_distance_counts_and_not_the_position() -> None:
    """The same words further to the right, after hidden ones, give the same states."""
    attention, x = make_attention(), random_states(2, 5)
    moved = torch.cat([random_states(2, 20), x], 1)
    keys = torch.arange(25) >= 20
    expected = attention(x, x, torch.ones(1, 1, 5, 5, dtype=torch.bool))
    torch.testing.assert_close(attention(moved, moved, keys[None, None, None])[:, 20:], expected)


def test_a_clamp_makes_far_positions_equally_far() -> None:
    """The same word at distances of 3 and more gets the same score; nearer ones do not."""
    attention, context = make_attention(clamp=3), random_states(1, 1).expand(1, 9, D)
    visible = torch.ones(1, 1, 1, 9, dtype=torch.bool)
    scores = attention.attention_scores(context[:, -1:], context, visible)[0, :, 0]  # h m
    torch.testing.assert_close(scores[:, :6], scores[:, :1].expand(-1, 6))
    assert ((scores[:, 6:] - scores[:, :1]).abs() > 1e-3).all()
    attention.clamp = 0
    unclamped = attention.attention_scores(context[:, -1:], context, visible)[0, :, 0]
    torch.testing.assert_close(unclamped[:, 5:], scores[:, 5:])
    assert ((unclamped[:, :5] - unclamped[:, 5:6]).abs() > 1e-3).all()


def test_token_by_token_equals_all_at_once() -> None:
    attention, x = make_attention(), random_states(2, 7)
    expected = attention(x, x, CausalMask(torch.ones(2, 7, dtype=torch.bool)))
    for n in range(1, 8):
        mask = CausalMask(torch.ones(2, n, dtype=torch.bool))
        key_values = attention.project_key_values(x[:, :n])
        torch.testing.assert_close(attention.attend(x[:, n - 1 : n], key_values, mask), expected[:, n - 1 : n])


@pytest.mark.parametrize("is_causal", [True, False])
def test_no_tensor_has_queries_keys_and_channels(is_causal: bool) -> None:
    """Neither in the forward pass nor saved for the gradient."""
    n, width = 64, 128
    attention = make_attention(width).train()
    x = random_states(1, n, width=width).requires_grad_()
    keys = torch.ones(1, n, dtype=torch.bool)
    sizes: list[int] = []

    def save_size(tensor: Tensor) -> Tensor:
        sizes.append(tensor.untyped_storage().nbytes() // tensor.element_size())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(save_size, lambda tensor: tensor):
        attention(x, x, CausalMask(keys) if is_causal else keys[:, None, None]).sum().backward()
    assert max(sizes) <= 2 * HEADS * n * (2 * n + 1)  # one score per distance; n · n · c is eight times that


def test_dropout_drops_distances_too() -> None:
    attention, x = make_attention(dropout=0.5), random_states(1, 6)
    query = attention.project.project_query(x)
    assert torch.equal(attention.distance_scores(query, 6), attention.distance_scores(query, 6))
    attention.train()
    assert not torch.equal(attention.distance_scores(query, 6), attention.distance_scores(query, 6))


@pytest.mark.parametrize(("width", "clamp", "message"), [(9, 0, "width 9 is odd"), (8, -1, "not -1")])
def test_mistakes_are_explained(width: int, clamp: int, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TransformerXLAttention(width, heads=1, clamp=clamp)
