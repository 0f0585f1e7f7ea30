"""Reversible layers: gradients as autograd's, memory without depth, and replayed randomness.

Shapes: b batch, n tokens, d width.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from mnemic.encode.attention import ATTENTIONS
from mnemic.encode.causal import CausalEncoder
from mnemic.encode.masks import CausalMask
from mnemic.encode.packed import PackedMask
from mnemic.encode.stacks import ReversibleDecoder, ReversibleStack, StackContext
from mnemic.encode.stacks.rebuild import ReversibleRun, Streams, group_weights
from mnemic.encode.transformer import TransformerEncoder
from mnemic.recipe import ConfigError, select_kinds

D = 16
LSH = {"kind": "lsh", "heads": 2, "chunk": 4, "rounds": 2}
FULL = {"kind": "full", "heads": 2, "dropout": 0.3}
OPTIONS: dict[str, dict[str, Any]] = {
    "full": {"attention": {"kind": "full"}},
    "full, dropout": {"attention": FULL, "dropout": 0.3},
    "lsh": {"attention": LSH},
    "lsh, dropout": {"attention": {**LSH, "dropout": 0.3}, "dropout": 0.3},
    "chunks, dropout": {"attention": FULL, "dropout": 0.3, "chunk_feed": 7},
}


def make_stack(depth: int = 3, **options: Any) -> ReversibleStack:
    torch.manual_seed(0)
    return ReversibleStack(D, depth=depth, **options)


def random_states(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, D, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def ragged_mask() -> Tensor:
    return torch.arange(23) < torch.tensor([23, 11, 0])[:, None]


def run_plainly(stack: ReversibleStack, x: Tensor, mask: Any) -> Tensor:
    """Run the layers under autograd, which stores everything, with the same randomness."""
    run, streams = ReversibleRun.start(stack.blocks, mask, x.device), Streams(x, x)
    for number, weights in enumerate(group_weights(run, run.parameters())):
        streams, _ = run.advance(number, streams, weights)
    return stack.out(stack.norm(torch.cat(streams, -1)))


def compute_gradients(function: Callable[[Tensor, Any], Tensor], stack: nn.Module, mask: Any) -> list[Tensor]:
    """Return the output of a run with seed 3, and the gradients of its input and all weights."""
    torch.manual_seed(3)
    x = random_states(3, 23).requires_grad_()
    states = function(x, mask)
    return [states, *torch.autograd.grad((states * random_states(3, 23, seed=4)).sum(), [x, *stack.parameters()])]


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("causal", [True, False], ids=["causal", "both sides"])
@pytest.mark.parametrize("training", [True, False])
def test_gradients_are_those_of_autograd(name: str, causal: bool, training: bool) -> None:
    """With dropout, and with buckets that the backward pass has to find again."""
    stack = make_stack(**OPTIONS[name]).double().train(training)
    mask = CausalMask(ragged_mask()) if causal else ragged_mask()[:, None, None]
    actual = compute_gradients(stack.run_layers, stack, mask)
    expected = compute_gradients(lambda x, mask: run_plainly(stack, x, mask), stack, mask)
    for gradient, other_gradient in zip(actual, expected, strict=True):
        torch.testing.assert_close(gradient, other_gradient, atol=1e-10, rtol=1e-10)
    if training and "dropout" in name:
        torch.manual_seed(5)
        assert not torch.equal(stack.run_layers(random_states(3, 23), mask), actual[0])


def test_the_layers_are_those_of_the_paper() -> None:
    """Y₁ = X₁ + attention(norm X₂) and Y₂ = X₂ + feed(norm Y₁), from X₁ = X₂."""
    stack, x, mask = make_stack(depth=2).double(), random_states(2, 5), torch.ones(2, 1, 1, 5, dtype=torch.bool)
    first = second = x
    for block in stack.blocks:
        y = block.around_attention.norm(second)
        first = first + block.attention(y, y, mask)
        second = second + block.feed(block.around_feed.norm(first))
    expected = stack.out(stack.norm(torch.cat([first, second], -1)))
    torch.testing.assert_close(stack(x, torch.ones(2, 5, dtype=torch.bool)), expected)
    *_, last = stack.iterate_layers(x, torch.ones(2, 5, dtype=torch.bool))
    torch.testing.assert_close(last, second)


def test_buckets_are_replayed_and_not_found_again() -> None:
    """Rebuilt states differ in the last bits: here by so much that all buckets would change."""
    stack = make_stack(depth=1, attention=LSH).double().train()
    mask, x = ragged_mask()[:, None, None], random_states(3, 23)
    run = ReversibleRun.start(stack.blocks, mask, x.device)
    (weights,) = group_weights(run, run.parameters())
    _, buckets = run.compute_update(0, "attention", x, weights)
    assert buckets is not None
    again, other_buckets = run.compute_update(0, "attention", x.flip(1), weights, buckets)
    assert other_buckets is buckets
    assert not torch.equal(run.compute_update(0, "attention", x.flip(1), weights)[0], again)


# Memory -----------------------------------------------------------------------------------------


def count_saved_bytes(depth: int, attention: dict[str, Any]) -> int:
    """Count the bytes that are stored for the backward pass, without weights."""
    stack, counts = make_stack(depth, attention=attention, dropout=0.1), []
    weights = {weight.data_ptr() for weight in stack.parameters()}

    def pack(tensor: Tensor) -> Tensor:
        if tensor.data_ptr() not in weights:
            counts.append(tensor.numel() * tensor.element_size())
        return tensor

    x = random_states(2, 64).float().requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        stack(x, torch.ones(2, 64, dtype=torch.bool))
    return sum(counts)


def test_memory_for_activations_does_not_grow_with_the_depth() -> None:
    assert count_saved_bytes(2, {"kind": "full"}) == count_saved_bytes(8, {"kind": "full"})


def test_of_each_layer_only_the_buckets_are_stored() -> None:
    """Two bytes per text, head, round and token."""
    growth = count_saved_bytes(8, LSH) - count_saved_bytes(2, LSH)
    assert growth == 6 * 2 * (2 * 2 * 2 * 64)


@pytest.mark.parametrize("chunk_feed", [1, 16, 50, 64, 208])
def test_a_chunked_feed_forward_network_gives_the_same_bits(chunk_feed: int) -> None:
    """A kernel may add up a piece of a few rows, or of an odd number, in another order."""
    gradients = []
    for number in (0, chunk_feed):
        torch.manual_seed(0)
        stack = make_stack(2, dropout=0.2, chunk_feed=number).double().train()
        x = random_states(2, 64).requires_grad_()
        torch.manual_seed(1)
        states = stack(x, torch.ones(2, 64, dtype=torch.bool))
        gradients.append((states, torch.autograd.grad(states.square().sum(), x)[0]))
    (states, gradient), (chunked_states, chunked_gradient) = gradients
    assert torch.equal(states, chunked_states) or chunk_feed % 16
    torch.testing.assert_close(states, chunked_states, atol=1e-12, rtol=1e-12)
    torch.testing.assert_close(gradient, chunked_gradient, atol=1e-12, rtol=1e-12)


# Modes and precisions ---------------------------------------------------------------------------


@pytest.mark.parametrize("attention", [FULL, LSH], ids=["full", "lsh"])
def test_without_gradients_the_states_are_the_same(attention: dict[str, Any]) -> None:
    stack, x = make_stack(attention=attention).eval(), random_states(3, 23).float()
    expected = stack(x, ragged_mask())
    with torch.no_grad():
        assert torch.equal(stack(x, ragged_mask()), expected)
    with torch.inference_mode():
        assert torch.equal(stack(x, ragged_mask()), expected)


def test_training_leaves_the_generator_one_number_further() -> None:
    """Backward passes leave it as it is, and a restored state repeats a step."""
    stack, x = make_stack(**OPTIONS["lsh, dropout"]), random_states(3, 23).float()
    torch.manual_seed(3)
    torch.randint(2**62, ())
    expected = torch.get_rng_state()
    torch.manual_seed(3)
    states = stack(x, ragged_mask())
    assert torch.equal(torch.get_rng_state(), expected)
    states.sum().backward()
    assert torch.equal(torch.get_rng_state(), expected)
    torch.manual_seed(3)
    assert torch.equal(stack(x, ragged_mask()), states)


@pytest.mark.parametrize("name", ["full, dropout", "lsh, dropout"])
@pytest.mark.parametrize("inside", [True, False], ids=["backward inside", "backward outside"])
def test_autocast_is_that_of_the_forward_pass(name: str, inside: bool) -> None:
    """Gradients are near those of autograd in the same precision, and all weights have one."""
    stack = make_stack(2, **OPTIONS[name]).train()
    mask, results = ragged_mask()[:, None, None], []
    for function in (stack.run_layers, lambda x, mask: run_plainly(stack, x, mask)):
        torch.manual_seed(3)
        x = random_states(3, 23).float().requires_grad_()
        stack.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            states = function(x, mask)
            if inside:
                states.float().square().sum().backward()
        if not inside:
            states.float().square().sum().backward()
        results.append([states.detach().float(), x.grad, *(weight.grad for weight in stack.parameters())])
    for actual, expected in zip(*results, strict=True):
        torch.testing.assert_close(actual, expected, atol=0.05 * float(expected.abs().max()), rtol=0.05)


def test_streams_of_a_16_bit_network_are_rebuilt_in_float32() -> None:
    stack = make_stack(6).bfloat16().train()
    x = random_states(2, 9).bfloat16().requires_grad_()
    stack(x, torch.ones(2, 9, dtype=torch.bool)).float().square().sum().backward()
    expected = x.grad
    double = make_stack(6).double().train()
    y = x.detach().double().requires_grad_()
    double(y, torch.ones(2, 9, dtype=torch.bool)).square().sum().backward()
    similarity = nn.functional.cosine_similarity(expected.double().flatten(), y.grad.flatten(), dim=0)
    assert similarity > 0.999


def test_frozen_weights_have_no_gradient() -> None:
    stack = make_stack(2)
    stack.blocks[0].feed.requires_grad_(False)
    stack(random_states(3, 23).float(), ragged_mask()).sum().backward()
    assert all(weight.grad is None for weight in stack.blocks[0].feed.parameters())
    assert all(weight.grad is not None for weight in stack.blocks[1].parameters())
    assert all(weight.grad is not None for weight in stack.blocks[0].attention.parameters())


def test_weights_that_changed_before_the_backward_pass_are_an_error() -> None:
    stack = make_stack(1)
    states = stack(random_states(3, 23).float().requires_grad_(), ragged_mask())
    with torch.no_grad():
        stack.blocks[0].feed.widen.weight.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        states.sum().backward()


# As an encoder and as a decoder -----------------------------------------------------------------


@pytest.mark.parametrize("attention", select_kinds(ATTENTIONS, supports_causal=True))
def test_a_decoder_goes_on_token_by_token(attention: str) -> None:
    torch.manual_seed(0)
    encoder = CausalEncoder(D, 30, stack={"kind": "reversible", "attention": {"kind": attention}}).eval()
    tokens = torch.randint(30, (2, 9))
    mask, cache, states = torch.ones_like(tokens, dtype=torch.bool), None, []
    for column in range(9):
        output = encoder.encode_with_state(tokens[:, [column]], mask[:, :1], cache)
        states.append(output.states)
        cache = output.cache
    torch.testing.assert_close(torch.cat(states, 1), encoder(tokens, mask))


def test_packed_texts_are_as_if_alone() -> None:
    torch.manual_seed(0)
    encoder = TransformerEncoder(D, 50, stack={"kind": "reversible"}).eval()
    tokens = torch.randint(50, (1, 9))
    packed = PackedMask.from_lengths([4, 5], tokens.device)
    states = encoder(tokens, packed, positions=torch.tensor([[0, 1, 2, 3, 0, 1, 2, 3, 4]]))
    for part in (slice(0, 4), slice(4, 9)):
        alone = encoder(tokens[:, part], torch.ones_like(tokens[:, part], dtype=torch.bool))
        torch.testing.assert_close(states[:, part], alone)


def test_mistakes_are_named() -> None:
    x, mask = random_states(1, 3).float(), torch.ones(1, 3, dtype=torch.bool)
    with pytest.raises(ConfigError, match="take no context of earlier states"):
        make_stack()(x, mask, StackContext((x, x, x), mask))
    with pytest.raises(ConfigError, match=r"chunk_feed is a number of positions, .* not -1"):
        make_stack(chunk_feed=-1)
    with pytest.raises(ConfigError, match="'masked' cannot be used in a decoder"):
        ReversibleDecoder(D, cross=False, attention={"kind": "masked"})
    with pytest.raises(ConfigError, match="no attention over a source"):
        ReversibleDecoder(D)
