"""Transformer stacks: torch's own layers with the same weights, causality, caches.

Shapes: b batch, n tokens, m context positions, s source positions, d width.
"""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from mnemic.encode.causal import CausalEncoder
from mnemic.encode.stack import DecoderStack, EncoderStack, StackContext
from mnemic.encode.transformer import TransformerEncoder

D = 16
SHAPES = [{"norm": norm, "activation": activation} for norm in ("pre", "post") for activation in ("gelu", "relu")]


def rows(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, D, generator=torch.Generator().manual_seed(seed))


def real(lengths: list[int], steps: int) -> Tensor:
    return torch.arange(steps) < torch.tensor(lengths)[:, None]


def all_of(tokens: Tensor) -> Tensor:
    return torch.ones(tokens.shape[:2], dtype=torch.bool)


def stir(part: nn.Module) -> nn.Module:
    """Random norms and biases too, so that a forgotten one is seen."""
    torch.manual_seed(7)
    with torch.no_grad():
        for weight in part.parameters():
            weight.copy_(torch.randn_like(weight) * 0.3)
    return part.eval()


def copy_attention(theirs: nn.MultiheadAttention, ours: Any) -> None:
    p = ours.project
    theirs.in_proj_weight.copy_(torch.cat([p.query.weight, p.key.weight, p.value.weight]))
    theirs.in_proj_bias.copy_(torch.cat([p.query.bias, p.key.bias, p.value.bias]))
    theirs.out_proj.load_state_dict(p.out.state_dict())


def as_torch(layer: Any, block: Any, around: list[Any]) -> Any:
    """torch's layer with the weights of our block."""
    with torch.no_grad():
        copy_attention(layer.self_attn, block.attention)
        layer.linear1.load_state_dict(block.feed.widen.state_dict())
        layer.linear2.load_state_dict(block.feed.narrow.state_dict())
        for number, part in enumerate(around, start=1):
            getattr(layer, f"norm{number}").load_state_dict(part.norm.state_dict())
    return layer.eval()


def last_norm(x: Tensor, stack: Any, norm: str) -> Tensor:
    if norm == "post":
        return x
    return nn.functional.layer_norm(x, (D,), stack.norm.weight, stack.norm.bias, 1e-4)


@pytest.mark.parametrize("options", SHAPES)
def test_encoder_equals_torch(options: dict[str, Any]) -> None:
    stack = stir(EncoderStack(D, depth=2, inner=24, epsilon=1e-4, **options))
    x, mask = rows(3, 6), real([6, 4, 1], 6)
    wanted = x
    for block in stack.blocks:
        layer = nn.TransformerEncoderLayer(
            D, 4, 24, activation=options["activation"], layer_norm_eps=1e-4, batch_first=True,
            norm_first=options["norm"] == "pre",
        )  # fmt: skip
        layer = as_torch(layer, block, [block.around_attention, block.around_feed])
        wanted = layer(wanted, src_key_padding_mask=~mask)
    wanted = last_norm(wanted, stack, options["norm"])
    torch.testing.assert_close(stack(x, mask)[mask], wanted[mask])
    assert (stack(x, mask)[~mask] == 0).all()


@pytest.mark.parametrize("options", SHAPES)
def test_decoder_equals_torch(options: dict[str, Any]) -> None:
    stack = stir(DecoderStack(D, depth=2, inner=24, epsilon=1e-4, **options))
    x, mask, source, source_mask = rows(3, 6), real([6, 4, 1], 6), rows(3, 5), real([5, 1, 3], 5)
    wanted, ahead = x, torch.ones(6, 6, dtype=torch.bool).triu(1)
    for block in stack.blocks:
        layer = nn.TransformerDecoderLayer(
            D, 4, 24, activation=options["activation"], layer_norm_eps=1e-4, batch_first=True,
            norm_first=options["norm"] == "pre",
        )  # fmt: skip
        around = [block.around_attention, block.around_cross, block.around_feed]
        layer = as_torch(layer, block, around)
        with torch.no_grad():
            copy_attention(layer.multihead_attn, block.cross)
        wanted = layer(
            wanted, source, tgt_mask=ahead,
            tgt_key_padding_mask=~mask, memory_key_padding_mask=~source_mask,
        )  # fmt: skip
    wanted = last_norm(wanted, stack, options["norm"])
    found = stack(x, mask, stack.empty_cache(x, source, source_mask)).states
    torch.testing.assert_close(found[mask], wanted[mask])
    assert (found[~mask] == 0).all()


