"""Append memories: slots hold the newest inputs in order; weights are shares."""

import pytest
import torch
from memory_cases import APPENDING, CASES, EVERY, SLOTS, contents, copy, make, real, write_states

from mnemic.memory.append import Slots

# One input per slot ----------------------------------------------------------------------------


@APPENDING
def test_the_newest_are_kept_in_order(name: str) -> None:
    memory = make(name)
    states = contents(memory, 2, 12)
    mask = real(["xxxxxxxxxxxx", "xxx.xx.xxxx."])  # 12 and 9 of them, for 8 slots
    written = write_states(memory, states, mask)
    state = written.state
    assert isinstance(state, Slots)
    assert state.mask.shape == (2, SLOTS)
    assert state.num_written.tolist() == [12, 9]
    for row in range(2):
        positions = mask[row].nonzero().squeeze(1)
        newest = positions[-SLOTS:]
        assert state.sources[row][state.mask[row]].tolist() == list(range(len(positions)))[-SLOTS:]
        assert torch.equal(state.states[row][state.mask[row]], states[row, newest])
        evicted = torch.ones(12, dtype=torch.bool)
        evicted[newest] = False
        assert written.weights[row, evicted].eq(0).all()
        # Each of the newest inputs is in one slot, with weight 1.
        recovered = written.weights[row, newest] @ state.states[row].flatten(1)
        assert torch.equal(recovered, states[row, newest].flatten(1))
        assert torch.equal(written.weights[row, newest].sum(-1), torch.ones(len(newest)))


@APPENDING
@pytest.mark.parametrize("count", [SLOTS - 1, SLOTS, SLOTS + 1])
def test_slots_never_exceed_the_capacity(name: str, count: int) -> None:
    memory = make(name)
    states = contents(memory, 1, count)
    assert write_states(memory, states).state.mask.shape[1] == min(count, SLOTS)


@APPENDING
def test_each_input_goes_to_one_slot_and_padding_to_none(name: str) -> None:
    memory = make(name)
    mask = real(["xx.x..", ".x.xxx"])
    written = write_states(memory, contents(memory, 2, 6), mask)
    assert torch.equal(written.weights.sum(2), mask.float())
    assert written.weights.sum(1).le(1).all()
    state = written.state
    assert torch.equal(written.weights.sum(1) > 0, state.mask)
    assert state.sources[~state.mask].eq(-1).all()


@APPENDING
def test_sources_count_on_from_write_to_write(name: str) -> None:
    memory = make(name)
    states = contents(memory, 1, 5)
    state = memory.empty(1, states)
    for _ in range(3):
        state = memory.write(state, states, real(["xx.xx"])).state
    assert state.num_written.tolist() == [12]
    assert state.sources[state.mask].tolist() == [4, 5, 6, 7, 8, 9, 10, 11]


@APPENDING
def test_later_writes_leave_earlier_slots_as_they_were(name: str) -> None:
    """Earlier slots stay bit-identical while free slots remain."""
    memory = make(name)
    states = contents(memory, 2, SLOTS)
    mask = torch.ones(2, SLOTS, dtype=torch.bool)
    state = memory.empty(2, states)
    for position in range(SLOTS):
        before = copy(state)
        current = slice(position, position + 1)
        state = memory.write(state, states[:, current], mask[:, current]).state
        for old, new in zip(before[:3], state[:3]):
            assert torch.equal(new[:, :position], old)
    assert torch.equal(state.states, states)


@EVERY
def test_write_weights_are_shares(name: str) -> None:
    """A slot's write weights sum to at most 1; inputs never written weigh 0."""
    memory, mask = make(name), real(["xxxxx", "xx.x."])
    written = write_states(memory, contents(memory, 2, 5), mask)
    assert written.weights.ge(0).all()
    assert written.weights.sum(1).le(1 + 1e-6).all()
    assert written.slot_writes.shape == written.weights.shape
    assert written.weights[written.slot_writes == 0].eq(0).all()
    assert torch.equal((written.slot_writes != 0).any(2), mask)


@EVERY
def test_hop_gates_lie_between_zero_and_one(name: str) -> None:
    memory = make(name)
    reading = memory.read(write_states(memory, contents(memory, 2, 5)).state, contents(memory, 2, 3))
    gated = CASES[name].spec.get("update", {}).get("kind") == "gated"
    assert (reading.gates is not None) == (gated or name == "slot-rewriting")
    if reading.gates is not None:
        assert reading.gates.shape == (2, CASES[name].hops, 3)
        assert reading.gates.gt(0).all()
        assert reading.gates.lt(1).all()


@APPENDING
def test_read_weights_are_shares(name: str) -> None:
    """Where there is a softmax, read weights are positive and sum to at most 1."""
    memory = make(name)
    reading = memory.read(write_states(memory, contents(memory, 2, 5)).state, contents(memory, 2, 3))
    if CASES[name].shares:
        assert reading.weights.ge(0).all()
        assert reading.weights.sum(-1).le(1 + 1e-6).all()
