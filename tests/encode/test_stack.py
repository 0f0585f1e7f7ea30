"""Transformer stacks: equal to torch's layers, causal, with caches and contexts.

Shapes: b batch, n tokens, m context positions, s source positions, d width.
"""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from mnemic.encode.causal import CausalEncoder
from mnemic.encode.stacks import DecoderStack, EncoderStack, StackContext
from mnemic.encode.transformer import TransformerEncoder

D = 16
SHAPES = [{"norm": norm, "activation": activation} for norm in ("pre", "post") for activation in ("gelu", "relu")]


def random_states(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, D, generator=torch.Generator().manual_seed(seed))


def length_mask(lengths: list[int], steps: int) -> Tensor:
    return torch.arange(steps) < torch.tensor(lengths)[:, None]


def full_mask(tokens: Tensor) -> Tensor:
    return torch.ones(tokens.shape[:2], dtype=torch.bool)


def randomize_weights(module: nn.Module) -> nn.Module:
    """Randomize all weights, also norms and biases, so that an unused one is noticed."""
    torch.manual_seed(7)
    with torch.no_grad():
        for weight in module.parameters():
            weight.copy_(torch.randn_like(weight) * 0.3)
    return module.eval()


def copy_attention(torch_attention: nn.MultiheadAttention, attention: Any) -> None:
    project = attention.project
    torch_attention.in_proj_weight.copy_(torch.cat([project.query.weight, project.key.weight, project.value.weight]))
    torch_attention.in_proj_bias.copy_(torch.cat([project.query.bias, project.key.bias, project.value.bias]))
    torch_attention.out_proj.load_state_dict(project.out.state_dict())


def copy_block(layer: Any, block: Any, residuals: list[Any]) -> Any:
    """Copy the weights of our block into torch's layer."""
    with torch.no_grad():
        copy_attention(layer.self_attn, block.attention)
        layer.linear1.load_state_dict(block.feed.widen.state_dict())
        layer.linear2.load_state_dict(block.feed.narrow.state_dict())
        for number, residual in enumerate(residuals, start=1):
            getattr(layer, f"norm{number}").load_state_dict(residual.norm.state_dict())
    return layer.eval()


def apply_last_norm(x: Tensor, stack: Any, norm: str) -> Tensor:
    if norm == "post":
        return x
    return nn.functional.layer_norm(x, (D,), stack.norm.weight, stack.norm.bias, 1e-4)


@pytest.mark.parametrize("options", SHAPES)
def test_encoder_equals_torch(options: dict[str, Any]) -> None:
    stack = randomize_weights(EncoderStack(D, depth=2, inner=24, epsilon=1e-4, **options))
    x, mask = random_states(3, 6), length_mask([6, 4, 1], 6)
    expected = x
    for block in stack.blocks:
        layer = nn.TransformerEncoderLayer(
            D, 4, 24, activation=options["activation"], layer_norm_eps=1e-4, batch_first=True,
            norm_first=options["norm"] == "pre",
        )  # fmt: skip
        layer = copy_block(layer, block, [block.around_attention, block.around_feed])
        expected = layer(expected, src_key_padding_mask=~mask)
    expected = apply_last_norm(expected, stack, options["norm"])
    torch.testing.assert_close(stack(x, mask)[mask], expected[mask])
    assert (stack(x, mask)[~mask] == 0).all()


@pytest.mark.parametrize("options", SHAPES)
def test_decoder_equals_torch(options: dict[str, Any]) -> None:
    stack = randomize_weights(DecoderStack(D, depth=2, inner=24, epsilon=1e-4, **options))
    x, mask, source, source_mask = (
        random_states(3, 6),
        length_mask([6, 4, 1], 6),
        random_states(3, 5),
        length_mask([5, 1, 3], 5),
    )
    expected, future_mask = x, torch.ones(6, 6, dtype=torch.bool).triu(1)
    for block in stack.blocks:
        layer = nn.TransformerDecoderLayer(
            D, 4, 24, activation=options["activation"], layer_norm_eps=1e-4, batch_first=True,
            norm_first=options["norm"] == "pre",
        )  # fmt: skip
        residuals = [block.around_attention, block.around_cross, block.around_feed]
        layer = copy_block(layer, block, residuals)
        with torch.no_grad():
            copy_attention(layer.multihead_attn, block.cross)
        expected = layer(
            expected, source, tgt_mask=future_mask,
            tgt_key_padding_mask=~mask, memory_key_padding_mask=~source_mask,
        )  # fmt: skip
    expected = apply_last_norm(expected, stack, options["norm"])
    actual = stack(x, mask, stack.empty_cache(x, source, source_mask)).states
    torch.testing.assert_close(actual[mask], expected[mask])
    assert (actual[~mask] == 0).all()


