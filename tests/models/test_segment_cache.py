"""Cached states under masked words: what a segment sees of those before, and how it is read.

Shapes: b documents, s segments, n tokens, k layers, h heads, m cached states.
"""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from mnemic.encode import ATTENTIONS, STACKS
from mnemic.encode.stacks import StackContext
from mnemic.encode.stacks.two_stream import Stream, TwoStreamStack
from mnemic.models import build_model
from mnemic.models.inputs import SegmentBatch
from mnemic.models.segment_model import SegmentModel
from mnemic.recipe import ConfigError, build, select_kinds
from mnemic.train.initialize import check_memory_length

VOCAB, LENGTH, MEMORY, D = 20, 4, 6, 16
KINDS = [kind for kind in select_kinds(ATTENTIONS, supports_context=True) if kind != "masked"]
NO_POSITIONS = {"kind": "sum", "positions": {"kind": "none"}}


def make_spec(kind: str = "transformer-xl", *, depth: int = 2, memory_length: int = MEMORY) -> dict[str, Any]:
    stack = {"kind": "encoder", "depth": depth, "norm": "pre", "attention": {"kind": kind}}
    encode = {"kind": "transformer", "embeddings": NO_POSITIONS, "stack": stack, "memory_length": memory_length}
    return {"width": D, "encode": encode, "respond": {"kind": "predictor"}, "segments": {}}


def make_model(*options: Any, **more: Any) -> SegmentModel:
    torch.manual_seed(0)
    network: Any = build_model(make_spec(*options, **more), {"vocab": VOCAB, "max_length": LENGTH})
    for weight in network.parameters():
        weight.data.add_(0.2 * torch.randn_like(weight))
    return network.double().eval()


def make_documents(*counts: int, seed: int = 1) -> SegmentBatch:
    """Make documents of so many segments; the second token of each segment is masked."""
    shape = (len(counts), max(counts), LENGTH)
    tokens = torch.randint(3, VOCAB, shape, generator=torch.Generator().manual_seed(seed))
    mask = (torch.arange(max(counts)) < torch.tensor(counts)[:, None])[..., None].expand(shape)
    question = tokens[:, 0, :0]
    prediction_mask = mask & (torch.arange(LENGTH) == 1)
    return SegmentBatch(tokens * mask, mask, mask, question, question > 0, question, prediction_mask)


