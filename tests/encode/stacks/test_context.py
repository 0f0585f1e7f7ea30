"""The memory of a causal stack: the inputs of its layers, of earlier segments.

Shapes: b batch, n tokens, m cached states, d width.
"""

from typing import Any

import pytest
import torch
from torch import Tensor

from mnemic.encode import ATTENTIONS, DECODERS
from mnemic.encode.causal import CausalEncoder
from mnemic.encode.stacks import DecoderStack, StackContext, extend_context
from mnemic.recipe import ConfigError, build, select_kinds

D, VOCAB = 16, 20
KINDS = [*select_kinds(ATTENTIONS, supports_causal=True, supports_context=True)]
PLAIN_KINDS = ("full", "transformer-xl")  # whose states are values weighted by their scores
NO_POSITIONS = {"kind": "sum", "positions": {"kind": "none"}}


def make_encoder(kind: str = "transformer-xl", *, depth: int = 2, memory_length: int = 0) -> Any:
    torch.manual_seed(0)
    stack = {"kind": "transformer", "depth": depth, "norm": "pre", "attention": {"kind": kind}}
    encoder = CausalEncoder(D, VOCAB, embeddings=NO_POSITIONS, stack=stack, memory_length=memory_length)
    with torch.no_grad():
        for weight in encoder.parameters():
            weight.add_(0.2 * torch.randn_like(weight))
    return encoder.double().eval()


def random_tokens(*shape: int) -> Tensor:
    return torch.randint(VOCAB, shape, generator=torch.Generator().manual_seed(1))


def full_mask(tokens: Tensor) -> Tensor:
    return torch.ones_like(tokens, dtype=torch.bool)


