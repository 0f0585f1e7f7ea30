"""The two memories of BERT-MASS: controller, write, read and forgetting.

The contract that all memories share is tested in ``test_contract.py``.
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


def make_blended(**options: object) -> BlendedMemory:
    torch.manual_seed(0)
    return build(MEMORIES, {"kind": "blended", "slots": 10, **options}, width=D).eval()


def make_selective(**options: object) -> SelectiveMemory:
    torch.manual_seed(0)
    return build(MEMORIES, {"kind": "selective", "slots": 4, **options}, width=D).eval()


def random_states(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, 1, D, generator=torch.Generator().manual_seed(seed))


def all_true(*shape: int) -> Tensor:
    return torch.ones(*shape, dtype=torch.bool)


# The controller ------------------------------------------------------------------------------


def test_the_controller_gives_one_weight_a_token_and_starts_open() -> None:
    controller = Controller(D)
    logits, hidden = controller(random_states(2, 5)[:, :, 0], all_true(2, 5), controller.empty(2, random_states(2, 5)))
    assert logits.shape == (2, 5)
    assert hidden.shape == (2, 1, D)
    assert (torch.sigmoid(logits) > 0.8).all()


def test_the_controllers_hidden_state_is_carried_between_segments() -> None:
    """Two segments give the same logits as one; earlier segments change later logits."""
    controller, states = Controller(D), random_states(2, 6)[:, :, 0]
    initial = controller.empty(2, states)
    full_logits, final = controller(states, all_true(2, 6), initial)
    first, middle = controller(states[:, :4], all_true(2, 4), initial)
    second, last = controller(states[:, 4:], all_true(2, 2), middle)
    torch.testing.assert_close(torch.cat([first, second], 1), full_logits)
    torch.testing.assert_close(last, final)
    alone, _ = controller(states[:, 4:], all_true(2, 2), initial)
    assert (alone != second).all()


def test_entropy_is_that_of_each_decision() -> None:
    u = torch.tensor([0.5, 0.9, 0.01], dtype=torch.float64)
    expected = -(u * u.log() + (1 - u) * (1 - u).log())
    torch.testing.assert_close(bernoulli_entropy(u.logit()), expected)


# The paper's write -----------------------------------------------------------------------------


def test_slots_that_nothing_went_to_are_copied_bit_for_bit() -> None:
    memory = make_blended(max_writes=2, slots_per_write=1)
    state = memory.write(memory.empty(1, random_states(1, 3)), random_states(1, 3), all_true(1, 3)).state
    for seed in range(2, 6):
        written = memory.write(state, random_states(1, 3, seed=seed), all_true(1, 3))
        is_written = written.gates[0].sum(0) > 0
        assert 1 <= int(is_written.sum()) <= 2
        assert torch.equal(written.state.slots[0, ~is_written], state.slots[0, ~is_written])
        assert torch.equal(written.state.sources[0, ~is_written], state.sources[0, ~is_written])
        assert (written.state.slots[0, is_written] != state.slots[0, is_written]).any()
        state = written.state


def test_each_chosen_token_goes_to_its_best_slots_by_content() -> None:
    memory = make_blended(max_writes=9, slots_per_write=3)
    state = memory.write(memory.empty(2, random_states(2, 5)), random_states(2, 5), all_true(2, 5)).state
    new = random_states(2, 5, seed=2)
    written = memory.write(state, new, all_true(2, 5))
    z = new[:, :, 0]
    for row in range(2):
        for token in range(5):
            score = memory.ask(z[row, token]) @ memory.addresses.mT
            score = score + memory.value(z[row, token]) @ state.slots[row].mT
            score = score / D**0.5 + memory.empty_bonus * (~state.mask[row])
            best_slots = set(score.topk(3).indices.tolist())
            assert set((written.gates[row, token] > 0).nonzero().flatten().tolist()) == best_slots


def test_the_controller_selects_the_highest_and_none_below_the_threshold() -> None:
    memory = make_blended(max_writes=2)
    logits = torch.tensor([[1.0, 3.0, 2.0, 9.0], [-9.0, -9.0, 0.0, -9.0]])
    u, positions = memory.select_inputs(logits, torch.tensor([[True, True, True, False], [True] * 4]))
    assert positions[0].tolist() == [1, 2]
    assert positions[1, 0] == 2
    torch.testing.assert_close(u[0], torch.sigmoid(torch.tensor([3.0, 2.0])))
    assert u[1, 1] == 0


def test_only_what_may_be_written_is_written() -> None:
    """With ``tokens = "masked"`` the controller reads all tokens; only masked ones are written."""
    memory, states = make_blended(), random_states(1, 5)
    writable = torch.tensor([[False, True, False, False, True]])
    for any_memory in (memory, make_selective()):
        written = any_memory.write(any_memory.empty(1, states), states, all_true(1, 5), writable)
        assert torch.equal(written.weights[0].sum(-1) > 0, writable[0])
        assert int(written.state.told) == 5
    changed_states = random_states(1, 5, seed=9)
    changed_states[:, writable[0]] = states[:, writable[0]]
    hidden = memory.write(memory.empty(1, states), states, all_true(1, 5), writable).state.hidden
    changed_hidden = memory.write(memory.empty(1, states), changed_states, all_true(1, 5), writable).state.hidden
    assert (hidden != changed_hidden).any()


def test_a_slot_is_exactly_the_sum_of_its_sources_shares() -> None:
    memory = make_blended(sources=40, max_writes=9)
    segments = [random_states(1, 6, seed=seed) for seed in range(5)]
    state = memory.empty(1, segments[0])
    for segment in segments:
        state = memory.write(state, segment, all_true(1, 6)).state
    values = memory.value(torch.cat(segments, 1)[0, :, 0])  # of all 30 tokens
    share = torch.zeros(10, 30)
    for slot in range(10):
        for source, weight in zip(state.sources[0, slot].tolist(), state.shares[0, slot]):
            if source >= 0:
                share[slot, source] += weight
    torch.testing.assert_close(share @ values, state.slots[0])
    assert (share.sum(1) <= 1).all()
    assert int(state.told) == 30


def test_a_shut_gate_and_u_near_zero_leave_memory_alone() -> None:
    memory, states = make_blended(), random_states(1, 4)
    torch.nn.init.constant_(memory.controller.weigh.bias, -20.0)
    written = memory.write(memory.empty(1, states), states, all_true(1, 4))
    assert not written.state.mask.any()
    assert (written.state.slots == 0).all()


def test_writing_nothing_gives_a_finite_read() -> None:
    for memory in (make_blended(), make_selective()):
        none = random_states(2, 0)
        written = memory.write(memory.empty(2, none), none, all_true(2, 0))
        assert written.weights.shape[:2] == (2, 0)
        assert memory.read(written.state, random_states(2, 1)).found.isfinite().all()


def test_autocast_keeps_the_dtype_of_the_state() -> None:
    """Under bfloat16 autocast every tensor of the state keeps its dtype."""
    for memory in (make_blended(slots_per_write=1), make_selective()):
        states = random_states(2, 5)
        before = memory.empty(2, states)
        with torch.autocast("cpu", torch.bfloat16):
            written = memory.write(before, states, all_true(2, 5))
            result = memory.read(written.state, random_states(2, 3)).found
        assert [tensor.dtype for tensor in written.state] == [tensor.dtype for tensor in before]
        assert result.isfinite().all()


@pytest.mark.parametrize("is_limited", [False, True], ids=["all", "only"])
@pytest.mark.parametrize("kind", ["blended", "selective"])
def test_planned_writes_equal_writes_segment_by_segment(kind: str, is_limited: bool) -> None:
    """Ragged and empty segments; the memory is not empty: b 3, g 4, n 5."""
    memory, before = {"blended": make_blended, "selective": make_selective}[kind](), random_states(3, 5)
    start = memory.write(memory.empty(3, before), before, all_true(3, 5)).state
    states = random_states(3, 4, 5, seed=2)[..., 0, :].requires_grad_()
    mask = torch.rand(3, 4, 5, generator=torch.Generator().manual_seed(3)) < 0.7
    mask[1, 2:], mask[2, 1] = False, False  # one text has ended, one has a gap
    only = mask & (states[..., 0] > 0) if is_limited else None
    runs = []
    for plan_ahead in (True, False):
        plans = iter(memory.plan_writes(start, states, mask, only)) if plan_ahead else repeat(None)
        state, outputs = start, []
        for g in range(4):
            allowed = None if only is None else only[:, g]
            written = memory.write(state, states[:, g].unsqueeze(2), mask[:, g], allowed, next(plans))
            state = written.state
            outputs += [written.weights, written.slot_writes, written.salience_logits, *state]
        gradients = torch.autograd.grad(state.slots.square().sum() + outputs[2].sum(), states)
        runs.append([*outputs, *gradients])
    for planned, unplanned in zip(*runs):
        torch.testing.assert_close(planned, unplanned)


# Selective memory ----------------------------------------------------------------------------


def test_the_inputs_with_the_highest_logits_are_stored_in_order() -> None:
    memory, states = make_selective(), random_states(1, 9)
    written = memory.write(memory.empty(1, states), states, all_true(1, 9))
    logits = written.salience_logits[0]
    top_positions = sorted(logits.topk(4).indices.tolist())
    assert written.state.sources[0].tolist() == top_positions
    assert torch.equal(written.state.slots[0], states[0, top_positions, 0])
    assert torch.equal(written.weights[0].nonzero(), torch.tensor([[n, s] for s, n in enumerate(top_positions)]))


def test_inputs_below_the_threshold_take_no_slot_and_no_time_step() -> None:
    """Inputs below the threshold do not shift the time embedding of the others."""
    memory, states = make_selective(threshold=0.5, hops=1), random_states(1, 6)
    noise = torch.tensor([False, True, False, True, True, False])

    def score_states(states: Tensor, mask: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        is_noise = (states.unsqueeze(2) == random_states(1, 6)[:, noise, 0].unsqueeze(1)).all(-1).any(-1)
        return torch.where(is_noise, -5.0, 5.0), hidden

    memory.controller.forward = score_states  # type: ignore[method-assign, assignment]
    with_noise = memory.write(memory.empty(1, states), states, all_true(1, 6)).state
    without_noise = memory.write(memory.empty(1, states), states[:, ~noise], all_true(1, 3)).state
    assert with_noise.sources[0, :3].tolist() == [0, 2, 5]  # no gaps between filled slots
    assert with_noise.mask[0].tolist() == [True, True, True, False]
    query = random_states(1, 1, seed=3)
    torch.testing.assert_close(memory.read(with_noise, query).found, memory.read(without_noise, query).found)


def test_the_gradient_of_a_read_reaches_the_write_logits() -> None:
    """−log p(slot) raises the logit of that slot and lowers the logits of the others."""
    memory, states = make_selective(hops=1, time=False), random_states(1, 4)
    written = memory.write(memory.empty(1, states), states, all_true(1, 4))
    logits = written.state.odds.detach().requires_grad_()
    reading = memory.read(written.state._replace(odds=logits), random_states(1, 1, seed=3))
    (-reading.weights[0, 0, 0, 0, 2].log()).backward()
    assert logits.grad is not None
    assert logits.grad[0, 2] < 0
    assert (logits.grad[0, [0, 1, 3]] > 0).all()


def test_reads_add_the_log_probability_of_each_write() -> None:
    memory, states = make_selective(hops=1, time=False), random_states(1, 4)
    state = memory.write(memory.empty(1, states), states, all_true(1, 4)).state
    scores_without_u = memory.read(state._replace(odds=torch.full((1, 4), 50.0)), random_states(1, 1, seed=3)).scores
    scores = memory.read(state, random_states(1, 1, seed=3)).scores
    expected = torch.nn.functional.logsigmoid(state.odds)
    torch.testing.assert_close((scores - scores_without_u)[0, 0, 0, 0], expected[0])


def test_time_tells_equal_sentences_apart() -> None:
    memory = make_selective(hops=1)
    states = random_states(1, 1).expand(1, 3, 1, D)
    state = memory.write(memory.empty(1, states), states, all_true(1, 3)).state
    scores = memory.read(state._replace(odds=torch.zeros(1, 3)), random_states(1, 1, seed=3)).scores
    assert len(set(scores.flatten().tolist())) == 3


# Forgetting ----------------------------------------------------------------------------------


@pytest.mark.parametrize("max_sources", [1, 2, 40])
def test_forgetting_clears_every_slot_a_token_went_into(max_sources: int) -> None:
    """Also if a slot cannot list all its sources; the controller's state is reset."""
    memory = make_blended(sources=max_sources, max_writes=9)
    state, written_per_segment = memory.empty(1, random_states(1, 6)), []
    for seed in range(4):
        written = memory.write(state, random_states(1, 6, seed=seed), all_true(1, 6))
        state = written.state
        written_per_segment.append(written.gates[0] > 0)  # 6 s
    was_written = torch.cat(written_per_segment)  # 24 s
    after = state.forget(7, 9)
    cleared = was_written[7:9].any(0)
    assert cleared.any()
    assert (after.slots[0, cleared] == 0).all()
    assert not after.mask[0, cleared].any()
    assert (after.hidden == 0).all()
    remaining_sources = after.sources[0][after.sources[0] >= 0]
    assert not ((remaining_sources >= 7) & (remaining_sources < 9)).any()
    if max_sources == 40:  # no other slot is cleared
        unaffected = state.mask[0] & ~cleared
        assert torch.equal(after.slots[0, unaffected], state.slots[0, unaffected])
        assert after.mask[0, unaffected].all()


