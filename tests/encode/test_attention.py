"""Every attention kind keeps one contract; then what only full attention promises.

Shapes: b batch, n queries, m context positions, d width, h heads, c channels of one head.
"""

import pytest
import torch
from torch import Tensor
from torch.func import functional_call, stack_module_state, vmap

from mnemic.encode.attention import ATTENTIONS, FullAttention
from mnemic.recipe import ConfigError, build

D = 32


def make(kind: str, seed: int = 0) -> torch.nn.Module:
    torch.manual_seed(seed)
    return build(ATTENTIONS, {"kind": kind}, width=D).eval()


def rows(*shape: int) -> Tensor:
    return torch.randn(*shape, D, generator=torch.Generator().manual_seed(1))


def all_of(n: int, m: int) -> Tensor:
    return torch.ones(1, 1, n, m, dtype=torch.bool)


@pytest.mark.parametrize("kind", ATTENTIONS)
def test_padding_changes_nothing(kind: str) -> None:
    """The same words give the same vectors however much padding follows them."""
    attention, padded = make(kind), rows(2, 12)
    words = padded[:, :7]
    visible = torch.arange(12) < 7
    among = attention(padded, padded, visible.expand(1, 1, 12, 12))[:, :7]
    torch.testing.assert_close(among, attention(words, words, all_of(7, 7)))


@pytest.mark.parametrize("kind", ATTENTIONS)
def test_the_batch_changes_nothing(kind: str) -> None:
    attention, x = make(kind), rows(3, 7)
    mask = torch.rand(3, 1, 7, 7, generator=torch.Generator().manual_seed(2)) < 0.6
    alone = attention(x[1:2], x[1:2], mask[1:2])
    torch.testing.assert_close(attention(x, x, mask)[1:2], alone)


@pytest.mark.parametrize("kind", ATTENTIONS)
def test_a_query_may_see_more_context_than_itself(kind: str) -> None:
    """The last rows alone, given the whole context, come out as they do in the whole."""
    attention, x = make(kind), rows(2, 30)
    whole = attention(x, x, all_of(30, 30))
    tail = attention(x[:, -4:], x, all_of(4, 30))
    torch.testing.assert_close(tail, whole[:, -4:])


@pytest.mark.parametrize("kind", ATTENTIONS)
def test_what_is_hidden_changes_nothing(kind: str) -> None:
    attention, x = make(kind), rows(2, 7)
    causal = torch.ones(7, 7, dtype=torch.bool).tril()[None, None]
    changed = torch.cat([x[:, :4], x[:, 4:] + 1], 1)
    before, after = attention(x, x, causal), attention(changed, changed, causal)
    torch.testing.assert_close(before[:, :4], after[:, :4])
    assert (before[:, 4:] != after[:, 4:]).any(-1).all()


@pytest.mark.parametrize("kind", ATTENTIONS)
def test_a_row_that_sees_nothing_is_zero(kind: str) -> None:
    """Also when its neighbours see something, and nothing becomes NaN on the way back."""
    attention = make(kind)
    x = rows(2, 5).requires_grad_()
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
    assert all(p.grad is None or p.grad.isfinite().all() for p in attention.parameters())


@pytest.mark.parametrize("kind", ATTENTIONS)
def test_one_position_sees_itself(kind: str) -> None:
    x = rows(2, 1)
    out = make(kind)(x, x, all_of(1, 1))
    assert out.shape == (2, 1, D)
    assert out.isfinite().all()


@pytest.mark.parametrize("kind", ATTENTIONS)
def test_every_weight_learns(kind: str) -> None:
    """And what is asked, and what is looked at: the gradient goes on to both."""
    attention = make(kind)
    x, context = rows(2, 7).requires_grad_(), (rows(2, 7) + 1).requires_grad_()
    attention(x, context, all_of(7, 7)).square().sum().backward()
    assert (x.grad != 0).any(-1).all()
    assert (context.grad != 0).any(-1).all()
    assert not [name for name, weight in attention.named_parameters() if weight.grad is None]


@pytest.mark.parametrize("kind", ATTENTIONS)
def test_saved_weights_give_the_same_numbers(kind: str) -> None:
    first, second, x = make(kind, seed=0), make(kind, seed=1), rows(2, 7)
    wanted = first(x, x, all_of(7, 7))
    assert not torch.equal(second(x, x, all_of(7, 7)), wanted)
    second.load_state_dict(first.state_dict())
    assert torch.equal(second(x, x, all_of(7, 7)), wanted)