def read_segments(encoder: Any, tokens: Tensor, lengths: list[int]) -> Tensor:
    """Read a text segment by segment; return the states of all of it."""
    context, states = None, []
    for segment in tokens.split(lengths, 1):
        segment_states, context = encoder.encode_segment(segment, full_mask(segment), context)
        states.append(segment_states)
    return torch.cat(states, 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("depth", [1, 2, 4])
@pytest.mark.parametrize("lengths", [[4, 4, 4], [1, 7, 4], [1] * 12])
def test_a_memory_of_all_earlier_tokens_equals_one_long_pass(kind: str, depth: int, lengths: list[int]) -> None:
    encoder, tokens = make_encoder(kind, depth=depth, memory_length=12), random_tokens(2, 12)
    torch.testing.assert_close(read_segments(encoder, tokens, lengths), encoder(tokens, full_mask(tokens)))


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_the_reach_of_a_memory_is_its_length_times_the_depth(depth: int) -> None:
    """A token that far before a segment changes its first state; one further back, not a bit."""
    length = 4
    encoder = make_encoder(depth=depth, memory_length=length)
    tokens = random_tokens(1, 5 * length)
    segments = [length] * 5
    first = 4 * length  # of the last segment
    before = read_segments(encoder, tokens, segments)[:, first]
    for back, is_reached in ((depth * length, True), (depth * length + 1, False), (1, True)):
        changed = tokens.clone()
        changed[:, first - back] = (changed[:, first - back] + 1) % VOCAB
        after = read_segments(encoder, changed, segments)[:, first]
        assert torch.equal(before, after) != is_reached, back


def test_without_a_memory_segments_share_nothing() -> None:
    encoder, tokens = make_encoder(), random_tokens(2, 12)
    states = read_segments(encoder, tokens, [6, 6])
    alone = encoder(tokens[:, 6:], full_mask(tokens[:, 6:]))
    torch.testing.assert_close(states[:, 6:], alone)


@pytest.mark.parametrize("kind", PLAIN_KINDS)
def test_gradients_reach_keys_and_values_through_the_memory_alone(kind: str) -> None:
    """And nothing of the earlier segment's own computation."""
    encoder = make_encoder(kind, depth=2, memory_length=3)
    first, second = random_tokens(1, 3), torch.tensor([[7, 8, 9]])
    first[:] = torch.tensor([1, 2, 3])
    _, context = encoder.encode_segment(first, full_mask(first))
    assert not any(layer.requires_grad for layer in context.layers)

    def key_gradient(context: StackContext | None) -> Tensor:
        encoder.zero_grad()
        (encoder.encode_segment(second, full_mask(second), context)[0] * torch.arange(D)).sum().backward()
        return encoder.stack.blocks[1].attention.project.key.weight.grad.clone()

    layers = tuple(layer.clone().requires_grad_() for layer in context.layers)
    hidden = context._replace(mask=~context.mask)
    with_memory, without = key_gradient(context._replace(layers=layers)), key_gradient(hidden)
    assert not torch.allclose(with_memory, without)
    assert all((layer.grad != 0).any(-1).all() for layer in layers)  # what a memory without detach would pass on
    assert encoder.embeddings.tokens.grad[7:10].abs().sum() > 0
    assert encoder.embeddings.tokens.grad[1:4].abs().sum() == 0


@pytest.mark.parametrize("kind", PLAIN_KINDS)
def test_a_memory_is_read_with_the_weights_of_today(kind: str) -> None:
    """What is cached are hidden states: another key projection changes what later segments see."""
    encoder, tokens = make_encoder(kind, memory_length=4), random_tokens(1, 8)
    _, context = encoder.encode_segment(tokens[:, :4], full_mask(tokens[:, :4]))
    with torch.no_grad():
        encoder.stack.blocks[1].attention.project.value.weight.mul_(2)  # the last layer: its input stays
    inputs = encoder.stack(encoder.embeddings(tokens, full_mask(tokens)), full_mask(tokens)).layer_inputs
    torch.testing.assert_close(context.layers[1], inputs[1][:, :4])
    states = encoder.encode_segment(tokens[:, 4:], full_mask(tokens[:, 4:]), context)[0]
    torch.testing.assert_close(states, encoder(tokens, full_mask(tokens))[:, 4:])


@pytest.mark.parametrize("kind", KINDS)
def test_hidden_states_are_as_if_they_were_not_there(kind: str) -> None:
    """Row by row: the rest of the batch keeps its memory."""
    encoder, tokens = make_encoder(kind, memory_length=4), random_tokens(2, 8)
    _, context = encoder.encode_segment(tokens[:, :4], full_mask(tokens[:, :4]))
    segment = tokens[:, 4:]
    hidden = context._replace(mask=context.mask & torch.tensor([[True], [False]]))
    states = encoder.encode_segment(segment, full_mask(segment), hidden)[0]
    expected = encoder.encode_segment(segment, full_mask(segment), context)[0]
    torch.testing.assert_close(states[0], expected[0])
    torch.testing.assert_close(states[1:], encoder(segment[1:], full_mask(segment[1:])))


@pytest.mark.parametrize("kind", KINDS)
def test_decoding_goes_on_after_a_memory(kind: str) -> None:
    """Token by token after a context equals the segment at once."""
    encoder, tokens = make_encoder(kind, memory_length=5), random_tokens(2, 10)
    _, context = encoder.encode_segment(tokens[:, :5], full_mask(tokens[:, :5]))
    expected = encoder.encode_segment(tokens[:, 5:], full_mask(tokens[:, 5:]), context)[0]
    cache, states = encoder.stack.project_context(context), []
    for token in tokens[:, 5:].split(1, 1):
        output = encoder.encode_with_state(token, full_mask(token), cache)
        cache = output.cache
        states.append(output.states)
    torch.testing.assert_close(torch.cat(states, 1), expected)


def test_a_context_keeps_its_last_states() -> None:
    states = torch.arange(10.0).view(1, 10, 1)
    mask = torch.arange(10).unsqueeze(0) != 3
    context = None
    for first, last, expected in ((0, 2, [0, 1]), (2, 5, [1, 2, 3, 4]), (5, 6, [2, 3, 4, 5]), (6, 10, [6, 7, 8, 9])):
        context = extend_context(context, [states[:, first:last]] * 2, mask[:, first:last], length=4)
        assert [layer.flatten().tolist() for layer in context.layers] == [expected, expected]
        assert context.mask.tolist() == [[number != 3 for number in expected]]
    assert extend_context(context, [states] * 2, mask, length=0).mask.shape == (1, 0)


@pytest.mark.parametrize("kind", PLAIN_KINDS)
def test_scores_are_those_that_a_segment_attends_by(kind: str) -> None:
    """Layer by layer they give back the output of the attention."""
    encoder, tokens = make_encoder(kind, memory_length=4), random_tokens(2, 7)
    _, context = encoder.encode_segment(tokens[:, :4], full_mask(tokens[:, :4]))
    segment, mask = tokens[:, 4:], full_mask(tokens[:, 4:])
    scores = list(encoder.iterate_scores(segment, mask, context))
    x = encoder.embeddings(segment, mask)
    for block, layer, layer_scores in zip(encoder.stack.blocks, context.layers, scores, strict=True):
        assert layer_scores.shape == (2, 4, 3, 7)
        assert (layer_scores == float("-inf")).sum() == 2 * 4 * 3  # three later tokens per head and row
        inputs = block.around_attention.pre_norm(torch.cat([layer, x], 1))
        values = block.attention.project_key_values(inputs).values
        update = block.attention.project.merge_heads(layer_scores.softmax(-1) @ values)
        x = block.around_attention.add_and_norm(x, update)
        x = block.around_feed.add_and_norm(x, block.feed(block.around_feed.pre_norm(x)))
    states = encoder.encode_segment(segment, mask, context)[0]
    torch.testing.assert_close(encoder.stack.norm(x), states)


def test_mistakes_are_explained() -> None:
    with pytest.raises(ConfigError, match="is at least 0, not -1"):
        CausalEncoder(D, VOCAB, embeddings=NO_POSITIONS, memory_length=-1)
    with pytest.raises(ConfigError, match=r"positions\.kind=none"):
        CausalEncoder(D, VOCAB, memory_length=4)
    context = StackContext((torch.zeros(1, 2, D),) * 2, torch.ones(1, 2, dtype=torch.bool))
    with pytest.raises(ConfigError, match="do not support a context"):  # its cache needs a source
        DecoderStack(D, cross=True).project_context(context)


@pytest.mark.parametrize("kind", [kind for kind in DECODERS if kind != "transformer"])
def test_other_stacks_refuse_a_memory_or_have_one(kind: str) -> None:
    stack = build(DECODERS, {"kind": kind}, width=D, cross=False)
    if not getattr(stack, "supports_context", False):
        with pytest.raises(ConfigError, match="a stack of kind 'transformer'"):
            CausalEncoder(D, VOCAB, embeddings=NO_POSITIONS, stack={"kind": kind}, memory_length=4)
