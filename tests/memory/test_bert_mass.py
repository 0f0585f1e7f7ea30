"""The two memories of BERT-MASS: what their controller, write, read and forgetting promise.

The contract that all memories share is in ``test_memory_contract``.
"""

from itertools import repeat

import pytest
import torch
from torch import Tensor

from mnemic.memory import MEMORIES
from mnemic.memory.blended import BlendedMemory
from mnemic.memory.parts.controller import Controller, bernoulli_entropy
from mnemic.memory.parts.sources import Sources, add_sources, empty_sources
from mnemic.memory.selective import SelectiveMemory
from mnemic.recipe import ConfigError, build

D = 8


def blended(**options: object) -> BlendedMemory:
    torch.manual_seed(0)
    return build(MEMORIES, {"kind": "blended", "slots": 10, **options}, width=D).eval()


def keeping(**options: object) -> SelectiveMemory:
    torch.manual_seed(0)
    return build(MEMORIES, {"kind": "selective", "slots": 4, **options}, width=D).eval()


def texts(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, 1, D, generator=torch.Generator().manual_seed(seed))


def full(*shape: int) -> Tensor:
    return torch.ones(*shape, dtype=torch.bool)


# The controller ------------------------------------------------------------------------------


def test_the_controller_gives_one_weight_a_token_and_starts_open() -> None:
    controller = Controller(D)
    odds, hidden = controller(texts(2, 5)[:, :, 0], full(2, 5), controller.empty(2, texts(2, 5)))
    assert odds.shape == (2, 5)
    assert hidden.shape == (2, 1, D)
    assert (torch.sigmoid(odds) > 0.8).all()


def test_its_hidden_state_is_carried_from_segment_to_segment() -> None:
    """In two pieces as at once; and what was read before changes what is worth storing now."""
    controller, states = Controller(D), texts(2, 6)[:, :, 0]
    begin = controller.empty(2, states)
    whole, end = controller(states, full(2, 6), begin)
    first, middle = controller(states[:, :4], full(2, 4), begin)
    second, last = controller(states[:, 4:], full(2, 2), middle)
    torch.testing.assert_close(torch.cat([first, second], 1), whole)
    torch.testing.assert_close(last, end)
    alone, _ = controller(states[:, 4:], full(2, 2), begin)
    assert (alone != second).all()


def test_entropy_is_that_of_each_decision() -> None:
    u = torch.tensor([0.5, 0.9, 0.01], dtype=torch.float64)
    wanted = -(u * u.log() + (1 - u) * (1 - u).log())
    torch.testing.assert_close(bernoulli_entropy(u.logit()), wanted)


# The paper's own write -----------------------------------------------------------------------


def test_slots_that_nothing_went_to_are_copied_bit_for_bit() -> None:
    memory = blended(max_writes=2, slots_per_write=1)
    state = memory.write(memory.empty(1, texts(1, 3)), texts(1, 3), full(1, 3)).state
    for seed in range(2, 6):
        written = memory.write(state, texts(1, 3, seed=seed), full(1, 3))
        touched = written.gates[0].sum(0) > 0
        assert 1 <= int(touched.sum()) <= 2
        assert torch.equal(written.state.slots[0, ~touched], state.slots[0, ~touched])
        assert torch.equal(written.state.sources[0, ~touched], state.sources[0, ~touched])
        assert (written.state.slots[0, touched] != state.slots[0, touched]).any()
        state = written.state


def test_each_chosen_token_goes_to_its_best_slots_by_content() -> None:
    memory = blended(max_writes=9, slots_per_write=3)
    state = memory.write(memory.empty(2, texts(2, 5)), texts(2, 5), full(2, 5)).state
    new = texts(2, 5, seed=2)
    written = memory.write(state, new, full(2, 5))
    z = new[:, :, 0]
    for row in range(2):
        for token in range(5):
            score = memory.ask(z[row, token]) @ memory.addresses.mT
            score = score + memory.value(z[row, token]) @ state.slots[row].mT
            score = score / D**0.5 + memory.empty_bonus * (~state.mask[row])
            best = set(score.topk(3).indices.tolist())
            assert set((written.gates[row, token] > 0).nonzero().flatten().tolist()) == best


