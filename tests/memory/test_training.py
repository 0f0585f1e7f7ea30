"""What every memory promises to those who train and store it: gradients, files, many at once."""

import io
from typing import Any

import torch
from memory_cases import CASES, EVERY, contents, make, real, same
from memory_cases import write_states as told
from safetensors.torch import load as load_bytes
from safetensors.torch import save as save_bytes
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap


@EVERY
def test_every_weight_and_every_real_input_gets_a_gradient(name: str) -> None:
    memory = make(name).train()
    states = contents(memory, 2, 5).requires_grad_()
    query = contents(memory, 2, 3, seed=2).requires_grad_()
    mask = real(["xxxxx", "xx..."])
    reading = memory.read(told(memory, states, mask).state, query)
    loss = (reading.found * contents(memory, 2, 3, seed=3)[:, :, 0]).sum()
    if CASES[name].hard:
        loss = loss + reading.scores.masked_fill(~mask[:, None, None, None], 0).square().sum()
        loss = loss + (0 if reading.nothing is None else reading.nothing.square().sum())
        loss = loss + (0 if reading.salience is None else (reading.salience * (reading.salience > -9)).sum())
    loss.backward()
    for part, weight in [*memory.named_parameters(), ("query", query)]:
        assert weight.grad is not None, part
        assert weight.grad.isfinite().all(), part
        assert weight.grad.abs().sum() > 0, part
    assert states.grad is not None
    reached = states.grad.abs().sum((-2, -1)) > 0
    assert torch.equal(reached, mask)


@EVERY
def test_weights_survive_the_disk(name: str) -> None:
    memory, other = make(name), make(name, seed=9)
    written, query = told(memory, contents(memory, 2, 5)), contents(memory, 2, 3, seed=2)
    stored = save_bytes(dict(memory.state_dict())) if memory.state_dict() else b""
    other.load_state_dict(load_bytes(stored) if stored else {}, strict=True)
    found = memory.read(written.state, query).found
    assert torch.equal(other.read(written.state, query).found, found)


@EVERY
def test_what_is_remembered_survives_the_disk(name: str) -> None:
    """A state is tensors alone, so it can be stored and read on."""
    memory = make(name)
    written, query = told(memory, contents(memory, 2, 5)), contents(memory, 2, 3, seed=2)
    parts = written.state._asdict()
    stored = io.BytesIO(save_bytes({key: part.contiguous() for key, part in parts.items()}))
    back = type(written.state)(**load_bytes(stored.getvalue()))
    found = memory.read(written.state, query).found
    assert torch.equal(memory.read(back, query).found, found)


@EVERY
def test_many_memories_as_one_program(name: str) -> None:
    """Under vmap every run writes and reads as it would alone, in training too."""
    memories = [make(name, seed).train() for seed in range(3)]
    memory = memories[0]
    states = torch.stack([contents(memory, 2, 10, seed=s) for s in range(3)])
    query = torch.stack([contents(memory, 2, 3, seed=s + 9) for s in range(3)])
    mask = torch.rand(3, 2, 10) < 0.8
    rolls = torch.rand(3, 2, memory.num_uniforms)

    class Whole(nn.Module):
        def __init__(self, memory: Any) -> None:
            super().__init__()
            self.memory = memory

        def forward(self, states: Tensor, mask: Tensor, query: Tensor, rolls: Tensor) -> Any:
            half = self.memory.write(self.memory.empty(2, states), states[:, :4], mask[:, :4])
            written = self.memory.write(half.state, states[:, 4:], mask[:, 4:])
            reading = self.memory.read(written.state, query, uniforms=rolls)
            return tuple(reading)[:3], written.weights

    wholes = [Whole(memory) for memory in memories]
    weights, buffers = stack_module_state(wholes)
    together = vmap(lambda own, kept, *inputs: functional_call(wholes[0], (own, kept), inputs))
    (found, read, scores), put = together(weights, buffers, states, mask, query, rolls)
    for run, whole in enumerate(wholes):
        (found1, read1, scores1), put1 = whole(states[run], mask[run], query[run], rolls[run])
        same(found[run], found1)
        same(read[run], read1)
        same(scores[run], scores1)
        same(put[run], put1)


@EVERY
def test_double_precision_gives_the_same_numbers(name: str) -> None:
    memory = make(name)
    states, query = contents(memory, 2, 5), contents(memory, 2, 3, seed=2)
    single = memory.read(told(memory, states).state, query)
    double = memory.double()
    written = told(double, states.double())
    reading = double.read(written.state, query.double())
    parts = (reading.found, reading.weights, reading.scores, written.weights)
    assert all(part.dtype == torch.float64 for part in parts)
    same(reading.found.float(), single.found)
    same(reading.weights.float(), single.weights)
