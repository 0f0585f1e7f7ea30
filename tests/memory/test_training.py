"""The training contract of all memories: gradients, files, vmap and double precision."""

import io
from typing import Any

import torch
from memory_cases import CASES, EVERY, contents, make, real, same, write_states
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
    reading = memory.read(write_states(memory, states, mask).state, query)
    loss = (reading.found * contents(memory, 2, 3, seed=3)[:, :, 0]).sum()
    if CASES[name].hard:
        loss = loss + reading.scores.masked_fill(~mask[:, None, None, None], 0).square().sum()
        loss = loss + (0 if reading.nothing is None else reading.nothing.square().sum())
        loss = loss + (0 if reading.salience is None else (reading.salience * (reading.salience > -9)).sum())
    loss.backward()
    for weight_name, weight in [*memory.named_parameters(), ("query", query)]:
        assert weight.grad is not None, weight_name
        assert weight.grad.isfinite().all(), weight_name
        assert weight.grad.abs().sum() > 0, weight_name
    assert states.grad is not None
    has_gradient = states.grad.abs().sum((-2, -1)) > 0
    assert torch.equal(has_gradient, mask)


@EVERY
def test_weights_survive_the_disk(name: str) -> None:
    memory, reloaded = make(name), make(name, seed=9)
    written, query = write_states(memory, contents(memory, 2, 5)), contents(memory, 2, 3, seed=2)
    saved = save_bytes(dict(memory.state_dict())) if memory.state_dict() else b""
    reloaded.load_state_dict(load_bytes(saved) if saved else {}, strict=True)
    output = memory.read(written.state, query).found
    assert torch.equal(reloaded.read(written.state, query).found, output)


@EVERY
def test_what_is_remembered_survives_the_disk(name: str) -> None:
    """A state holds only tensors, so it can be saved and read later."""
    memory = make(name)
    written, query = write_states(memory, contents(memory, 2, 5)), contents(memory, 2, 3, seed=2)
    fields = written.state._asdict()
    saved = io.BytesIO(save_bytes({key: field.contiguous() for key, field in fields.items()}))
    restored = type(written.state)(**load_bytes(saved.getvalue()))
    output = memory.read(written.state, query).found
    assert torch.equal(memory.read(restored, query).found, output)


@EVERY
def test_memories_under_vmap_equal_single_memories(name: str) -> None:
    """Under vmap each run writes and reads as it would alone, also in training."""
    memories = [make(name, seed).train() for seed in range(3)]
    memory = memories[0]
    states = torch.stack([contents(memory, 2, 10, seed=seed) for seed in range(3)])
    query = torch.stack([contents(memory, 2, 3, seed=seed + 9) for seed in range(3)])
    mask = torch.rand(3, 2, 10) < 0.8
    uniforms = torch.rand(3, 2, memory.num_uniforms)

    class WriteThenRead(nn.Module):
        def __init__(self, memory: Any) -> None:
            super().__init__()
            self.memory = memory

        def forward(self, states: Tensor, mask: Tensor, query: Tensor, uniforms: Tensor) -> Any:
            half = self.memory.write(self.memory.empty(2, states), states[:, :4], mask[:, :4])
            written = self.memory.write(half.state, states[:, 4:], mask[:, 4:])
            reading = self.memory.read(written.state, query, uniforms=uniforms)
            return tuple(reading)[:3], written.weights

    modules = [WriteThenRead(run_memory) for run_memory in memories]
    weights, buffers = stack_module_state(modules)
    together = vmap(
        lambda run_weights, run_buffers, *inputs: functional_call(modules[0], (run_weights, run_buffers), inputs)
    )
    (outputs, read_weights, scores), write_weights = together(weights, buffers, states, mask, query, uniforms)
    for run, module in enumerate(modules):
        (output1, read1, scores1), put1 = module(states[run], mask[run], query[run], uniforms[run])
        same(outputs[run], output1)
        same(read_weights[run], read1)
        same(scores[run], scores1)
        same(write_weights[run], put1)


@EVERY
def test_double_precision_gives_the_same_numbers(name: str) -> None:
    memory = make(name)
    states, query = contents(memory, 2, 5), contents(memory, 2, 3, seed=2)
    single = memory.read(write_states(memory, states).state, query)
    double = memory.double()
    written = write_states(double, states.double())
    reading = double.read(written.state, query.double())
    tensors = (reading.found, reading.weights, reading.scores, written.weights)
    assert all(tensor.dtype == torch.float64 for tensor in tensors)
    same(reading.found.float(), single.found)
    same(reading.weights.float(), single.weights)
