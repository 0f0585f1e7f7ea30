"""The contract of all attention kinds, then properties of full attention alone.

Shapes: b batch, n queries, m context positions, d width, h heads, c channels of one head.
"""

import pytest
import torch
from torch import Tensor
from torch.func import functional_call, stack_module_state, vmap

from mnemic.encode.attention import ATTENTIONS, FullAttention
from mnemic.encode.masks import CausalMask
from mnemic.recipe import ConfigError, build, select_kinds

D = 32
ROW_KINDS = select_kinds(ATTENTIONS, supports_rows=True)
CAUSAL_KINDS = select_kinds(ATTENTIONS, supports_causal=True)


def make_attention(kind: str, seed: int = 0, **facts: bool) -> torch.nn.Module:
    torch.manual_seed(seed)
    return build(ATTENTIONS, {"kind": kind}, width=D, **facts).eval()


def random_states(*shape: int) -> Tensor:
    return torch.randn(*shape, D, generator=torch.Generator().manual_seed(1))


def full_mask(n: int, m: int) -> Tensor:
    return torch.ones(1, 1, n, m, dtype=torch.bool)


@pytest.mark.parametrize("kind", ATTENTIONS)
def test_padding_changes_nothing(kind: str) -> None:
    """The same words give the same vectors, however much padding follows them."""
    attention, padded = make_attention(kind), random_states(2, 12)
    words = padded[:, :7]
    visible = torch.arange(12) < 7
    padded_output = attention(padded, padded, visible.expand(1, 1, 12, 12))[:, :7]
    torch.testing.assert_close(padded_output, attention(words, words, full_mask(7, 7)))


@pytest.mark.parametrize("kind", ROW_KINDS)
def test_the_batch_changes_nothing(kind: str) -> None:
    attention, x = make_attention(kind), random_states(3, 7)
    mask = torch.rand(3, 1, 7, 7, generator=torch.Generator().manual_seed(2)) < 0.6
    alone = attention(x[1:2], x[1:2], mask[1:2])
    torch.testing.assert_close(attention(x, x, mask)[1:2], alone)


@pytest.mark.parametrize("kind", select_kinds(ATTENTIONS, supports_context=True))
def test_a_query_may_see_more_context_than_itself(kind: str) -> None:
    """The last queries alone, with the full context, give the same rows as all queries."""
    attention, x = make_attention(kind), random_states(2, 30)
    full_output = attention(x, x, full_mask(30, 30))
    tail = attention(x[:, -4:], x, full_mask(4, 30))
    torch.testing.assert_close(tail, full_output[:, -4:])


@pytest.mark.parametrize("kind", ROW_KINDS)
def test_masked_positions_change_nothing(kind: str) -> None:
    attention, x = make_attention(kind), random_states(2, 7)
    causal = torch.ones(7, 7, dtype=torch.bool).tril()[None, None]
    changed = torch.cat([x[:, :4], x[:, 4:] + 1], 1)
    before, after = attention(x, x, causal), attention(changed, changed, causal)
    torch.testing.assert_close(before[:, :4], after[:, :4])
    assert (before[:, 4:] != after[:, 4:]).any(-1).all()


@pytest.mark.parametrize("kind", ATTENTIONS)
def test_hidden_keys_change_nothing(kind: str) -> None:
    """Other texts of the batch neither; a text without any real token comes out as zeros."""
    attention, x = make_attention(kind), random_states(3, 9)
    keys = torch.arange(9) < torch.tensor([9, 5, 0])[:, None]
    actual = attention(x, x, keys[:, None, None])
    changed = torch.where(keys.unsqueeze(-1), x, x + 1)
    torch.testing.assert_close(attention(changed, changed, keys[:, None, None])[keys], actual[keys])
    torch.testing.assert_close(attention(x[1:2], x[1:2], keys[1:2, None, None])[:, :5], actual[1:2, :5])
    assert (actual[2] == 0).all()


@pytest.mark.parametrize("kind", CAUSAL_KINDS)
def test_a_causal_mask_hides_later_positions(kind: str) -> None:
    attention, x = make_attention(kind), random_states(2, 13)
    mask = CausalMask(torch.ones(2, 13, dtype=torch.bool))
    before = attention(x, x, mask)
    changed = torch.cat([x[:, :8], x[:, 8:] + 1], 1)
    after = attention(changed, changed, mask)
    torch.testing.assert_close(before[:, :8], after[:, :8])
    assert (before[:, 8:] != after[:, 8:]).any(-1).all()


