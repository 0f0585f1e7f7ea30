"""What every memory promises, whatever it is: one case a kind at least, and a new kind needs one.

Shapes: b batch, n inputs, m queries, s slots, k hops, h heads, t tables, d width.
"""

import io
from typing import Any, NamedTuple

import pytest
import torch
from safetensors.torch import load as load_bytes
from safetensors.torch import save as save_bytes
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from mnemic.memory import MEMORIES, Reading, Written
from mnemic.memory.slots import Slots
from mnemic.memory.update import UPDATES
from mnemic.recipe import build

D, SLOTS = 6, 8


class Case(NamedTuple):
    """A memory to try, and what it promises besides the contract."""

    spec: dict[str, Any]
    hops: int
    heads: int = 1
    appends: bool = False  # one input a slot, in order; the oldest leave
    shares: bool = True  # what a hop reads of all slots is one in all at most
    hard: bool = False  # a hop reads one slot and no other: the scores alone can be taught
    piecewise: bool = True  # where a text is cut between writes changes nothing


PLAIN = {"kind": "gru", "fused": False, "inner": 4}  # a controller that runs under vmap

CASES = {
    "memn2n": Case({"kind": "memn2n", "hops": 3}, 3, appends=True),
    "memn2n, layer-wise": Case(
        {"kind": "memn2n", "hops": 2, "tying": "layerwise"}, 2, appends=True
    ),
    "memn2n, non-linear": Case(
        {"kind": "memn2n", "tying": "layerwise", "update": {"kind": "linear", "relu": True}},
        3,
        appends=True,
    ),
    "memn2n, linear start": Case(
        {"kind": "memn2n", "softmax": False}, 3, appends=True, shares=False
    ),
    "memn2n, plain": Case(
        {"kind": "memn2n", "hops": 1, "time": False, "noise": 0.0, "spare": False}, 1, appends=True
    ),
    "memn2n, gated": Case(
        {"kind": "memn2n", "hops": 2, "update": {"kind": "gated"}}, 2, appends=True
    ),
    "memn2n, one gate": Case(
        {"kind": "memn2n", "update": {"kind": "gated", "shared": True}}, 3, appends=True
    ),
    "bert-mass": Case({"kind": "bert-mass", "controller": PLAIN}, 2, piecewise=False),
    "bert-mass, all slots": Case(
        {"kind": "bert-mass", "spread": 8, "hops": 1, "heads": 2, "controller": PLAIN},
        1,
        heads=2,
        piecewise=False,
    ),
    "keeps": Case({"kind": "keeps", "controller": PLAIN}, 3),
    "keeps, no times": Case(
        {"kind": "keeps", "hops": 1, "time": False, "heads": 2, "controller": PLAIN}, 1, heads=2
    ),
    "entnet": Case({"kind": "entnet"}, 1),
    "entnet, no biases": Case({"kind": "entnet", "bias": False}, 1),
    "dmn": Case({"kind": "dmn"}, 3, appends=True, shares=False),
    "dmn, one pass": Case({"kind": "dmn", "passes": 1}, 1, appends=True, shares=False),
    "dmn, layers": Case({"kind": "dmn-layers"}, 3, appends=True, shares=False),
    "dmn, sums": Case({"kind": "dmn-sum"}, 3, appends=True),
    "dmn+": Case({"kind": "dmn-plus"}, 3, appends=True),
    "dmn+, two passes": Case({"kind": "dmn-plus", "passes": 2}, 2, appends=True),
    "key-value": Case(
        {"kind": "key-value", "hops": 2, "update": {"kind": "rotate"}}, 2, appends=True
    ),
    "key-value, one hop": Case({"kind": "key-value", "hops": 1}, 1, appends=True),
    "memnn": Case({"kind": "memnn"}, 2, heads=2, appends=True, hard=True),
    "memnn, no times": Case({"kind": "memnn", "time": False}, 2, appends=True, hard=True),
    "memnn, AM and NL": Case(
        {"kind": "memnn", "hops": 4, "stop": True, "match": {"kind": "tanh"}},
        4,
        heads=2,
        appends=True,
        hard=True,
    ),
    "memnn, knows the hop": Case(
        {"kind": "memnn", "hops": 3, "order": 0.5}, 3, heads=2, appends=True, hard=True
    ),
    "memnn, forgets the useless": Case(
        {"kind": "memnn", "forget": {"kind": "useless"}}, 2, heads=2, hard=True
    ),
    "wmn": Case({"kind": "wmn"}, 4, heads=8, appends=True),
    "wmn, plain": Case(
        {"kind": "wmn", "hops": 1, "heads": 2, "time": False, "spare": False, "tanh": False},
        1,
        heads=2,
        appends=True,
    ),
}
EVERY = pytest.mark.parametrize("name", CASES)
APPENDING = pytest.mark.parametrize("name", [n for n, case in CASES.items() if case.appends])


