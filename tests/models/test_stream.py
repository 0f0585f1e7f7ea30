"""What a text model carries from segment to segment of running text, and how it is read.

Shapes: b rows of text, n tokens, m cached states, k layers, h heads.
"""

from typing import Any

import pytest
import torch
from torch import Tensor

from mnemic.models import StreamMemory, TextModel, WindowBatch, build_model

LENGTH, MEMORY, VOCAB = 4, 6, 15


def make_model(memory_length: int = MEMORY, attention: str = "transformer-xl") -> TextModel:
    torch.manual_seed(0)
    encode = {
        "kind": "causal",
        "embeddings": {"kind": "sum", "positions": {"kind": "none"}},
        "stack": {"kind": "transformer", "depth": 3, "attention": {"kind": attention}},
        "memory_length": memory_length,
    }
    model = {"width": 16, "encode": encode, "respond": {"kind": "next-token"}}
    network: Any = build_model(model, {"vocab": VOCAB, "max_length": LENGTH}).double().eval()
    for weight in network.parameters():
        weight.data.add_(0.2 * torch.randn_like(weight))
    return network


def random_tokens(rows: int, length: int) -> Tensor:
    return torch.randint(VOCAB, (rows, length), generator=torch.Generator().manual_seed(1))


def make_segment(tokens: Tensor, starts: list[int], memory: StreamMemory | None = None) -> WindowBatch:
    mask = torch.ones_like(tokens, dtype=torch.bool)
    return WindowBatch(tokens, mask, tokens, mask, stream_starts=torch.tensor(starts), memory=memory)


def test_a_row_that_starts_anew_has_no_memory_and_others_keep_theirs() -> None:
    model, tokens = make_model(), random_tokens(3, 2 * LENGTH)
    first, second = tokens.split(LENGTH, 1)
    memory = model(make_segment(first, [0, 40, 80])).memory
    assert memory.next_starts.tolist() == [4, 44, 84]
    together = model(make_segment(second, [4, 48, 80], memory))
    alone = model(make_segment(second, [4, 48, 80]))
    torch.testing.assert_close(together.logits[1:], alone.logits[1:])
    assert not torch.allclose(together.logits[0], alone.logits[0])
    row_memory = model(make_segment(first[:1], [0])).memory
    torch.testing.assert_close(model(make_segment(second[:1], [4], row_memory)).logits, together.logits[:1])
    # And what it starts with is not what was there before.
    assert together.memory.states.mask.sum(1).tolist() == [6, 4, 4]
    assert together.memory.token_numbers.tolist() == [
        [2, 3, 4, 5, 6, 7],
        [-1, -1, 48, 49, 50, 51],
        [-1, -1, 80, 81, 82, 83],
    ]


def test_a_memory_is_a_table_of_tensors_and_back() -> None:
    model, tokens = make_model(), random_tokens(2, 2 * LENGTH)
    memory = model(make_segment(tokens[:, :LENGTH], [0, 9])).memory
    tensors = memory.to_tensors()
    assert all(not tensor.requires_grad for tensor in tensors.values())
    restored = StreamMemory.from_tensors(dict(reversed(tensors.items())))
    second = make_segment(tokens[:, LENGTH:], [4, 13])
    expected = model(second._replace(memory=memory)).logits
    assert torch.equal(model(second._replace(memory=restored)).logits, expected)


@pytest.mark.parametrize("memory_length", [0, MEMORY])
def test_windows_that_are_no_stream_share_nothing(memory_length: int) -> None:
    model, tokens = make_model(memory_length), random_tokens(2, LENGTH)
    window = make_segment(tokens, [0, 9])._replace(stream_starts=None)
    assert model(window).memory is None
    torch.testing.assert_close(model(window).logits, model(make_segment(tokens, [0, 9])).logits)


@pytest.mark.parametrize("attention", ["full", "transformer-xl"])
def test_evidence_is_the_share_of_each_cached_state(attention: str) -> None:
    """Weights and the share of the segment itself add up to 1; a hidden state has none."""
    model, tokens = make_model(attention=attention), random_tokens(2, 3 * LENGTH)
    memory = model(make_segment(tokens[:, :LENGTH], [0, 0])).memory
    second = make_segment(tokens[:, LENGTH : 2 * LENGTH], [4, 5], memory)  # the second row starts anew
    reading = model.read_memory(second)
    assert reading.weights.shape == reading.scores.shape == (2, 3, 4, LENGTH, LENGTH)  # b k h n m
    assert reading.nothing is not None
    shares = torch.cat([reading.scores, reading.nothing.unsqueeze(-1)], -1).softmax(-1)
    torch.testing.assert_close(shares[..., :-1], reading.weights)
    assert (reading.weights[1] == 0).all()
    assert (reading.weights[0] > 0).all()
    torch.testing.assert_close(reading.found, model(second).states)
    with pytest.raises(ValueError, match="have no memory"):
        model.read_memory(make_segment(tokens[:, :LENGTH], [0, 0]))


def test_without_a_state_the_others_get_its_share() -> None:
    """Hide what was read most, and the other shares grow until all add up to 1 again."""
    model, tokens = make_model(), random_tokens(1, 2 * LENGTH)
    memory = model(make_segment(tokens[:, :LENGTH], [0])).memory
    second = make_segment(tokens[:, LENGTH:], [4], memory)
    weights = model.read_memory(second).weights[0, 0]  # h n m, of the first layer
    slot = int(weights.sum((0, 1)).argmax())
    hidden = memory.states._replace(mask=memory.states.mask & (torch.arange(LENGTH) != slot))
    fewer = second._replace(memory=memory._replace(states=hidden))
    expected = weights / (1 - weights[..., slot, None])
    expected[..., slot] = 0
    torch.testing.assert_close(model.read_memory(fewer).weights[0, 0], expected)
    assert not torch.allclose(model(fewer).states, model(second).states)