def test_forgetting_one_stored_sentence_leaves_the_others() -> None:
    memory, states = make_selective(), random_states(1, 4)
    state = memory.write(memory.empty(1, states), states, all_true(1, 4)).state
    after = state.forget(1, 2)
    assert after.mask.tolist() == [[True, False, True, True]]
    assert (after.slots[0, 1] == 0).all()
    assert torch.equal(after.slots[0, [0, 2, 3]], state.slots[0, [0, 2, 3]])


def test_sources_beyond_the_limit_are_known_by_their_range() -> None:
    tracked = empty_sources(1, 1, 2, torch.zeros(1))
    assert not tracked.may_hold(0, 10**9).any()
    shares = torch.tensor([[[0.5], [0.1], [0.3], [0.0]]])  # b c s
    tracked = add_sources(tracked, torch.tensor([[4, 5, 6, 7]]), shares, torch.ones(1, 1))
    assert tracked.sources.tolist() == [[[4, 6]]]
    assert tracked.lost.tolist() == [[[5, 5]]]
    tracked = add_sources(tracked, torch.tensor([[20]]), torch.tensor([[[0.45]]]), torch.full((1, 1), 0.1))
    assert tracked.sources.tolist() == [[[20, 4]]]
    assert tracked.lost.tolist() == [[[5, 6]]]
    assert isinstance(tracked, Sources)
    assert [bool(tracked.may_hold(position, position + 1)) for position in (4, 5, 6, 7, 20)] == [
        True,
        True,
        True,
        False,
        True,
    ]