@pytest.mark.parametrize("kind", ATTENTIONS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_precisions(kind: str, dtype: torch.dtype) -> None:
    attention, x = make(kind), rows(2, 7)
    wanted = attention(x, x, all_of(7, 7))
    found = attention.to(dtype)(x.to(dtype), x.to(dtype), all_of(7, 7))
    assert found.dtype == dtype
    torch.testing.assert_close(found.float(), wanted, atol=0.02, rtol=0.02)


# What full attention promises besides.


def test_full_attention_is_the_slow_loop() -> None:
    attention, x, context = make("full"), rows(2, 3), rows(2, 6)
    mask = torch.rand(2, 4, 3, 6, generator=torch.Generator().manual_seed(3)) < 0.5
    mask[..., 0] = True
    torch.testing.assert_close(attention(x, context, mask), slow(attention, x, context, mask))


def slow(attention: torch.nn.Module, x: Tensor, context: Tensor, mask: Tensor) -> Tensor:
    """Equation 1, one head of one query at a time."""
    project, size = attention.project, D // 4
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for n in range(x.shape[1]):
            heads = []
            for h in range(4):
                own = slice(h * size, (h + 1) * size)
                query = project.query(x[b, n])[own]
                seen = [m for m in range(context.shape[1]) if mask[b, h, n, m]]
                keys = [project.key(context[b, m])[own] for m in seen]
                values = [project.value(context[b, m])[own] for m in seen]
                scores = torch.stack([query.dot(key) for key in keys]) / size**0.5
                share = scores.exp() / scores.exp().sum()
                heads.append(sum(w * value for w, value in zip(share, values)))
            out[b, n] = project.out(torch.cat(heads))
    return out


@pytest.mark.parametrize("fused", [True, False])
def test_the_weights_are_the_evidence(fused: bool) -> None:
    """Mixing the values by the returned weights gives the output itself."""
    torch.manual_seed(0)
    attention, x, context = FullAttention(D, fused=fused).eval(), rows(2, 3), rows(2, 6)
    mask = torch.rand(2, 4, 3, 6, generator=torch.Generator().manual_seed(3)) < 0.5
    mask[0, :, 1] = False  # a query that sees nothing
    mask[1, 2, 0] = False  # one head of a query that does
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
    weights = attention.attention_weights(context[:, 3:4], context, all_of(1, 8))
    assert weights.argmax() == 3
    assert weights.max() > 0.7


def test_fused_and_plain_agree() -> None:
    fused = make("full")
    plain = FullAttention(D, fused=False).eval()
    plain.load_state_dict(fused.state_dict())
    x, context = rows(2, 5), rows(2, 9)
    mask = torch.rand(2, 1, 5, 9, generator=torch.Generator().manual_seed(4)) < 0.3
    mask[1, :, 2] = False
    torch.testing.assert_close(fused(x, context, mask), plain(x, context, mask))


@pytest.mark.parametrize("shape", [(7,), (5, 7), (1, 1, 1, 7), (2, 1, 5, 1), (2, 4, 1, 7)])
@pytest.mark.parametrize("fused", [True, False])
def test_masks_broadcast(shape: tuple[int, ...], fused: bool) -> None:
    attention, x, context = FullAttention(D, fused=fused).eval(), rows(2, 5), rows(2, 7)
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(5)) < 0.7
    found = attention(x, context, mask)
    torch.testing.assert_close(found, attention(x, context, mask.expand(2, 4, 5, 7)))


@pytest.mark.parametrize("fused", [True, False])
def test_an_empty_context_is_survived(fused: bool) -> None:
    attention, x = FullAttention(D, fused=fused), rows(2, 5)
    assert (attention(x, x[:, :0], all_of(5, 0)) == 0).all()


def test_keeping_first_and_mixing_later_is_forward() -> None:
    attention, x, context = make("full"), rows(2, 5), rows(2, 7)
    kept = attention.project_key_values(context)
    assert torch.equal(attention.attend(x, kept, all_of(5, 7)), attention(x, context, all_of(5, 7)))


@pytest.mark.parametrize("fused", [True, False])
def test_dropout_acts_only_in_training(fused: bool) -> None:
    attention, x, mask = FullAttention(D, dropout=0.5, fused=fused), rows(2, 7), all_of(7, 7)
    assert not torch.equal(attention(x, x, mask), attention(x, x, mask))
    attention.eval()
    assert torch.equal(attention(x, x, mask), attention(x, x, mask))


def test_many_at_once() -> None:
    """Plain attention runs under vmap over stacked weights, each run with its own inputs."""
    parts = [FullAttention(D, fused=False).eval() for _ in range(3)]
    weights, _ = stack_module_state(parts)
    x, mask = rows(3, 2, 5), torch.rand(3, 2, 1, 5, 5) < 0.5

    def run(own: dict[str, Tensor], x: Tensor, mask: Tensor) -> Tensor:
        return functional_call(parts[0], own, (x, x, mask))

    alone = [part(x[i], x[i], mask[i]) for i, part in enumerate(parts)]
    torch.testing.assert_close(vmap(run)(weights, x, mask), torch.stack(alone))


def test_mistakes_are_named() -> None:
    with pytest.raises(ConfigError, match="width 32 does not divide into 5 heads"):
        FullAttention(D, heads=5)
    with pytest.raises(ConfigError, match=r"known kinds: .*full"):
        build(ATTENTIONS, {"kind": "ful"}, width=D)