def encode_by_loops(network: SegmentModel, inputs: SegmentBatch) -> Tensor:
    """Encode with all inputs of each layer at hand, and no cache: b s n d."""
    encode: Any = network.encode
    num_segments = inputs.tokens.shape[1]
    layer_inputs = encode.embeddings(inputs.tokens.flatten(1), inputs.mask.flatten(1)).unflatten(1, (num_segments, -1))
    for block in encode.stack.blocks:
        outputs = []
        for segment in range(num_segments):
            first = max(segment * LENGTH - encode.memory_length, 0)
            before = layer_inputs[:, :segment].flatten(1, 2)[:, first:]
            seen = inputs.mask[:, : segment + 1].flatten(1)[:, first:]
            outputs.append(block(layer_inputs[:, segment], seen[:, None, None], before))
        layer_inputs = torch.stack(outputs, 1)
    return encode.stack.norm(layer_inputs) * inputs.mask.unsqueeze(-1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_cache_equals_all_layer_inputs_at_hand(kind: str) -> None:
    network, inputs = make_model(kind), make_documents(4, 2)
    torch.testing.assert_close(network.encode_in_turn(inputs), encode_by_loops(network, inputs))


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_the_reach_is_the_length_times_the_depth(depth: int) -> None:
    """What is that far before a segment changes it, what is one further back not a bit."""
    network, inputs = make_model(depth=depth, memory_length=LENGTH), make_documents(depth + 2)
    states = network.encode_in_turn(inputs)[:, -1]
    for segment, is_seen in ((1, True), (0, False)):
        tokens = inputs.tokens.clone()
        tokens[:, segment] = (tokens[:, segment] + 1) % VOCAB
        changed = network.encode_in_turn(inputs._replace(tokens=tokens))[:, -1]
        assert torch.equal(changed, states) != is_seen


def test_documents_never_mix_and_padding_changes_nothing() -> None:
    network, inputs = make_model(), make_documents(3, 1, 2)
    together = network.encode_in_turn(inputs)
    for row, count in enumerate((3, 1, 2)):
        alone = SegmentBatch(*(None if field is None else field[row : row + 1, :count] for field in inputs[:3]),
                             *(None if field is None else field[row : row + 1] for field in inputs[3:]))  # fmt: skip
        torch.testing.assert_close(together[row, :count], network.encode_in_turn(alone)[0])
        assert (together[row, count:] == 0).all()


def test_without_carrying_each_segment_is_alone() -> None:
    network, inputs = make_model(), make_documents(3)
    with_cache = network(inputs).masked_logits
    network.carry_memory = False
    without = network(inputs).masked_logits
    assert torch.equal(with_cache[0], without[0])
    assert not torch.isclose(with_cache[1:], without[1:]).all(1).any()
    encode: Any = network.encode
    alone = [encode(inputs.tokens[:, number], inputs.mask[:, number]) for number in range(3)]
    torch.testing.assert_close(network.encode_in_turn(inputs), torch.stack(alone, 1))


def test_gradients_reach_the_projection_of_cached_states_and_nothing_earlier() -> None:
    network, inputs = make_model(depth=1), make_documents(2)
    embedded: list[Tensor] = []

    def keep_gradient(module: nn.Module, arguments: Any, output: Tensor) -> None:
        output.retain_grad()
        embedded.append(output)

    network.encode.embeddings.register_forward_hook(keep_gradient)
    key: Any = network.encode.stack.blocks[0].attention.project.key
    gradients = []
    for carries in (True, False):
        network.zero_grad()
        network.carry_memory = carries
        network.encode_in_turn(inputs)[:, 1].square().sum().backward()
        gradients.append(key.weight.grad.clone())
    assert not torch.allclose(*gradients)
    assert embedded[0].grad is None or (embedded[0].grad == 0).all()
    assert embedded[1].grad is not None


def test_the_content_stream_of_two_streams_has_a_cache() -> None:
    """The states of a segment are those of the layers over it and all inputs of them before."""
    spec = make_spec(depth=2, memory_length=2 * LENGTH)
    stack = {"kind": "two-stream", "depth": 2}
    network: Any = build_model(spec | {"encode": spec["encode"] | {"stack": stack}}, {"vocab": VOCAB})
    network, inputs = network.double().eval(), make_documents(3)
    encode, layer_inputs = network.encode, network.encode.embeddings(inputs.tokens.flatten(1), inputs.mask.flatten(1))
    x = layer_inputs.unflatten(1, (3, -1))
    for block in encode.stack.blocks:
        outputs = []
        for segment in range(3):
            num_seen = (segment + 1) * LENGTH
            visible = torch.ones(1, LENGTH, num_seen, dtype=torch.bool)
            stream = Stream(x[:, segment], visible, torch.zeros_like(visible))
            outputs.append(block([stream], x[:, :segment].flatten(1, 2))[0].states)
        x = torch.stack(outputs, 1)
    torch.testing.assert_close(network.encode_in_turn(inputs), x)
    reading = network.read_cache(inputs)[1]
    assert reading.weights.shape == (1, 2, 4, LENGTH, 2 * LENGTH)
    torch.testing.assert_close(reading.found, x[:, 2])


def test_scores_of_the_content_stream_are_those_that_it_attends_by() -> None:
    torch.manual_seed(0)
    stack = TwoStreamStack(D, depth=1).double().eval()
    for weight in stack.parameters():
        weight.data.add_(0.2 * torch.randn_like(weight))
    prefix, x = torch.randn(2, 1, 3, D, dtype=torch.float64)
    mask = torch.ones(1, 3, dtype=torch.bool)
    (scores,) = stack.iterate_scores(x, mask, StackContext((prefix,), mask))
    block = stack.blocks[0]
    project = block.attention.project
    mixed = scores.softmax(-1) @ project.project_key_values(torch.cat([prefix, x], 1)).values
    states = block.around_attention.add_and_norm(x, project.merge_heads(mixed))
    states = block.around_feed.add_and_norm(states, block.feed(states))
    torch.testing.assert_close(stack(x, mask, StackContext((prefix,), mask)), states)


@pytest.mark.parametrize("kind", ["full", "transformer-xl"])
def test_evidence_is_the_share_of_each_cached_state(kind: str) -> None:
    network, inputs = make_model(kind), make_documents(3, 1)
    readings = network.read_cache(inputs)
    assert [reading.weights.shape for reading in readings] == [(2, 2, 4, 4, 4), (2, 2, 4, 4, 6)]  # b k h n m
    states = network.encode_in_turn(inputs)
    for segment, reading in enumerate(readings, start=1):
        assert reading.nothing is not None
        shares = torch.cat([reading.scores, reading.nothing.unsqueeze(-1)], -1).softmax(-1)
        torch.testing.assert_close(shares[0, ..., :-1], reading.weights[0])
        assert (reading.weights[0] > 0).all()
        torch.testing.assert_close(reading.found[0], states[0, segment])


@pytest.mark.parametrize("kind", ["full", "transformer-xl"])
def test_scores_are_those_that_a_segment_attends_by(kind: str) -> None:
    """Values weighted by them give the states."""
    network, inputs = make_model(kind), make_documents(2)
    encode: Any = network.encode
    first, second = inputs.tokens.unbind(1)
    mask = torch.ones_like(first, dtype=torch.bool)
    context = encode.encode_segment(first, mask)[1]
    x = encode.embeddings(second, mask)
    scores = encode.iterate_scores(second, mask, context)
    for block, layer_scores, prefix in zip(encode.stack.blocks, scores, context.layers, strict=True):
        states = block.around_attention.pre_norm(torch.cat([prefix, x], 1))
        project = block.attention.project
        mixed = layer_scores.softmax(-1) @ project.project_key_values(states).values
        x = block.around_attention.add_and_norm(x, project.merge_heads(mixed))
        x = block.around_feed.add_and_norm(x, block.feed(block.around_feed.pre_norm(x)))
    torch.testing.assert_close(encode.stack.norm(x), encode.encode_segment(second, mask, context)[0])


def test_what_does_not_go_together_is_refused() -> None:
    spec, sizes = make_spec(), {"vocab": VOCAB, "max_length": LENGTH}
    with pytest.raises(ConfigError, match=r"a memory by itself.*leave out model\.memory"):
        build_model(spec | {"memory": {"kind": "selective"}}, sizes)
    with pytest.raises(ConfigError, match=r"positions\.kind=none"):
        build_model(spec | {"encode": spec["encode"] | {"embeddings": {"kind": "sum"}}}, sizes)
    with pytest.raises(ConfigError, match="is at least 0, not -1"):
        make_model(memory_length=-1)
    for kind in ("external", "mlp-mixer"):
        with pytest.raises(ConfigError, match="a stack of kind 'encoder' with an attention that supports a context"):
            make_model(kind)
    for kind in (kind for kind in STACKS if kind not in ("encoder", "two-stream")):
        stack = build(STACKS, {"kind": kind}, width=D)
        assert not getattr(stack, "supports_context", False)
        with pytest.raises(ConfigError, match="a stack of kind 'encoder'"):
            build_model(spec | {"encode": spec["encode"] | {"stack": {"kind": kind}}}, sizes)
    check_memory_length(spec, {"kind": "long-documents"})
    with pytest.raises(ConfigError, match=r"add model\.segments"):
        check_memory_length({key: value for key, value in spec.items() if key != "segments"}, {"kind": "corpus"})


@pytest.mark.parametrize("memory_length", [0, LENGTH])
def test_a_cache_learns_what_no_segment_holds(memory_length: int) -> None:
    """Every segment repeats the one before: the masked word is there, at the same place."""
    torch.manual_seed(0)
    network: Any = build_model(make_spec(depth=1, memory_length=memory_length), {"vocab": VOCAB, "max_length": LENGTH})
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    generator = torch.Generator().manual_seed(0)
    for _ in range(100):
        inputs = make_documents(*[2] * 64)
        words = torch.randint(3, VOCAB, (64, 1, LENGTH), generator=generator).expand(-1, 2, -1)
        hidden = torch.tensor([[False] * LENGTH, [False, True, False, False]]).expand(64, -1, -1)
        inputs = inputs._replace(tokens=words.masked_fill(hidden, 2), prediction_mask=hidden)
        loss = nn.functional.cross_entropy(network(inputs).masked_logits, words[hidden])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert (loss < 0.3) if memory_length else (loss > 2.5)