def test_the_controller_chooses_the_highest_and_none_below_the_least() -> None:
    memory = blended(max_writes=2)
    odds = torch.tensor([[1.0, 3.0, 2.0, 9.0], [-9.0, -9.0, 0.0, -9.0]])
    u, places = memory.select_inputs(odds, torch.tensor([[True, True, True, False], [True] * 4]))
    assert places[0].tolist() == [1, 2]
    assert places[1, 0] == 2
    torch.testing.assert_close(u[0], torch.sigmoid(torch.tensor([3.0, 2.0])))
    assert u[1, 1] == 0


def test_only_what_may_be_written_is_written() -> None:
    """``tokens = "masked"``: the controller reads all, the slots get the masked ones."""
    memory, states = blended(), texts(1, 5)
    only = torch.tensor([[False, True, False, False, True]])
    for kind in (memory, keeping()):
        written = kind.write(kind.empty(1, states), states, full(1, 5), only)
        assert torch.equal(written.weights[0].sum(-1) > 0, only[0])
        assert int(written.state.told) == 5
    other = texts(1, 5, seed=9)
    other[:, only[0]] = states[:, only[0]]
    hidden = memory.write(memory.empty(1, states), states, full(1, 5), only).state.hidden
    changed = memory.write(memory.empty(1, states), other, full(1, 5), only).state.hidden
    assert (hidden != changed).any()


def test_a_slot_is_exactly_the_sum_of_its_sources_shares() -> None:
    memory = blended(sources=40, max_writes=9)
    pieces = [texts(1, 6, seed=seed) for seed in range(5)]
    state = memory.empty(1, pieces[0])
    for piece in pieces:
        state = memory.write(state, piece, full(1, 6)).state
    values = memory.value(torch.cat(pieces, 1)[0, :, 0])  # of all 30 tokens
    share = torch.zeros(10, 30)
    for slot in range(10):
        for source, part in zip(state.sources[0, slot].tolist(), state.shares[0, slot]):
            if source >= 0:
                share[slot, source] += part
    torch.testing.assert_close(share @ values, state.slots[0])
    assert (share.sum(1) <= 1).all()
    assert int(state.told) == 30


def test_a_shut_gate_and_u_near_zero_leave_memory_alone() -> None:
    memory, states = blended(), texts(1, 4)
    torch.nn.init.constant_(memory.controller.weigh.bias, -20.0)
    written = memory.write(memory.empty(1, states), states, full(1, 4))
    assert not written.state.mask.any()
    assert (written.state.slots == 0).all()


def test_nothing_to_write_is_survived() -> None:
    for memory in (blended(), keeping()):
        none = texts(2, 0)
        written = memory.write(memory.empty(2, none), none, full(2, 0))
        assert written.weights.shape[:2] == (2, 0)
        assert memory.read(written.state, texts(2, 1)).found.isfinite().all()


def test_in_half_precision_products_the_state_stays_as_it_was() -> None:
    """Under autocast, states keep their kind, and untouched slots their bits."""
    for memory in (blended(slots_per_write=1), keeping()):
        states = texts(2, 5)
        before = memory.empty(2, states)
        with torch.autocast("cpu", torch.bfloat16):
            written = memory.write(before, states, full(2, 5))
            found = memory.read(written.state, texts(2, 3)).found
        assert [part.dtype for part in written.state] == [part.dtype for part in before]
        assert found.isfinite().all()