def test_the_tanh_gelu_is_near_the_other() -> None:
    exact, tanh = randomize_weights(EncoderStack(D)), randomize_weights(EncoderStack(D, activation="gelu_tanh"))
    x = random_states(2, 5)
    torch.testing.assert_close(exact(x, full_mask(x)), tanh(x, full_mask(x)), atol=5e-3, rtol=0)
    assert not torch.equal(exact(x, full_mask(x)), tanh(x, full_mask(x)))


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("cross", [True, False])
def test_a_later_token_changes_no_earlier_output(norm: Any, cross: bool) -> None:
    stack = randomize_weights(DecoderStack(D, norm=norm, cross=cross))
    x = random_states(2, 6)
    changed = torch.cat([x[:, :4], x[:, 4:] + 1], 1)
    source = (random_states(2, 3), length_mask([3, 2], 3)) if cross else ()
    before = stack(x, full_mask(x), stack.empty_cache(x, *source)).states
    after = stack(changed, full_mask(x), stack.empty_cache(x, *source)).states
    assert torch.equal(before[:, :4], after[:, :4])
    assert (before[:, 4:] != after[:, 4:]).any(-1).all()


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("cross", [True, False])
@pytest.mark.parametrize("chunks", [[1] * 7, [3, 4], [2, 1, 4]])
def test_decoding_with_a_cache_equals_decoding_without(norm: Any, cross: bool, chunks: list[int]) -> None:
    """Token by token or in chunks; one row has padding inside its prompt."""
    stack = randomize_weights(DecoderStack(D, norm=norm, cross=cross))
    x, mask = random_states(2, 7), torch.tensor([[True] * 7, [True, False, False, True, True, True, True]])
    cache = stack.empty_cache(x, *((random_states(2, 3), length_mask([3, 2], 3)) if cross else ()))
    expected = stack(x, mask, cache)
    states = []
    for chunk, chunk_mask in zip(x.split(chunks, 1), mask.split(chunks, 1)):
        decoded = stack(chunk, chunk_mask, cache)
        states.append(decoded.states)
        cache = decoded.cache
    torch.testing.assert_close(torch.cat(states, 1), expected.states)
    torch.testing.assert_close(cache.past[1].keys, expected.cache.past[1].keys)
    assert torch.equal(cache.mask, mask)


def test_a_cache_is_left_as_it_was() -> None:
    """Two continuations of one cache do not affect each other."""
    stack, x = randomize_weights(DecoderStack(D, cross=False)), random_states(1, 3)
    cache = stack(x, full_mask(x)).cache
    keys, mask = cache.past[0].keys.clone(), cache.mask.clone()
    first = stack(x, full_mask(x), cache).states
    assert torch.equal(cache.past[0].keys, keys)
    assert torch.equal(cache.mask, mask)
    stack(x + 1, full_mask(x), cache)
    assert torch.equal(stack(x, full_mask(x), cache).states, first)


def test_a_decoder_says_what_it_needs() -> None:
    x = random_states(1, 3)
    with pytest.raises(ValueError, match=r"start with empty_cache\(x, source, source_mask\)"):
        DecoderStack(D)(x, full_mask(x))
    with pytest.raises(ValueError, match="cross=False"):
        DecoderStack(D, cross=False).empty_cache(x, x, full_mask(x))


def test_a_source_of_padding_is_ignored() -> None:
    """A row with only source padding is finite, and its source is ignored."""
    stack = randomize_weights(DecoderStack(D, norm="pre", depth=1))
    x, source = random_states(2, 3), random_states(2, 4)
    output = stack(x, full_mask(x), stack.empty_cache(x, source, length_mask([4, 0], 4))).states
    changed_output = stack(x, full_mask(x), stack.empty_cache(x, source + 1, length_mask([4, 0], 4))).states
    assert output.isfinite().all()
    assert torch.equal(output[1], changed_output[1])
    assert not torch.equal(output[0], changed_output[0])


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_context_is_attended_to_like_earlier_tokens(norm: Any) -> None:
    """Layer inputs of earlier tokens as context give the same output as the tokens."""
    stack, x, mask = randomize_weights(EncoderStack(D, norm=norm, depth=3)), random_states(2, 9), length_mask([9, 7], 9)
    causal_mask = torch.ones(9, 9, dtype=torch.bool).tril()  # so that the first four do not depend on later ones
    expected = stack(x, mask[:, None] & causal_mask)
    *inputs, _ = stack.iterate_layers(x[:, :4], mask[:, None, :4] & causal_mask[:4, :4])
    context = StackContext(tuple(inputs), mask[:, :4])
    tail = stack(x[:, 4:], mask[:, None, 4:] & causal_mask[4:, 4:], context)
    torch.testing.assert_close(tail, expected[:, 4:])