def make(name: str, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    memory = build(MEMORIES, CASES[name].spec, width=D, slots=SLOTS, longest=7)
    return memory.eval()


def contents(memory: Any, *shape: int, seed: int = 1, size: float = 1.0) -> Tensor:
    """What an encoder would hand over: … t d."""
    dice = torch.Generator().manual_seed(seed)
    return size * torch.randn(*shape, memory.tables, D, generator=dice)


def real(rows: list[str]) -> Tensor:
    """``["xx.", "x.."]``: x is an input, a dot is padding."""
    return torch.tensor([[sign == "x" for sign in row] for row in rows])


def told(memory: Any, states: Tensor, mask: Tensor | None = None) -> Written:
    """Write into an empty memory."""
    if mask is None:
        mask = torch.ones(states.shape[:2], dtype=torch.bool)
    return memory.write(memory.empty(states.shape[0], states), states, mask)


def evidence(reading: Reading, written: Written) -> Tensor:
    """How much of each *input* was read (b k h m n), wherever it was put."""
    return reading.weights @ written.weights[:, None, None].mT


def copy(state: Any) -> list[Tensor]:
    return [part.clone() for part in state]


def same(found: Any, expected: Any) -> None:
    torch.testing.assert_close(found, expected, atol=2e-6, rtol=2e-5)


def test_every_kind_has_a_case() -> None:
    assert {case.spec["kind"] for case in CASES.values()} == set(MEMORIES)
    updates = [case.spec.get("update", {"kind": "add"}) for case in CASES.values()]
    assert {update["kind"] for update in updates} == set(UPDATES)


@EVERY
def test_shapes(name: str) -> None:
    memory, case = make(name), CASES[name]
    states, query = contents(memory, 2, 5), contents(memory, 2, 3, seed=2)
    written = told(memory, states, real(["xxxxx", "xx..."]))
    reading = memory.read(written.state, query)
    slots = written.weights.shape[2]
    assert written.weights.shape == (2, 5, slots)
    assert reading.found.shape == (2, 3, D)
    assert reading.weights.shape == (2, case.hops, case.heads, 3, slots)
    assert reading.scores.shape == reading.weights.shape
    assert isinstance(written.state, tuple)
    assert type(written.state)._fields  # a NamedTuple
    assert all(isinstance(part, Tensor) for part in written.state)
    assert isinstance(memory.tables, int)
    assert isinstance(memory.rolls, int)


@EVERY
def test_nothing_is_changed_in_place(name: str) -> None:
    memory = make(name).train()
    states, query, mask = contents(memory, 2, 5), contents(memory, 2, 3), real(["xxxxx", "xx..."])
    before = memory.empty(2, states)
    first = memory.write(before, states, mask)
    kept = [copy(part) for part in (before, first.state, [states, query, mask], memory.buffers())]
    rolls = torch.rand(2, memory.rolls)
    memory.read(memory.write(first.state, states * 2, mask).state, query, rolls=rolls)
    memory.read(first.state, query, rolls=rolls)
    now = [before, first.state, [states, query, mask], list(memory.buffers())]
    for parts, copies in zip(now, kept):
        for part, clone in zip(parts, copies, strict=True):
            assert torch.equal(part, clone)


@EVERY
def test_an_empty_memory_is_survived(name: str) -> None:
    """Nothing told, or only padding: the answer is finite, and the same."""
    memory = make(name)
    states = contents(memory, 2, 4, size=1e3)
    query = contents(memory, 2, 3, seed=2).requires_grad_()
    nothing = memory.read(memory.empty(2, states), query)
    written = told(memory, states, real(["....", "...."]))
    padding = memory.read(written.state, query)
    assert nothing.found.isfinite().all()
    assert evidence(padding, written).eq(0).all()
    same(padding.found, nothing.found)
    padding.found.sum().backward()
    assert query.grad is not None
    assert query.grad.isfinite().all()


@EVERY
def test_padding_is_never_read_wherever_it_stands(name: str) -> None:
    memory = make(name)
    states, query = contents(memory, 1, 4), contents(memory, 1, 3, seed=2)
    alone = told(memory, states)
    plain = memory.read(alone.state, query)
    for row in ("xxxx...", "...xxxx", "x.xx..x", "..x.xxx"):
        mask = real([row])
        among = contents(memory, 1, len(row), seed=3, size=1e3)
        among[mask] = states[0]
        written = told(memory, among, mask)
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
    together = memory.read(told(memory, states, mask).state, query)
    for row in range(3):
        alone = told(memory, states[row : row + 1], mask[row : row + 1])
        reading = memory.read(alone.state, query[row : row + 1])
        same(reading.found[0], together.found[row])
        same(reading.weights[0], together.weights[row])


@EVERY
def test_queries_do_not_see_each_other(name: str) -> None:
    memory = make(name)
    written, query = told(memory, contents(memory, 2, 5)), contents(memory, 2, 3, seed=2)
    whole = memory.read(written.state, query)
    for number in range(3):
        one = memory.read(written.state, query[:, number : number + 1])
        same(one.found[:, 0], whole.found[:, number])
        same(one.weights[:, :, :, 0], whole.weights[:, :, :, number])


@pytest.mark.parametrize("name", [n for n, case in CASES.items() if case.piecewise])
@pytest.mark.parametrize("cut", [0, 1, 4, 7, 12])
def test_written_in_two_pieces_is_written_at_once(name: str, cut: int) -> None:
    """Also when more is told than there is room for, and with padding at the cut."""
    memory = make(name)
    states, query = contents(memory, 3, 12), contents(memory, 3, 2, seed=2)
    mask = real(["xxxxxxxxxxxx", "xxx..x.xx...", "............"])
    once = told(memory, states, mask)
    first = told(memory, states[:, :cut], mask[:, :cut])
    second = memory.write(first.state, states[:, cut:], mask[:, cut:])
    whole, pieces = memory.read(once.state, query), memory.read(second.state, query)
    same(pieces.found, whole.found)
    same(evidence(pieces, second), evidence(whole, once)[..., cut:])


@EVERY
def test_one_memory_can_be_shared_by_a_whole_batch(name: str) -> None:
    """A state of batch 1 is read by every row, as a knowledge base is."""
    memory = make(name)
    states, query = contents(memory, 1, 5), contents(memory, 4, 3, seed=2)
    shared = memory.read(told(memory, states).state, query)
    own = memory.read(told(memory, states.expand(4, -1, -1, -1)).state, query)
    same(shared.found, own.found)
    same(shared.weights, own.weights)


@EVERY
def test_reading_is_deterministic_unless_rolls_are_given_in_training(name: str) -> None:
    memory = make(name)
    written, query = told(memory, contents(memory, 30, 5)), contents(memory, 30, 3, seed=2)
    rolls = torch.rand(30, memory.rolls)
    plain = memory.read(written.state, query).found
    assert torch.equal(memory.read(written.state, query, rolls=rolls).found, plain)
    assert torch.equal(memory.train().read(written.state, query).found, plain)
    rolled = memory.read(written.state, query, rolls=rolls).found
    assert torch.equal(memory.read(written.state, query, rolls=rolls).found, rolled)
    assert torch.equal(rolled, plain) == (not memory.rolls)


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
        loss = loss + (0 if reading.worth is None else (reading.worth * (reading.worth > -9)).sum())
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
    rolls = torch.rand(3, 2, memory.rolls)

    class Whole(nn.Module):
        def __init__(self, memory: Any) -> None:
            super().__init__()
            self.memory = memory

        def forward(self, states: Tensor, mask: Tensor, query: Tensor, rolls: Tensor) -> Any:
            half = self.memory.write(self.memory.empty(2, states), states[:, :4], mask[:, :4])
            written = self.memory.write(half.state, states[:, 4:], mask[:, 4:])
            reading = self.memory.read(written.state, query, rolls=rolls)
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


# One input a slot ------------------------------------------------------------------------------


@APPENDING
def test_the_newest_are_kept_in_order(name: str) -> None:
    memory = make(name)
    states = contents(memory, 2, 12)
    mask = real(["xxxxxxxxxxxx", "xxx.xx.xxxx."])  # 12 and 9 of them, for 8 slots
    written = told(memory, states, mask)
    state = written.state
    assert isinstance(state, Slots)
    assert state.mask.shape == (2, SLOTS)
    assert state.told.tolist() == [12, 9]
    for row in range(2):
        inputs = mask[row].nonzero().squeeze(1)
        kept = inputs[-SLOTS:]
        assert state.sources[row][state.mask[row]].tolist() == list(range(len(inputs)))[-SLOTS:]
        assert torch.equal(state.states[row][state.mask[row]], states[row, kept])
        gone = torch.ones(12, dtype=torch.bool)
        gone[kept] = False
        assert written.weights[row, gone].eq(0).all()
        # Each input that was kept is in one slot, whole.
        back = written.weights[row, kept] @ state.states[row].flatten(1)
        assert torch.equal(back, states[row, kept].flatten(1))
        assert torch.equal(written.weights[row, kept].sum(-1), torch.ones(len(kept)))


@APPENDING
@pytest.mark.parametrize("count", [SLOTS - 1, SLOTS, SLOTS + 1])
def test_there_are_never_more_slots_than_room(name: str, count: int) -> None:
    memory = make(name)
    states = contents(memory, 1, count)
    assert told(memory, states).state.mask.shape[1] == min(count, SLOTS)


@APPENDING
def test_each_input_goes_to_one_slot_and_padding_to_none(name: str) -> None:
    memory = make(name)
    mask = real(["xx.x..", ".x.xxx"])
    written = told(memory, contents(memory, 2, 6), mask)
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
    assert state.told.tolist() == [12]
    assert state.sources[state.mask].tolist() == [4, 5, 6, 7, 8, 9, 10, 11]


@APPENDING
def test_later_writes_leave_earlier_slots_as_they_were(name: str) -> None:
    """Bit for bit, while there is room."""
    memory = make(name)
    states = contents(memory, 2, SLOTS)
    mask = torch.ones(2, SLOTS, dtype=torch.bool)
    state = memory.empty(2, states)
    for place in range(SLOTS):
        before = copy(state)
        here = slice(place, place + 1)
        state = memory.write(state, states[:, here], mask[:, here]).state
        for old, new in zip(before[:3], state[:3]):
            assert torch.equal(new[:, :place], old)
    assert torch.equal(state.states, states)


@EVERY
def test_what_is_written_are_shares(name: str) -> None:
    """A slot holds one input in all at most, and none of what never entered it."""
    memory, mask = make(name), real(["xxxxx", "xx.x."])
    written = told(memory, contents(memory, 2, 5), mask)
    assert written.weights.ge(0).all()
    assert written.weights.sum(1).le(1 + 1e-6).all()
    assert written.entered.shape == written.weights.shape
    assert written.weights[written.entered == 0].eq(0).all()
    assert torch.equal((written.entered != 0).any(2), mask)


@EVERY
def test_gates_of_hops_are_shares_of_what_was_found(name: str) -> None:
    memory = make(name)
    reading = memory.read(told(memory, contents(memory, 2, 5)).state, contents(memory, 2, 3))
    gated = CASES[name].spec.get("update", {}).get("kind") == "gated"
    assert (reading.gates is not None) == gated
    if reading.gates is not None:
        assert reading.gates.shape == (2, CASES[name].hops, 3)
        assert reading.gates.gt(0).all()
        assert reading.gates.lt(1).all()


@APPENDING
def test_what_is_read_are_shares(name: str) -> None:
    """Positive, and one in all at most, wherever there is a softmax."""
    memory = make(name)
    reading = memory.read(told(memory, contents(memory, 2, 5)).state, contents(memory, 2, 3))
    if CASES[name].shares:
        assert reading.weights.ge(0).all()
        assert reading.weights.sum(-1).le(1 + 1e-6).all()
