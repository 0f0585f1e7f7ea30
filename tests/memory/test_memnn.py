"""MemNN's reads against the papers' equations in plain loops, and hops with a teacher.

Shapes: b batch, n sentences, m queries, s slots, k hops, f facts, t tables, d width.
"""

import pytest
import torch
from memnn_slow import D, Slow, make, slots_read, write_facts

from mnemic.memory.append import find_slots
from mnemic.memory.memnn import MemNN
from mnemic.memory.parts.contest import PairwiseScores, find_winner, margins_over
from mnemic.models import IGNORE

KINDS = [
    pytest.param(time, stop, match, id=f"{time=} {stop=} {match}")
    for time in (False, True)
    for stop in (False, True)
    for match in ("linear", "tanh")
]


# Reference loop --------------------------------------------------------------------------------


@pytest.mark.parametrize(("time", "stop", "match"), KINDS)
def test_reads_are_the_papers_loop(time: bool, stop: bool, match: str) -> None:
    memory = make(time, stop, match)
    numbers_of_hops = set()
    for seed in range(12):
        torch.manual_seed(seed)
        states, query = torch.randn(2, 7, 5, D), torch.randn(2, 3, 5, D)
        reading = memory.read(write_facts(memory, states).state, query)
        for row in range(2):
            for query_index in range(3):
                reference = Slow(memory, states[row], query[row, query_index])
                expected_slots = reference.read()
                assert slots_read(reading)[row][query_index] == expected_slots
                torch.testing.assert_close(reading.found[row, query_index], reference.joined(expected_slots, 3, 4, 1))
                numbers_of_hops.add(len(expected_slots))
    assert numbers_of_hops == ({0, 1, 2, 3} if stop else {3})


@pytest.mark.parametrize(("time", "stop", "match"), KINDS)
def test_scores_are_relative_to_what_was_read(time: bool, stop: bool, match: str) -> None:
    memory = make(time, stop, match, hops=2)
    torch.manual_seed(1)
    states, query = torch.randn(1, 5, 5, D), torch.randn(1, 1, 5, D)
    reading = memory.read(write_facts(memory, states).state, query, teacher_slots=torch.tensor([[[3, 1]]]))
    reference = Slow(memory, states[0], query[0, 0])
    for hop, (previous, right_slot) in enumerate([([], 3), ([3], 1)]):
        heads = reading.scores[0, hop, :, 0]  # h s
        assert heads.shape == (1 + time, 5)
        for slot in range(5):
            expected = [-reference.score(previous, right_slot, slot), reference.score(previous, slot, right_slot)]
            margins = torch.tensor(expected[: 1 + time]) * (slot != right_slot)
            torch.testing.assert_close(heads[:, slot], margins)
        if stop:
            assert reading.nothing is not None
            stop_margin = -reference.score(previous, right_slot, 5)
            torch.testing.assert_close(reading.nothing[0, hop, 0, 0], torch.tensor(stop_margin))


def test_find_winner_equals_a_loop_over_all_candidates() -> None:
    """With random scores and with masked slots."""
    generator = torch.Generator().manual_seed(0)
    for _ in range(200):
        count = int(torch.randint(1, 12, (), generator=generator))
        first, second = torch.randn(2, 1, 1, count, generator=generator)
        pairs = PairwiseScores(first, second, torch.randn(1, 1, 1, generator=generator))
        mask = torch.rand(1, 1, count, generator=generator) < 0.7
        winner = None
        for slot in range(count):
            if not mask[0, 0, slot]:
                continue
            if winner is None:
                winner = slot
                continue
            older_bonus = float(pairs.older_bonus) * (slot < count - 1)
            if float(first[0, 0, winner] - second[0, 0, slot]) + older_bonus <= 0:
                winner = slot
        assert find_winner(pairs, mask).item() == (count - 1 if winner is None else winner)