def test_the_tanh_gelu_is_near_the_other() -> None:
    exact, tanh = stir(EncoderStack(D)), stir(EncoderStack(D, activation="gelu_tanh"))
    x = rows(2, 5)
    torch.testing.assert_close(exact(x, all_of(x)), tanh(x, all_of(x)), atol=5e-3, rtol=0)
    assert not torch.equal(exact(x, all_of(x)), tanh(x, all_of(x)))


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("cross", [True, False])
def test_a_later_token_changes_no_earlier_output(norm: Any, cross: bool) -> None:
    stack = stir(DecoderStack(D, norm=norm, cross=cross))
    x = rows(2, 6)
    changed = torch.cat([x[:, :4], x[:, 4:] + 1], 1)
    given = (rows(2, 3), real([3, 2], 3)) if cross else ()
    before = stack(x, all_of(x), stack.empty_cache(x, *given)).states
    after = stack(changed, all_of(x), stack.empty_cache(x, *given)).states
    assert torch.equal(before[:, :4], after[:, :4])
    assert (before[:, 4:] != after[:, 4:]).any(-1).all()


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("cross", [True, False])
@pytest.mark.parametrize("pieces", [[1] * 7, [3, 4], [2, 1, 4]])
def test_with_a_cache_as_without(norm: Any, cross: bool, pieces: list[int]) -> None:
    """Token by token or piece by piece; one row's prompt is padded in between."""
    stack = stir(DecoderStack(D, norm=norm, cross=cross))
    x, mask = rows(2, 7), torch.tensor([[True] * 7, [True, False, False, True, True, True, True]])
    cache = stack.empty_cache(x, *((rows(2, 3), real([3, 2], 3)) if cross else ()))
    whole = stack(x, mask, cache)
    states = []
    for piece, visible in zip(x.split(pieces, 1), mask.split(pieces, 1)):
        decoded = stack(piece, visible, cache)
        states.append(decoded.states)
        cache = decoded.cache
    torch.testing.assert_close(torch.cat(states, 1), whole.states)
    torch.testing.assert_close(cache.past[1].keys, whole.cache.past[1].keys)
    assert torch.equal(cache.mask, mask)


def test_a_cache_is_left_as_it_was() -> None:
    """Two continuations of one cache do not disturb each other."""
    stack, x = stir(DecoderStack(D, cross=False)), rows(1, 3)
    cache = stack(x, all_of(x)).cache
    keys, mask = cache.past[0].keys.clone(), cache.mask.clone()
    first = stack(x, all_of(x), cache).states
    assert torch.equal(cache.past[0].keys, keys)
    assert torch.equal(cache.mask, mask)
    stack(x + 1, all_of(x), cache)
    assert torch.equal(stack(x, all_of(x), cache).states, first)


def test_a_decoder_says_what_it_needs() -> None:
    x = rows(1, 3)
    with pytest.raises(ValueError, match=r"start with empty_cache\(x, source, source_mask\)"):
        DecoderStack(D)(x, all_of(x))
    with pytest.raises(ValueError, match="cross=False"):
        DecoderStack(D, cross=False).empty_cache(x, x, all_of(x))