def test_hidden_context_changes_nothing() -> None:
    stack, x, slots = randomize_weights(EncoderStack(D)), random_states(2, 5), random_states(2, 3, seed=4)
    no_slots = torch.zeros(2, 3, dtype=torch.bool)
    masked_output = stack(x, full_mask(x), StackContext((slots, slots), no_slots))
    torch.testing.assert_close(masked_output, stack(x, full_mask(x)))
    assert not torch.equal(masked_output, stack(x, full_mask(x), StackContext((slots, slots), ~no_slots)))


def test_an_encoder_hands_its_context_on() -> None:
    torch.manual_seed(0)
    encoder, tokens, slots = TransformerEncoder(D, 50).eval(), torch.arange(5)[None], random_states(1, 3)
    context = StackContext((slots, slots), torch.ones(1, 3, dtype=torch.bool))
    mask = full_mask(tokens)
    expected = encoder.stack(encoder.embeddings(tokens, mask), mask, context)
    assert torch.equal(encoder(tokens, mask, context), expected)
    assert not torch.equal(encoder(tokens, mask), expected)


def test_iterate_layers_yields_each_layer() -> None:
    stack, x, mask = (
        randomize_weights(EncoderStack(D, depth=3, norm="pre")),
        random_states(2, 5),
        length_mask([5, 3], 5),
    )
    layers = list(stack.iterate_layers(x, mask))
    assert len(layers) == 4
    assert torch.equal(layers[0], x)
    torch.testing.assert_close(stack.norm(layers[3])[mask], stack(x, mask)[mask])


def test_an_encoder_yields_its_embeddings_and_each_layer() -> None:
    torch.manual_seed(0)
    encoder = TransformerEncoder(
        D, 50, embeddings={"kind": "sum", "segments": 2}, stack={"kind": "encoder", "norm": "pre"}
    ).eval()
    tokens, segments, mask = torch.randint(50, (2, 5)), torch.randint(2, (2, 5)), length_mask([5, 3], 5)
    layers = list(encoder.iterate_layers(tokens, mask, segments=segments))
    assert len(layers) == 3
    assert torch.equal(layers[0], encoder.embeddings(tokens, mask, segments=segments))
    expected = encoder(tokens, mask, segments=segments)
    torch.testing.assert_close(encoder.stack.norm(layers[-1])[mask], expected[mask])


def test_packed_texts_are_as_if_alone() -> None:
    """Two texts in one row; each attends to itself and has positions from 0."""
    torch.manual_seed(0)
    encoder = TransformerEncoder(D, 50, embeddings={"kind": "sum", "segments": 2}).eval()
    tokens, segments = torch.randint(50, (1, 9)), torch.tensor([[0, 0, 1, 0, 1, 1, 1, 0, 0]])
    text_ids = torch.tensor([[0, 0, 0, 1, 1, 1, 1, -1, -1]])
    mask = (text_ids[:, :, None] == text_ids[:, None]) & (text_ids >= 0)[:, None]
    positions = torch.tensor([[0, 1, 2, 0, 1, 2, 3, 0, 0]])
    packed = encoder(tokens, mask, segments=segments, positions=positions)
    for text_slice in (slice(0, 3), slice(3, 7)):
        alone = encoder(tokens[:, text_slice], full_mask(tokens[:, text_slice]), segments=segments[:, text_slice])
        torch.testing.assert_close(packed[:, text_slice], alone)
    assert (packed[:, 7:] == 0).all()


def test_a_causal_encoder_goes_on_from_its_cache() -> None:
    torch.manual_seed(0)
    encoder = CausalEncoder(D, 50).eval()
    tokens = torch.randint(50, (2, 7))
    expected = encoder(tokens, full_mask(tokens))
    first = encoder.encode_with_state(tokens[:, :4], full_mask(tokens[:, :4]))
    rest = encoder(tokens[:, 4:], full_mask(tokens[:, 4:]), first.cache)
    torch.testing.assert_close(torch.cat([first.states, rest], 1), expected)
    with pytest.raises(ValueError, match="512 learned positions"):
        encoder(tokens[:, :1].expand(2, 509), full_mask(tokens[:, :1]).expand(2, 509), first.cache)