@pytest.mark.parametrize("limited", [False, True], ids=["all", "only"])
@pytest.mark.parametrize("kind", ["blended", "selective"])
def test_what_is_chosen_ahead_is_what_each_write_chooses(kind: str, limited: bool) -> None:
    """Of ragged segments, some of them empty, from a memory that has read before: b 3, g 4, n 5."""
    memory, before = {"blended": blended, "selective": keeping}[kind](), texts(3, 5)
    start = memory.write(memory.empty(3, before), before, full(3, 5)).state
    states = texts(3, 4, 5, seed=2)[..., 0, :].requires_grad_()
    mask = torch.rand(3, 4, 5, generator=torch.Generator().manual_seed(3)) < 0.7
    mask[1, 2:], mask[2, 1] = False, False  # one text has ended, one has a gap
    only = mask & (states[..., 0] > 0) if limited else None
    found = []
    for ahead in (True, False):
        choices = iter(memory.plan_writes(start, states, mask, only)) if ahead else repeat(None)
        state, told = start, []
        for g in range(4):
            may = None if only is None else only[:, g]
            written = memory.write(state, states[:, g].unsqueeze(2), mask[:, g], may, next(choices))
            state = written.state
            told += [written.weights, written.slot_writes, written.salience_logits, *state]
        slope = torch.autograd.grad(state.slots.square().sum() + told[2].sum(), states)
        found.append([*told, *slope])
    for one, other in zip(*found):
        torch.testing.assert_close(one, other)


# Keeping what matters ------------------------------------------------------------------------


def test_the_highest_are_kept_as_they_are_in_their_order() -> None:
    memory, states = keeping(), texts(1, 9)
    whole = memory.write(memory.empty(1, states), states, full(1, 9))
    odds = whole.salience_logits[0]
    kept = sorted(odds.topk(4).indices.tolist())
    assert whole.state.sources[0].tolist() == kept
    assert torch.equal(whole.state.slots[0], states[0, kept, 0])
    assert torch.equal(whole.weights[0].nonzero(), torch.tensor([[n, s] for s, n in enumerate(kept)]))