@pytest.mark.parametrize("kind", [kind for kind in CAUSAL_KINDS if kind in ROW_KINDS])
def test_a_causal_mask_equals_the_dense_one(kind: str) -> None:
    attention, x = make_attention(kind), random_states(2, 7)
    mask = CausalMask(torch.arange(7) != torch.tensor([[2], [9]]))
    torch.testing.assert_close(attention(x, x, mask), attention(x, x, mask.to_dense_mask(7)))
    tail = attention(x[:, -3:], x, mask)
    torch.testing.assert_close(tail, attention(x, x, mask)[:, -3:])


@pytest.mark.parametrize("kind", CAUSAL_KINDS)
def test_attending_in_two_steps_equals_one(kind: str) -> None:
    """Keys and values may be projected piece by piece, as a decoder does."""
    attention, x = make_attention(kind), random_states(2, 9)
    pieces = [attention.project_key_values(piece) for piece in (x[:, :0], x[:, :4], x[:, 4:])]
    key_values = type(pieces[0])(*(torch.cat(parts, -2) for parts in zip(*pieces)))
    mask = CausalMask(torch.ones(2, 9, dtype=torch.bool))
    torch.testing.assert_close(attention.attend(x, key_values, mask), attention(x, x, mask))


@pytest.mark.parametrize("kind", [kind for kind in CAUSAL_KINDS if kind in ROW_KINDS])
@pytest.mark.parametrize("size", [1, 3])
def test_queries_in_chunks_equal_all_at_once(kind: str, size: int) -> None:
    """A chunk is the end of its context; a causal mask hides what comes after it."""
    attention, x = make_attention(kind), random_states(2, 8)
    mask = torch.arange(8) < torch.tensor([8, 6])[:, None]  # b m
    expected = attention(x, x, CausalMask(mask))
    chunks = [
        attention(x[:, start : start + size], x[:, : start + size], CausalMask(mask[:, : start + size]))
        for start in range(0, 8, size)
    ]
    torch.testing.assert_close(torch.cat(chunks, 1), expected)


@pytest.mark.parametrize("kind", select_kinds(ATTENTIONS, supports_cross=True))
def test_queries_of_another_text_in_chunks_equal_all_at_once(kind: str) -> None:
    """One query at a time needs no matrix of n m weights; a fused kernel makes none either."""
    attention, x, source = make_attention(kind, is_cross=True), random_states(2, 8), 2 * random_states(2, 5)
    mask = (torch.arange(5) < torch.tensor([5, 3])[:, None])[:, None, None]  # b 1 1 m
    expected = attention(x, source, mask)
    chunks = [attention(chunk, source, mask) for chunk in x.split(1, 1)]
    torch.testing.assert_close(torch.cat(chunks, 1), expected)


@pytest.mark.parametrize("kind", select_kinds(ATTENTIONS, supports_scores=True))
def test_scores_are_those_before_the_softmax(kind: str) -> None:
    """Their softmax mixes the values to the output; hidden positions have -inf."""
    attention, x = make_attention(kind), random_states(2, 7)
    mask = torch.rand(2, 1, 7, 7, generator=torch.Generator().manual_seed(2)) < 0.6
    mask[1, 0, 3] = False
    scores = attention.attention_scores(x, x, mask)
    assert scores.shape == (2, attention.heads, 7, 7)
    assert (scores.masked_select(~mask) == float("-inf")).all()
    full = getattr(attention, "full", attention)
    has_visible = scores.isfinite().any(-1, keepdim=True)
    mix_values = getattr(full, "mix_values", torch.matmul)  # its own where values know their distance
    mixed = mix_values(scores.softmax(-1).nan_to_num(0), full.project.project_key_values(x).values)
    expected = full.project.merge_heads(mixed) * has_visible.any(1)
    torch.testing.assert_close(attention(x, x, mask), expected)


