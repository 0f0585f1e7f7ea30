"""Banded attention by blocks of keys: equal to full attention with the band as its mask.

Shapes: b batch, h heads, n queries, m context positions, c channels of one head.
"""

import pytest
import torch
from saved_bytes import LargestTensor, fit_slope, measure_saved_bytes
from torch import Tensor

from mnemic.encode.attention.band import MAX_BLOCK, BandBlocks, attend_band, compute_band_mask
from mnemic.encode.attention.full import KeyValues, compute_attention_weights
from mnemic.encode.masks import CausalMask

B, H, C = 2, 3, 4
REACHES = [0, 1, 2, 5, 16, 33, 60, 1000]
LENGTHS = [(1, 1), (7, 7), (33, 33), (70, 70), (1, 40), (19, 70)]  # queries, context positions
MASKS = ["ragged", "causal", "rows", "heads"]


def random_tensors(n: int, m: int) -> tuple[Tensor, KeyValues]:
    generator = torch.Generator().manual_seed(n + m)

    def draw(length: int) -> Tensor:
        return torch.randn(B, H, length, C, generator=generator, dtype=torch.float64)

    return draw(n), KeyValues(draw(m), draw(m))


def make_mask(kind: str, n: int, m: int) -> Tensor | CausalMask:
    """Make a mask with a shorter second text, and a hidden position in the first."""
    generator = torch.Generator().manual_seed(m)
    keys = torch.arange(m) < torch.tensor([m, max(2 * m // 3, 1)])[:, None]
    keys[0, m // 2] = m == 1
    if kind == "causal":
        return CausalMask(keys)
    if kind == "ragged":
        return keys[:, None, None]
    return torch.rand(B, H if kind == "heads" else 1, n, m, generator=generator) < 0.5


def band_of(n: int, m: int, reach: int) -> Tensor:
    """Return which pairs are within reach, written with two loops: n m."""
    return torch.tensor([[abs(m - n + row - column) <= reach for column in range(m)] for row in range(n)])


def attend_by_loops(query: Tensor, key_values: KeyValues, visible: Tensor) -> Tensor:
    """Attend one query of one head at a time, b h n c."""
    out = torch.zeros_like(query)
    for b, h, n in torch.cartesian_prod(*map(torch.arange, query.shape[:3])).tolist():
        columns = visible[b, h, n].nonzero().flatten().tolist()
        scores = [float(query[b, h, n] @ key_values.keys[b, h, m]) / C**0.5 for m in columns]
        weights = torch.tensor(scores, dtype=torch.float64).softmax(0).tolist() if columns else []
        for weight, m in zip(weights, columns):
            out[b, h, n] += weight * key_values.values[b, h, m]
    return out


@pytest.mark.parametrize("mask_kind", MASKS)
def test_a_band_equals_plain_loops(mask_kind: str) -> None:
    query, key_values = random_tensors(7, 19)
    mask = make_mask(mask_kind, 7, 19)
    dense = mask.to_dense_mask(7) if isinstance(mask, CausalMask) else mask
    visible = (dense & band_of(7, 19, 3)).expand(B, H, -1, -1)
    output = attend_band(query, key_values, mask, 3)
    torch.testing.assert_close(output.mixed, attend_by_loops(query, key_values, visible))
    assert torch.equal(output.has_visible.expand(B, H, -1, -1), visible.any(-1, keepdim=True))


@pytest.mark.parametrize("mask_kind", MASKS)
@pytest.mark.parametrize(("n", "m"), LENGTHS)
@pytest.mark.parametrize("reach", REACHES)
def test_a_band_equals_masked_full_attention(reach: int, n: int, m: int, mask_kind: str) -> None:
    """Also at lengths that no block divides, and if the queries are the end of the context."""
    query, key_values = random_tensors(n, m)
    mask = make_mask(mask_kind, n, m)
    dense = mask.to_dense_mask(n) if isinstance(mask, CausalMask) else mask
    visible = dense & band_of(n, m, reach)
    expected = compute_attention_weights(query, key_values.keys, visible) @ key_values.values
    torch.testing.assert_close(attend_band(query, key_values, mask, reach).mixed, expected)
    assert torch.equal(*torch.broadcast_tensors(compute_band_mask(mask, n, m, reach), visible))


def test_each_query_may_have_a_reach_of_its_own() -> None:
    query, key_values = random_tensors(33, 40)
    reaches = torch.randint(0, 9, (B, H, 33), generator=torch.Generator().manual_seed(0))
    mask = make_mask("ragged", 33, 40)
    visible = torch.stack(
        [
            torch.stack([torch.stack([band_of(33, 40, int(reach))[n] for n, reach in enumerate(row)]) for row in text])
            for text in reaches
        ]
    )
    expected = compute_attention_weights(query, key_values.keys, mask & visible) @ key_values.values
    torch.testing.assert_close(attend_band(query, key_values, mask, 8, reaches=reaches).mixed, expected)


@pytest.mark.parametrize("is_causal", [True, False])
def test_gradients_are_those_of_the_function(is_causal: bool) -> None:
    query, (keys, values) = random_tensors(5, 7)
    mask = make_mask("causal" if is_causal else "ragged", 5, 7)

    def run(query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        return attend_band(query, KeyValues(keys, values), mask, 2).mixed

    assert torch.autograd.gradcheck(run, [x.requires_grad_() for x in (query, keys, values)])


def test_a_block_never_scores_the_whole_text() -> None:
    blocks = BandBlocks.from_reach(10_000, 10_000, 8, is_causal=False)
    assert blocks.window <= 40
    assert BandBlocks.from_reach(10_000, 10_000, 5000, is_causal=True).window == 5000 + MAX_BLOCK


@pytest.mark.parametrize("is_causal", [True, False])
def test_memory_grows_with_the_length(is_causal: bool) -> None:
    def run(query: Tensor, mask: Tensor | CausalMask) -> Tensor:
        return attend_band(query, KeyValues(query, query), mask, 4).mixed

    sizes, saved = [2048, 8192, 32768], []
    for n in sizes:
        query = torch.randn(1, 1, n, 2, requires_grad=True)
        keys = torch.ones(1, n, dtype=torch.bool)
        mask = CausalMask(keys) if is_causal else keys[:, None, None]
        with LargestTensor() as largest:
            saved.append(measure_saved_bytes(run, query, mask))
        assert largest.num_bytes < n**2
    assert fit_slope(sizes, saved) < 1.05
