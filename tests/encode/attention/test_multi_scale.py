"""Multi-scale attention: windows by head, head counts by layer.

Shapes: b batch, n queries, m context positions, d width, h heads.
"""

from math import exp

import pytest
import torch
from torch import Tensor

from mnemic.encode.attention import FullAttention, MultiScaleAttention
from mnemic.encode.attention.multi_scale import count_heads
from mnemic.encode.masks import CausalMask
from mnemic.encode.stacks import DecoderStack, EncoderStack
from mnemic.recipe import ConfigError

D = 20


def make_attention(heads: int = 10, **options: object) -> MultiScaleAttention:
    torch.manual_seed(0)
    return MultiScaleAttention(D, heads=heads, **options).double().eval()  # type: ignore[arg-type]


def random_states(*shape: int) -> Tensor:
    return torch.randn(*shape, D, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def reach_of(scale: int, n: int) -> int:
    return [1, 3, max(n // 16, 1), max(n // 8, 1), max(n // 4, 1)][scale]


def reference_attention(attention: MultiScaleAttention, x: Tensor, visible: list[list[int]]) -> Tensor:
    """Attend one head of one position at a time, n d; ``visible`` are each position's keys."""
    project, size = attention.project, D // attention.heads
    scales = [scale for scale, count in enumerate(attention.heads_of_scale) for _ in range(count)]
    out = torch.zeros_like(x)
    for n, columns in enumerate(visible):
        heads = []
        for h, scale in enumerate(scales):
            channels = slice(h * size, (h + 1) * size)
            near = [m for m in columns if abs(n - m) <= reach_of(scale, len(columns))]
            scores = torch.stack([project.query(x[n])[channels] @ project.key(x[m])[channels] for m in near])
            weights = (scores / size**0.5).softmax(0)
            heads.append(sum(weight * project.value(x[m])[channels] for weight, m in zip(weights, near)))
        out[n] = project.out(torch.cat(heads))
    return out


def test_it_equals_a_plain_loop() -> None:
    """Each text has windows by its own length, however long its neighbors are."""
    attention, x = make_attention(), random_states(2, 37)
    assert min(attention.heads_of_scale) == 2
    keys = torch.arange(37) < torch.tensor([37, 18])[:, None]
    actual = attention(x, x, keys[:, None, None])
    for text, length in enumerate([37, 18]):
        expected = reference_attention(attention, x[text], [list(range(length))] * length)
        torch.testing.assert_close(actual[text, :length], expected[:length])


def test_a_decoder_counts_the_text_so_far() -> None:
    attention, x = make_attention(), random_states(1, 37)
    actual = attention(x, x, CausalMask(torch.ones(1, 37, dtype=torch.bool)))
    expected = reference_attention(attention, x[0], [list(range(n + 1)) for n in range(37)])
    torch.testing.assert_close(actual[0], expected)


def test_scores_are_those_of_the_windows() -> None:
    attention, x = make_attention(), random_states(2, 40)
    keys = torch.arange(40) < torch.tensor([40, 33])[:, None]
    scores = attention.attention_scores(x, x, keys[:, None, None])
    scales = [scale for scale, count in enumerate(attention.heads_of_scale) for _ in range(count)]
    for text, length in enumerate([40, 33]):
        for h, scale in enumerate(scales):
            counts = scores[text, h].isfinite().sum(-1)
            assert counts[length // 2] == 2 * reach_of(scale, length) + 1
            assert counts[0] == reach_of(scale, length) + 1
    mixed = scores.softmax(-1).nan_to_num(0) @ attention.project_key_values(x).values
    expected = attention.project.merge_heads(mixed)
    torch.testing.assert_close(attention(x, x, keys[:, None, None])[keys], expected[keys])


@pytest.mark.parametrize("heads", [1, 2, 4, 5, 8, 12, 16])
@pytest.mark.parametrize("alpha", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("depth", [1, 2, 6, 12])
def test_heads_of_all_scales_sum_to_the_heads(heads: int, alpha: float, depth: int) -> None:
    counts = [count_heads(heads, alpha, layer, depth) for layer in range(depth)]
    assert all(sum(row) == heads and min(row) >= 0 for row in counts)
    uniform = [heads / 5] * 5
    assert all(abs(count - share) < 1 for count, share in zip(counts[-1], uniform))  # the last layer is uniform
    if alpha == 0:
        assert len(set(counts)) == 1
    means = [sum(scale * count for scale, count in enumerate(row)) / heads for row in counts]
    assert means == sorted(means)  # windows grow from layer to layer


def test_head_counts_are_the_rounded_softmax() -> None:
    weights = [exp(0.5 * steps / 2) for steps in (4, 3, 2, 1, 0)]  # the second of three layers
    shares = [100 * weight / sum(weights) for weight in weights]
    counts = count_heads(100, 0.5, 1, 3)
    assert all(abs(count - share) < 1 for count, share in zip(counts, shares))
    assert count_heads(10, 0.5, 2, 3) == (2, 2, 2, 2, 2)
    assert count_heads(4, 0.5, 2, 3) == (0, 1, 1, 1, 1)


def test_layers_know_their_number() -> None:
    stack = EncoderStack(32, depth=3, attention={"kind": "multi-scale", "heads": 8})
    counts = [block.attention.heads_of_scale for block in stack.blocks]
    assert counts == [count_heads(8, 0.5, layer, 3) for layer in range(3)]
    assert counts[0] != counts[2]


def test_a_window_over_the_whole_text_is_full_attention() -> None:
    attention, x = make_attention(), random_states(2, 2)
    full = FullAttention(D, heads=10).double().eval()
    full.load_state_dict(attention.state_dict())
    mask = torch.ones(1, 1, 1, 2, dtype=torch.bool)
    torch.testing.assert_close(attention(x, x, mask), full(x, x, mask))


def test_decoding_token_by_token_equals_all_at_once() -> None:
    torch.manual_seed(0)
    stack = DecoderStack(D, cross=False, attention={"kind": "multi-scale", "heads": 5}).double().eval()
    x, mask = random_states(2, 40), torch.ones(2, 40, dtype=torch.bool)
    expected, cache, states = stack(x, mask).states, stack.empty_cache(x), []
    for chunk, chunk_mask in zip(x.split(3, 1), mask.split(3, 1)):
        decoded = stack(chunk, chunk_mask, cache)
        states.append(decoded.states)
        cache = decoded.cache
    torch.testing.assert_close(torch.cat(states, 1), expected)


def test_mistakes_are_named() -> None:
    with pytest.raises(ConfigError, match="alpha is -1"):
        MultiScaleAttention(D, alpha=-1.0)
    with pytest.raises(ConfigError, match="does not divide into 3 heads"):
        MultiScaleAttention(D, heads=3)