@pytest.mark.parametrize("kind", ROW_KINDS)
def test_a_row_that_sees_nothing_is_zero(kind: str) -> None:
    """Also if its neighbors see something; gradients stay finite."""
    attention = make_attention(kind)
    x = random_states(2, 5).requires_grad_()
    mask = torch.ones(2, 1, 5, 5, dtype=torch.bool)
    mask[0] = False
    mask[1, :, 3] = False
    out = attention(x, x, mask)
    assert (out[0] == 0).all()
    assert (out[1, 3] == 0).all()
    assert (out[1, [0, 1, 2, 4]] != 0).any(-1).all()
    out.sum().backward()
    assert x.grad is not None
    assert x.grad.isfinite().all()
    assert all(parameter.grad is None or parameter.grad.isfinite().all() for parameter in attention.parameters())


@pytest.mark.parametrize("kind", ATTENTIONS)
def test_one_position_sees_itself(kind: str) -> None:
    x = random_states(2, 1)
    out = make_attention(kind)(x, x, full_mask(1, 1))
    assert out.shape == (2, 1, D)
    assert out.isfinite().all()


@pytest.mark.parametrize("kind", ATTENTIONS)
def test_every_weight_learns(kind: str) -> None:
    """Gradients also reach the queries and the context, which are the same without a context."""
    attention, x = make_attention(kind), random_states(2, 7).requires_grad_()
    has_context = getattr(attention, "supports_context", False)
    context = (random_states(2, 7) + 1).requires_grad_() if has_context else x
    attention(x, context, full_mask(7, 7)).square().sum().backward()
    assert (x.grad != 0).any(-1).all()
    assert (context.grad != 0).any(-1).all()
    assert not [name for name, weight in attention.named_parameters() if weight.grad is None]


@pytest.mark.parametrize("kind", ATTENTIONS)
def test_saved_weights_give_the_same_numbers(kind: str) -> None:
    first, second, x = make_attention(kind, seed=0), make_attention(kind, seed=1), random_states(2, 7)
    expected = first(x, x, full_mask(7, 7))
    assert not torch.equal(second(x, x, full_mask(7, 7)), expected)
    second.load_state_dict(first.state_dict())
    assert torch.equal(second(x, x, full_mask(7, 7)), expected)


@pytest.mark.parametrize("kind", ATTENTIONS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_precisions(kind: str, dtype: torch.dtype) -> None:
    attention, x = make_attention(kind), random_states(2, 7)
    expected = attention(x, x, full_mask(7, 7))
    actual = attention.to(dtype)(x.to(dtype), x.to(dtype), full_mask(7, 7))
    assert actual.dtype == dtype
    torch.testing.assert_close(actual.float(), expected, atol=0.02, rtol=0.02)


# Full attention only.


def test_full_attention_equals_a_plain_loop() -> None:
    attention, x, context = make_attention("full"), random_states(2, 3), random_states(2, 6)
    mask = torch.rand(2, 4, 3, 6, generator=torch.Generator().manual_seed(3)) < 0.5
    mask[..., 0] = True
    torch.testing.assert_close(attention(x, context, mask), reference_attention(attention, x, context, mask))


def reference_attention(attention: torch.nn.Module, x: Tensor, context: Tensor, mask: Tensor) -> Tensor:
    """Equation 1, one head of one query at a time."""
    project, size = attention.project, D // 4
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for n in range(x.shape[1]):
            heads = []
            for h in range(4):
                channels = slice(h * size, (h + 1) * size)
                query = project.query(x[b, n])[channels]
                visible = [m for m in range(context.shape[1]) if mask[b, h, n, m]]
                keys = [project.key(context[b, m])[channels] for m in visible]
                values = [project.value(context[b, m])[channels] for m in visible]
                scores = torch.stack([query.dot(key) for key in keys]) / size**0.5
                weights = scores.exp() / scores.exp().sum()
                heads.append(sum(weight * value for weight, value in zip(weights, values)))
            out[b, n] = project.out(torch.cat(heads))
    return out


@pytest.mark.parametrize("fused", [True, False])
def test_the_returned_weights_are_those_of_the_output(fused: bool) -> None:
    """Mixing the values by the returned weights gives the output."""
    torch.manual_seed(0)
    attention, x, context = FullAttention(D, fused=fused).eval(), random_states(2, 3), random_states(2, 6)
    mask = torch.rand(2, 4, 3, 6, generator=torch.Generator().manual_seed(3)) < 0.5
    mask[0, :, 1] = False  # a query that sees nothing
    mask[1, 2, 0] = False  # one head of a query that sees something
    weights = attention.attention_weights(x, context, mask)
    assert weights.shape == (2, 4, 3, 6)
    assert (weights[~mask] == 0).all()
    torch.testing.assert_close(weights.sum(-1), mask.any(-1).float())
    mixed = attention.project.merge_heads(weights @ attention.project_key_values(context).values)
    mixed = mixed * mask.any(-1).any(1).unsqueeze(-1)
    torch.testing.assert_close(attention(x, context, mask), mixed)


def test_a_query_like_key_three_looks_at_position_three() -> None:
    attention = FullAttention(8, heads=1)
    with torch.no_grad():
        attention.project.query.weight.copy_(9 * torch.eye(8))
        attention.project.key.weight.copy_(torch.eye(8))
    context = torch.eye(8)[None]
    weights = attention.attention_weights(context[:, 3:4], context, full_mask(1, 8))
    assert weights.argmax() == 3
    assert weights.max() > 0.7


def test_fused_and_plain_agree() -> None:
    fused = make_attention("full")
    plain = FullAttention(D, fused=False).eval()
    plain.load_state_dict(fused.state_dict())
    x, context = random_states(2, 5), random_states(2, 9)
    mask = torch.rand(2, 1, 5, 9, generator=torch.Generator().manual_seed(4)) < 0.3
    mask[1, :, 2] = False
    torch.testing.assert_close(fused(x, context, mask), plain(x, context, mask))


@pytest.mark.parametrize("shape", [(7,), (5, 7), (1, 1, 1, 7), (2, 1, 5, 1), (2, 4, 1, 7)])
@pytest.mark.parametrize("fused", [True, False])
def test_masks_broadcast(shape: tuple[int, ...], fused: bool) -> None:
    attention, x, context = FullAttention(D, fused=fused).eval(), random_states(2, 5), random_states(2, 7)
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(5)) < 0.7
    actual = attention(x, context, mask)
    torch.testing.assert_close(actual, attention(x, context, mask.expand(2, 4, 5, 7)))