def test_mistakes_are_named() -> None:
    with pytest.raises(ConfigError, match="threshold"):
        make_blended(threshold=1.0)
    with pytest.raises(ConfigError, match="slots"):
        make_selective(slots=0)
    with pytest.raises(ConfigError, match="heads that divide the width 8"):
        make_selective(heads=3)


def test_similarity_first_reads_the_slot_most_similar_to_the_query() -> None:
    """Whatever the mean and the norms of the states; learned projections start without either."""
    generator = torch.Generator().manual_seed(0)
    recipe = {"kind": "selective", "slots": 64, "hops": 1, "time": False, "similarity_first": True}
    memory = build(MEMORIES, recipe, width=32)
    directions = torch.randn(1, 40, 32, generator=generator)
    norms = torch.rand(1, 40, 1, generator=generator) * 20 + 0.1
    states = (directions * norms + 5.0).unsqueeze(2)
    mask = torch.ones(1, 40, dtype=torch.bool)
    state = memory.write(memory.empty(1, states[:, 0]), states, mask).state
    queries = directions[:, :8] + 0.2 * torch.randn(1, 8, 32, generator=generator)
    weights = memory.read(state, queries.unsqueeze(2)).weights
    assert weights.mean((1, 2)).argmax(-1).tolist() == [list(range(8))]