def test_what_is_of_no_use_takes_no_slot_and_no_time() -> None:
    """Below the least nothing is kept; the others stand where they would stand without it."""
    memory, states = keeping(threshold=0.5, hops=1), texts(1, 6)
    noise = torch.tensor([False, True, False, True, True, False])

    def judged(states: Tensor, mask: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        useful = (states.unsqueeze(2) == texts(1, 6)[:, noise, 0].unsqueeze(1)).all(-1).any(-1)
        return torch.where(useful, -5.0, 5.0), hidden

    memory.controller.forward = judged  # type: ignore[method-assign, assignment]
    among = memory.write(memory.empty(1, states), states, full(1, 6)).state
    alone = memory.write(memory.empty(1, states), states[:, ~noise], full(1, 3)).state
    assert among.sources[0, :3].tolist() == [0, 2, 5]  # no gaps: what is real comes first
    assert among.mask[0].tolist() == [True, True, True, False]
    query = texts(1, 1, seed=3)
    torch.testing.assert_close(memory.read(among, query).found, memory.read(alone, query).found)


def test_the_gradient_of_a_read_reaches_u() -> None:
    """A read that wants a slot makes it worth more, and its rivals less: ∂ of −log p(slot)."""
    memory, states = keeping(hops=1, time=False), texts(1, 4)
    written = memory.write(memory.empty(1, states), states, full(1, 4))
    odds = written.state.odds.detach().requires_grad_()
    reading = memory.read(written.state._replace(odds=odds), texts(1, 1, seed=3))
    (-reading.weights[0, 0, 0, 0, 2].log()).backward()
    assert odds.grad is not None
    assert odds.grad[0, 2] < 0
    assert (odds.grad[0, [0, 1, 3]] > 0).all()


def test_reads_add_log_u() -> None:
    memory, states = keeping(hops=1, time=False), texts(1, 4)
    state = memory.write(memory.empty(1, states), states, full(1, 4)).state
    even = memory.read(state._replace(odds=torch.full((1, 4), 50.0)), texts(1, 1, seed=3)).scores
    some = memory.read(state, texts(1, 1, seed=3)).scores
    wanted = torch.nn.functional.logsigmoid(state.odds)
    torch.testing.assert_close((some - even)[0, 0, 0, 0], wanted[0])


def test_time_tells_equal_sentences_apart() -> None:
    memory = keeping(hops=1)
    states = texts(1, 1).expand(1, 3, 1, D)
    state = memory.write(memory.empty(1, states), states, full(1, 3)).state
    scores = memory.read(state._replace(odds=torch.zeros(1, 3)), texts(1, 1, seed=3)).scores
    assert len(set(scores.flatten().tolist())) == 3


# Forgetting ----------------------------------------------------------------------------------


@pytest.mark.parametrize("room", [1, 2, 40])
def test_forgetting_clears_every_slot_a_token_went_into(room: int) -> None:
    """Also where a slot has no room to list all its sources; and the controller begins anew."""
    memory = blended(sources=room, max_writes=9)
    state, entered = memory.empty(1, texts(1, 6)), []
    for seed in range(4):
        written = memory.write(state, texts(1, 6, seed=seed), full(1, 6))
        state = written.state
        entered.append(written.gates[0] > 0)  # 6 s
    inside = torch.cat(entered)  # 24 s
    after = state.forget(7, 9)
    gone = inside[7:9].any(0)
    assert gone.any()
    assert (after.slots[0, gone] == 0).all()
    assert not after.mask[0, gone].any()
    assert (after.hidden == 0).all()
    listed = after.sources[0][after.sources[0] >= 0]
    assert not ((listed >= 7) & (listed < 9)).any()
    if room == 40:  # nothing is cleared that need not be
        kept = state.mask[0] & ~gone
        assert torch.equal(after.slots[0, kept], state.slots[0, kept])
        assert after.mask[0, kept].all()


def test_a_kept_sentence_is_forgotten_alone() -> None:
    memory, states = keeping(), texts(1, 4)
    state = memory.write(memory.empty(1, states), states, full(1, 4)).state
    after = state.forget(1, 2)
    assert after.mask.tolist() == [[True, False, True, True]]
    assert (after.slots[0, 1] == 0).all()
    assert torch.equal(after.slots[0, [0, 2, 3]], state.slots[0, [0, 2, 3]])


def test_what_there_is_no_room_to_list_is_known_by_its_range() -> None:
    kept = empty_sources(1, 1, 2, torch.zeros(1))
    assert not kept.may_hold(0, 10**9).any()
    shares = torch.tensor([[[0.5], [0.1], [0.3], [0.0]]])  # b c s
    kept = add_sources(kept, torch.tensor([[4, 5, 6, 7]]), shares, torch.ones(1, 1))
    assert kept.sources.tolist() == [[[4, 6]]]
    assert kept.lost.tolist() == [[[5, 5]]]
    kept = add_sources(kept, torch.tensor([[20]]), torch.tensor([[[0.45]]]), torch.full((1, 1), 0.1))
    assert kept.sources.tolist() == [[[20, 4]]]
    assert kept.lost.tolist() == [[[5, 6]]]
    assert isinstance(kept, Sources)
    assert [bool(kept.may_hold(n, n + 1)) for n in (4, 5, 6, 7, 20)] == [True, True, True, False, True]


def test_mistakes_are_named() -> None:
    with pytest.raises(ConfigError, match="threshold"):
        blended(threshold=1.0)
    with pytest.raises(ConfigError, match="slots"):
        keeping(slots=0)
    with pytest.raises(ConfigError, match="heads that divide the width 8"):
        keeping(heads=3)


def test_a_read_that_begins_with_likeness_finds_the_slot_most_like_the_query() -> None:
    """Whatever the states' common part and lengths are; learnt projections begin with neither."""
    dice = torch.Generator().manual_seed(0)
    recipe = {"kind": "selective", "slots": 64, "hops": 1, "time": False, "similarity_first": True}
    memory = build(MEMORIES, recipe, width=32)
    own = torch.randn(1, 40, 32, generator=dice)
    sizes = torch.rand(1, 40, 1, generator=dice) * 20 + 0.1
    states = (own * sizes + 5.0).unsqueeze(2)
    mask = torch.ones(1, 40, dtype=torch.bool)
    state = memory.write(memory.empty(1, states[:, 0]), states, mask).state
    asked = own[:, :8] + 0.2 * torch.randn(1, 8, 32, generator=dice)
    weights = memory.read(state, asked.unsqueeze(2)).weights
    assert weights.mean((1, 2)).argmax(-1).tolist() == [list(range(8))]