@pytest.mark.parametrize("fused", [True, False])
def test_an_empty_context_gives_zeros(fused: bool) -> None:
    attention, x = FullAttention(D, fused=fused), random_states(2, 5)
    assert (attention(x, x[:, :0], full_mask(5, 0)) == 0).all()


def test_projecting_first_and_attending_later_equals_forward() -> None:
    attention, x, context = make_attention("full"), random_states(2, 5), random_states(2, 7)
    key_values = attention.project_key_values(context)
    assert torch.equal(attention.attend(x, key_values, full_mask(5, 7)), attention(x, context, full_mask(5, 7)))


@pytest.mark.parametrize("fused", [True, False])
def test_dropout_acts_only_in_training(fused: bool) -> None:
    attention, x, mask = FullAttention(D, dropout=0.5, fused=fused), random_states(2, 7), full_mask(7, 7)
    assert not torch.equal(attention(x, x, mask), attention(x, x, mask))
    attention.eval()
    assert torch.equal(attention(x, x, mask), attention(x, x, mask))


def test_vmap_over_stacked_weights_equals_single_modules() -> None:
    """Unfused attention runs under vmap over stacked weights, each run with its inputs."""
    modules = [FullAttention(D, fused=False).eval() for _ in range(3)]
    weights, _ = stack_module_state(modules)
    x, mask = random_states(3, 2, 5), torch.rand(3, 2, 1, 5, 5) < 0.5

    def run(run_weights: dict[str, Tensor], x: Tensor, mask: Tensor) -> Tensor:
        return functional_call(modules[0], run_weights, (x, x, mask))

    alone = [module(x[index], x[index], mask[index]) for index, module in enumerate(modules)]
    torch.testing.assert_close(vmap(run)(weights, x, mask), torch.stack(alone))


def test_mistakes_are_named() -> None:
    with pytest.raises(ConfigError, match="width 32 does not divide into 5 heads"):
        FullAttention(D, heads=5)
    with pytest.raises(ConfigError, match=r"known kinds: .*full"):
        build(ATTENTIONS, {"kind": "ful"}, width=D)
