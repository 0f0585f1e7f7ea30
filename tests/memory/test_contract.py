"""The contract of all memories: shapes, padding, batches, and writes in several calls."""

import pytest
import torch
from memory_cases import CASES, EVERY, D, contents, copy, evidence, make, real, same, write_states
from torch import Tensor

from mnemic.memory import MEMORIES
from mnemic.memory.parts.hop_update import UPDATES
from mnemic.recipe import select_kinds


def test_every_kind_has_a_case() -> None:
    assert {case.spec["kind"] for case in CASES.values()} == set(MEMORIES)
    updates = [case.spec.get("update", {"kind": "add"}) for case in CASES.values()]
    assert {update["kind"] for update in updates} == set(UPDATES)


@EVERY
def test_shapes(name: str) -> None:
    memory, case = make(name), CASES[name]
    states, query = contents(memory, 2, 5), contents(memory, 2, 3, seed=2)
    written = write_states(memory, states, real(["xxxxx", "xx..."]))
    reading = memory.read(written.state, query)
    slots = written.weights.shape[2]
    assert written.weights.shape == (2, 5, slots)
    assert reading.found.shape == (2, 3, D)
    assert reading.weights.shape == (2, case.hops, case.heads, 3, slots)
    assert reading.scores.shape == reading.weights.shape
    assert isinstance(written.state, tuple)
    assert type(written.state)._fields  # a NamedTuple
    assert all(isinstance(field, Tensor) for field in written.state)
    assert isinstance(memory.num_tables, int)
    assert isinstance(memory.num_uniforms, int)


@EVERY
def test_nothing_is_changed_in_place(name: str) -> None:
    memory = make(name).train()
    states, query, mask = contents(memory, 2, 5), contents(memory, 2, 3), real(["xxxxx", "xx..."])
    before = memory.empty(2, states)
    first = memory.write(before, states, mask)
    snapshots = [copy(tensors) for tensors in (before, first.state, [states, query, mask], memory.buffers())]
    uniforms = torch.rand(2, memory.num_uniforms)
    memory.read(memory.write(first.state, states * 2, mask).state, query, uniforms=uniforms)
    memory.read(first.state, query, uniforms=uniforms)
    current = [before, first.state, [states, query, mask], list(memory.buffers())]
    for tensors, snapshot in zip(current, snapshots):
        for tensor, copied in zip(tensors, snapshot, strict=True):
            assert torch.equal(tensor, copied)


@EVERY
def test_an_empty_memory_can_be_read(name: str) -> None:
    """Without writes, or with padding only, reads are finite and equal."""
    memory = make(name)
    states = contents(memory, 2, 4, size=1e3)
    query = contents(memory, 2, 3, seed=2).requires_grad_()
    unwritten = memory.read(memory.empty(2, states), query)
    written = write_states(memory, states, real(["....", "...."]))
    padded = memory.read(written.state, query)
    assert unwritten.found.isfinite().all()
    assert evidence(padded, written).eq(0).all()
    same(padded.found, unwritten.found)
    # Of hard reads only the scores can be trained.
    (padded.found.sum() + (padded.scores.sum() if CASES[name].hard else 0)).backward()
    assert query.grad is not None
    assert query.grad.isfinite().all()


@EVERY
def test_padding_is_never_read_wherever_it_stands(name: str) -> None:
    memory = make(name)
    states, query = contents(memory, 1, 4), contents(memory, 1, 3, seed=2)
    alone = write_states(memory, states)
    plain = memory.read(alone.state, query)
    for row in ("xxxx...", "...xxxx", "x.xx..x", "..x.xxx"):
        mask = real([row])
        padded_states = contents(memory, 1, len(row), seed=3, size=1e3)
        padded_states[mask] = states[0]
        written = write_states(memory, padded_states, mask)
        reading = memory.read(written.state, query)
        same(reading.found, plain.found)
        same(evidence(reading, written)[..., mask[0]], evidence(plain, alone))
        assert evidence(reading, written)[..., ~mask[0]].eq(0).all()
        assert written.weights[:, ~mask[0]].eq(0).all()