def test_the_margin_of_a_slot_over_itself_is_zero() -> None:
    torch.manual_seed(0)
    pairs = PairwiseScores(torch.randn(2, 3, 6), torch.randn(2, 3, 6), torch.randn(2, 3, 1))
    slots = torch.randint(6, (2, 3))
    margins = margins_over(pairs, slots).gather(-1, slots[:, None, :, None].expand(-1, 2, -1, -1))
    assert margins.eq(0).all()


def test_newer_facts_win_if_time_says_so() -> None:
    """All sentences are equal: only their times can decide."""
    memory = make(True, False, "linear", hops=1)
    states = torch.ones(1, 6, 5, D)
    assert memory.times is not None
    for prefer_newer in (True, False):
        memory.times.vectors.data = torch.zeros(3, D)
        memory.times.vectors.data[2] = -1.0 if prefer_newer else 1.0
        reading = memory.read(write_facts(memory, states).state, torch.ones(1, 1, 5, D))
        assert slots_read(reading) == [[[5 if prefer_newer else 0]]]


# Teacher slots ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("time", "stop", "match"), KINDS)
def test_hops_read_the_teacher_slots_then_stop_or_repeat(time: bool, stop: bool, match: str) -> None:
    memory = make(time, stop, match)
    torch.manual_seed(5)
    states, query = torch.randn(40, 7, 5, D), torch.randn(40, 1, 5, D)
    state = write_facts(memory, states).state
    teacher_slots = torch.tensor([[[2, 4, IGNORE]]]).expand(40, -1, -1)
    reading = memory.read(state, query, teacher_slots=teacher_slots)
    for row, (hops,) in enumerate(slots_read(reading)):
        assert hops[:2] == [2, 4]
        assert hops[2:] == ([] if stop else [4])
        expected = Slow(memory, states[row], query[row, 0]).joined(hops, 3, 4, 1)
        torch.testing.assert_close(reading.found[row, 0], expected)
    free_slots = slots_read(memory.read(state, query))
    assert sum(hops[:2] != [2, 4] for (hops,) in free_slots) > 30


def test_a_first_hop_without_a_teacher_slot_chooses_itself() -> None:
    memory = make(True, False, "linear", hops=1)
    torch.manual_seed(0)
    states, query = torch.randn(20, 7, 5, D), torch.randn(20, 1, 5, D)
    state = write_facts(memory, states).state
    teacher_slots = torch.full((20, 1, 1), IGNORE)
    assert slots_read(memory.read(state, query, teacher_slots=teacher_slots)) == slots_read(memory.read(state, query))


def test_reading_with_teacher_slots_ends_after_the_longest_chain() -> None:
    memory = make(True, True, "linear", hops=10)
    state, query = write_facts(memory, torch.randn(2, 7, 5, D)).state, torch.randn(2, 1, 5, D)
    teacher_slots = torch.tensor([[[2, 4]], [[1, IGNORE]]])
    assert memory.read(state, query, teacher_slots=teacher_slots).weights.shape[1] == 3
    assert memory.read(state, query).weights.shape[1] == 10


def test_no_hop_reads_after_a_stop() -> None:
    memory = make(True, True, "tanh", hops=6)
    torch.manual_seed(0)
    states, query = torch.randn(60, 5, 5, D), torch.randn(60, 1, 5, D)
    total_weights = memory.read(write_facts(memory, states).state, query).weights[:, :, 0, 0].sum(-1)  # b k
    assert torch.equal(total_weights.cummin(1).values, total_weights)
    assert total_weights.sum(1).unique().numel() > 2


def test_sentences_are_found_in_their_slots() -> None:
    """Two sentences were evicted, one is padding: slots count from the oldest remaining."""
    memory = MemNN(D, slots=3)
    mask = torch.tensor([[True, True, False, True, True, True]])
    written = write_facts(memory, torch.randn(1, 6, 5, D), mask)
    assert find_slots(torch.tensor([[[0, 1, 3, 4, 5, IGNORE]]]), written.weights).tolist() == [[[-1, -1, 0, 1, 2, -1]]]
    no_weights = write_facts(memory, torch.randn(1, 0, 5, D)).weights
    assert find_slots(torch.tensor([[[IGNORE]]]), no_weights).tolist() == [[[-1]]]