def test_a_source_of_padding_is_survived() -> None:
    """A row whose source is all padding is finite, and its source does not matter."""
    stack = stir(DecoderStack(D, norm="pre", depth=1))
    x, source = rows(2, 3), rows(2, 4)
    found = stack(x, all_of(x), stack.empty_cache(x, source, real([4, 0], 4))).states
    other = stack(x, all_of(x), stack.empty_cache(x, source + 1, real([4, 0], 4))).states
    assert found.isfinite().all()
    assert torch.equal(found[1], other[1])
    assert not torch.equal(found[0], other[0])


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_context_is_seen_as_tokens_before_are(norm: Any) -> None:
    """A layer given the earlier tokens' inputs as context computes what it computes with them."""
    stack, x, mask = stir(EncoderStack(D, norm=norm, depth=3)), rows(2, 9), real([9, 7], 9)
    ahead = torch.ones(9, 9, dtype=torch.bool).tril()  # so that the first four stand on their own
    whole = stack(x, mask[:, None] & ahead)
    *inputs, _ = stack.iterate_layers(x[:, :4], mask[:, None, :4] & ahead[:4, :4])
    context = StackContext(tuple(inputs), mask[:, :4])
    tail = stack(x[:, 4:], mask[:, None, 4:] & ahead[4:, 4:], context)
    torch.testing.assert_close(tail, whole[:, 4:])


def test_hidden_context_changes_nothing() -> None:
    stack, x, slots = stir(EncoderStack(D)), rows(2, 5), rows(2, 3, seed=4)
    none = torch.zeros(2, 3, dtype=torch.bool)
    hidden = stack(x, all_of(x), StackContext((slots, slots), none))
    torch.testing.assert_close(hidden, stack(x, all_of(x)))
    assert not torch.equal(hidden, stack(x, all_of(x), StackContext((slots, slots), ~none)))


def test_an_encoder_hands_its_context_on() -> None:
    torch.manual_seed(0)
    encoder, tokens, slots = TransformerEncoder(D, 50).eval(), torch.arange(5)[None], rows(1, 3)
    context = StackContext((slots, slots), torch.ones(1, 3, dtype=torch.bool))
    mask = all_of(tokens)
    wanted = encoder.stack(encoder.embeddings(tokens, mask), mask, context)
    assert torch.equal(encoder(tokens, mask, context), wanted)
    assert not torch.equal(encoder(tokens, mask), wanted)


def test_each_layer_can_be_had() -> None:
    stack, x, mask = stir(EncoderStack(D, depth=3, norm="pre")), rows(2, 5), real([5, 3], 5)
    layers = list(stack.iterate_layers(x, mask))
    assert len(layers) == 4
    assert torch.equal(layers[0], x)
    torch.testing.assert_close(stack.norm(layers[3])[mask], stack(x, mask)[mask])


def test_packed_texts_are_as_if_alone() -> None:
    """Two texts in one row, each seeing itself, each counted from 0."""
    torch.manual_seed(0)
    encoder = TransformerEncoder(D, 50, embeddings={"kind": "sum", "segments": 2}).eval()
    tokens, segments = torch.randint(50, (1, 9)), torch.tensor([[0, 0, 1, 0, 1, 1, 1, 0, 0]])
    text = torch.tensor([[0, 0, 0, 1, 1, 1, 1, -1, -1]])
    mask = (text[:, :, None] == text[:, None]) & (text >= 0)[:, None]
    positions = torch.tensor([[0, 1, 2, 0, 1, 2, 3, 0, 0]])
    packed = encoder(tokens, mask, segments=segments, positions=positions)
    for part in (slice(0, 3), slice(3, 7)):
        alone = encoder(tokens[:, part], all_of(tokens[:, part]), segments=segments[:, part])
        torch.testing.assert_close(packed[:, part], alone)
    assert (packed[:, 7:] == 0).all()


def test_a_causal_encoder_goes_on_from_its_cache() -> None:
    torch.manual_seed(0)
    encoder = CausalEncoder(D, 50).eval()
    tokens = torch.randint(50, (2, 7))
    whole = encoder(tokens, all_of(tokens))
    first = encoder.encode_with_state(tokens[:, :4], all_of(tokens[:, :4]))
    rest = encoder(tokens[:, 4:], all_of(tokens[:, 4:]), first.cache)
    torch.testing.assert_close(torch.cat([first.states, rest], 1), whole)
    with pytest.raises(ValueError, match="512 learned positions"):
        encoder(tokens[:, :1].expand(2, 509), all_of(tokens[:, :1]).expand(2, 509), first.cache)
