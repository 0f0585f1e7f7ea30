"""Low-rank and local attention: few global channels, full width nearby.

Shapes: b batch, n queries, m context positions, d width, h heads, k rank.
"""

import pytest
import torch
from saved_bytes import LargestTensor, fit_slope, measure_saved_bytes
from torch import Tensor

from mnemic.encode.attention import LowRankLocalAttention
from mnemic.encode.masks import CausalMask
from mnemic.encode.stacks import DecoderStack
from mnemic.recipe import ConfigError

D, HEADS, SIZE = 16, 4, 4


def make_attention(**options: object) -> LowRankLocalAttention:
    torch.manual_seed(0)
    return LowRankLocalAttention(D, heads=HEADS, **options).double().eval()  # type: ignore[arg-type]


def random_states(*shape: int) -> Tensor:
    return torch.randn(*shape, D, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def reference_attention(attention: LowRankLocalAttention, x: Tensor, visible: Tensor) -> Tensor:
    """Attend one head of one position at a time, n d; ``visible`` is n m."""
    project, num_global = attention.project, attention.project.global_heads
    out = torch.zeros_like(x)
    for n in range(x.shape[0]):
        heads, sees_any = [], False
        for h in range(HEADS):
            is_global = h < num_global
            start = h * project.rank if is_global else project.global_width + (h - num_global) * SIZE
            channels = slice(start, start + (project.rank if is_global else SIZE))
            columns = [m for m in range(x.shape[0]) if visible[n, m] and (is_global or abs(n - m) <= attention.reach)]
            sees_any = sees_any or bool(columns)
            if not columns:
                heads.append(x.new_zeros(SIZE))
                continue
            query = project.query(x[n])[channels]
            scores = torch.stack([query @ project.key(x[m])[channels] for m in columns]) / len(query) ** 0.5
            values = [project.value(x[m])[h * SIZE : (h + 1) * SIZE] for m in columns]
            heads.append(sum(weight * value for weight, value in zip(scores.softmax(0), values)))
        if sees_any:
            out[n] = project.out(torch.cat(heads))
    return out


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("options", [{}, {"global_heads": 2, "rank": 4}, {"global_heads": 0}, {"global_heads": HEADS}])
@pytest.mark.parametrize("mask_kind", ["ragged", "causal", "rows"])
def test_it_equals_a_plain_loop(mask_kind: str, options: dict[str, int], fused: bool) -> None:
    """A query that sees nothing, or nothing nearby, too."""
    attention, x = make_attention(fused=fused, reach=2, **options), random_states(2, 11)
    keys = torch.arange(11) < torch.tensor([11, 6])[:, None]
    keys[0, :2] = False  # the first two see nothing before them
    keys[1, 1:5] = False
    mask: Tensor | CausalMask = keys[:, None, None]
    if mask_kind == "causal":
        mask = CausalMask(keys)
    if mask_kind == "rows":
        mask = torch.rand(2, 1, 11, 11, generator=torch.Generator().manual_seed(2)) < 0.4
        mask[0, 0, 3] = False
    dense = mask.to_dense_mask(11) if isinstance(mask, CausalMask) else mask.expand(2, 1, 11, 11)
    actual = attention(x, x, mask)
    for text in range(2):
        torch.testing.assert_close(actual[text], reference_attention(attention, x[text], dense[text, 0]))


@pytest.mark.parametrize("rank", [1, 2, 4])
def test_global_logits_have_a_low_rank(rank: int) -> None:
    """Local ones have the rank of their band."""
    attention, x = make_attention(rank=rank, global_heads=2, reach=3), random_states(1, 30)
    scores = attention.attention_scores(x, x, torch.ones(1, 1, 30, 30, dtype=torch.bool))[0]
    ranks = torch.linalg.matrix_rank(scores.masked_fill(scores.isinf(), 0.0))
    assert ranks[:2].tolist() == [rank, rank]
    assert (ranks[2:] > SIZE).all()


def test_local_heads_see_no_further_than_their_reach() -> None:
    attention, x = make_attention(global_heads=0, reach=3), random_states(1, 20)
    changed = x.clone()
    changed[0, 10] += 1
    mask = torch.ones(1, 1, 1, 20, dtype=torch.bool)
    differs = (attention(x, x, mask) != attention(changed, changed, mask)).any(-1)[0]
    assert differs.nonzero().flatten().tolist() == list(range(7, 14))
    attention = make_attention(global_heads=1, reach=3)
    assert (attention(x, x, mask) != attention(changed, changed, mask)).any(-1).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_hidden_keys_of_a_causal_mask_get_no_weight(dtype: torch.dtype) -> None:
    """The channel that hides them works in every precision."""
    attention, x = make_attention(global_heads=HEADS).to(dtype), random_states(1, 9).to(dtype)
    keys = torch.arange(9).unsqueeze(0) % 3 != 0
    changed = torch.where(keys.unsqueeze(-1), x, x + 5)
    before, after = (attention(states, states, CausalMask(keys)) for states in (x, changed))
    assert torch.equal(before[keys], after[keys])
    assert (before[0, 0] == 0).all()  # it sees nothing


@pytest.mark.parametrize("fused", [True, False])
def test_decoding_in_chunks_equals_all_at_once(fused: bool) -> None:
    torch.manual_seed(0)
    spec = {"kind": "low-rank-local", "reach": 2, "fused": fused}
    stack = DecoderStack(D, cross=False, attention=spec).double().eval()
    x, mask = random_states(2, 20), torch.arange(20) != torch.tensor([[3], [11]])
    expected, cache, states = stack(x, mask).states, stack.empty_cache(x), []
    for chunk, chunk_mask in zip(x.split([1, 7, 1, 11], 1), mask.split([1, 7, 1, 11], 1)):
        decoded = stack(chunk, chunk_mask, cache)
        states.append(decoded.states)
        cache = decoded.cache
    torch.testing.assert_close(torch.cat(states, 1), expected)


@pytest.mark.parametrize("is_causal", [True, False])
def test_memory_grows_with_the_length(is_causal: bool) -> None:
    """Neither the band nor the fused global heads make or keep anything of size n²."""
    sizes, saved = [1024, 4096, 16384], []
    attention = LowRankLocalAttention(4, heads=2, rank=1, reach=4)
    for n in sizes:
        x, mask = torch.randn(1, n, 4), make_length_mask(n, is_causal)
        with LargestTensor() as largest:
            saved.append(measure_saved_bytes(attention, x, x, mask))
        assert largest.num_bytes < n**2
    assert fit_slope(sizes, saved) < 1.05


@pytest.mark.parametrize("is_causal", [True, False])
def test_plain_matmuls_keep_all_scores(is_causal: bool) -> None:
    """The test above would notice."""
    attention, x = LowRankLocalAttention(4, heads=2, rank=1, fused=False), torch.randn(1, 2048, 4)
    with LargestTensor() as largest:
        assert measure_saved_bytes(attention, x, x, make_length_mask(2048, is_causal)) > 2048**2
    assert largest.num_bytes > 2048**2


def make_length_mask(n: int, is_causal: bool) -> Tensor | CausalMask:
    keys = torch.ones(1, n, dtype=torch.bool)
    return CausalMask(keys) if is_causal else keys[:, None, None]


def test_a_decoder_over_a_source_needs_another_kind_there() -> None:
    with pytest.raises(ConfigError, match=r"'low-rank-local' cannot be used over a source: set cross_attention.*full"):
        DecoderStack(D, attention={"kind": "low-rank-local"})
    DecoderStack(D, attention={"kind": "low-rank-local"}, cross_attention={"kind": "full"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rank": 5}, "rank is 5; a head has 4 channels"),
        ({"rank": 0}, "rank is 0"),
        ({"reach": -1}, "reach is -1"),
        ({"global_heads": 5}, "of 4 heads 0 to 4 can be global"),
        ({"heads": 3}, "does not divide into 3 heads"),
    ],
)
def test_mistakes_are_named(options: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        LowRankLocalAttention(D, **options)  # type: ignore[arg-type]