@EVERY
def test_batch_composition_changes_nothing(name: str) -> None:
    memory = make(name)
    states, query = contents(memory, 3, 10), contents(memory, 3, 2, seed=2)
    mask = real(["xxxxxxxxxx", "xxx.......", ".........."])
    together = memory.read(write_states(memory, states, mask).state, query)
    for row in range(3):
        alone = write_states(memory, states[row : row + 1], mask[row : row + 1])
        reading = memory.read(alone.state, query[row : row + 1])
        same(reading.found[0], together.found[row])
        same(reading.weights[0], together.weights[row])


@EVERY
def test_queries_do_not_see_each_other(name: str) -> None:
    memory = make(name)
    written, query = write_states(memory, contents(memory, 2, 5)), contents(memory, 2, 3, seed=2)
    together = memory.read(written.state, query)
    for position in range(3):
        single = memory.read(written.state, query[:, position : position + 1])
        same(single.found[:, 0], together.found[:, position])
        same(single.weights[:, :, :, 0], together.weights[:, :, :, position])


@pytest.mark.parametrize("name", [case_name for case_name, case in CASES.items() if case.piecewise])
@pytest.mark.parametrize("cut", [0, 1, 4, 7, 12])
def test_two_writes_equal_one_write(name: str, cut: int) -> None:
    """Also with more inputs than slots, and with padding at the cut."""
    memory = make(name)
    states, query = contents(memory, 3, 12), contents(memory, 3, 2, seed=2)
    mask = real(["xxxxxxxxxxxx", "xxx..x.xx...", "............"])
    once = write_states(memory, states, mask)
    first = write_states(memory, states[:, :cut], mask[:, :cut])
    second = memory.write(first.state, states[:, cut:], mask[:, cut:])
    once_reading, split_reading = memory.read(once.state, query), memory.read(second.state, query)
    same(split_reading.found, once_reading.found)
    same(evidence(split_reading, second), evidence(once_reading, once)[..., cut:])


@EVERY
def test_one_memory_can_be_shared_by_a_whole_batch(name: str) -> None:
    """Each row reads the same state of batch size 1, as with a knowledge base."""
    memory = make(name)
    states, query = contents(memory, 1, 5), contents(memory, 4, 3, seed=2)
    shared = memory.read(write_states(memory, states).state, query)
    expanded = memory.read(write_states(memory, states.expand(4, -1, -1, -1)).state, query)
    same(shared.found, expanded.found)
    same(shared.weights, expanded.weights)


@EVERY
def test_reading_is_deterministic_unless_uniforms_are_passed_in_training(name: str) -> None:
    memory = make(name)
    written, query = write_states(memory, contents(memory, 30, 5)), contents(memory, 30, 3, seed=2)
    uniforms = torch.rand(30, memory.num_uniforms)
    plain = memory.read(written.state, query).found
    assert torch.equal(memory.read(written.state, query, uniforms=uniforms).found, plain)
    assert torch.equal(memory.train().read(written.state, query).found, plain)
    sampled = memory.read(written.state, query, uniforms=uniforms).found
    assert torch.equal(memory.read(written.state, query, uniforms=uniforms).found, sampled)
    assert torch.equal(sampled, plain) == (not memory.num_uniforms)


@EVERY
def test_a_memory_says_what_its_state_and_evidence_are(name: str) -> None:
    memory = make(name)
    assert type(memory.empty(2, contents(memory, 2, 1))) is memory.State
    assert memory.labels.column
    assert memory.labels.caption.endswith(".")
    assert memory.labels.caption.format(item="fact")


def test_memories_for_segments_can_be_planned_and_say_what_happens_when_full() -> None:
    kinds = select_kinds(MEMORIES, carries_segments=True)
    assert set(kinds) == {"blended", "selective"}
    for memory in kinds.values():
        assert memory.when_full
        assert callable(memory.plan_writes)
