"""MemNN's reads against the papers' equations in slow loops, and hops that follow what is told.

Shapes: b batch, n sentences, m queries, s slots, k hops, f facts, t tables, d width.
"""

import pytest
import torch
from memnn_slow import D, Slow, make
from memnn_slow import slots_read as chosen
from memnn_slow import write_facts as told

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


# The slow twin ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("time", "stop", "match"), KINDS)
def test_reads_are_the_papers_loop(time: bool, stop: bool, match: str) -> None:
    memory = make(time, stop, match)
    lengths = set()
    for seed in range(12):
        torch.manual_seed(seed)
        states, query = torch.randn(2, 7, 5, D), torch.randn(2, 3, 5, D)
        reading = memory.read(told(memory, states).state, query)
        for row in range(2):
            for m in range(3):
                twin = Slow(memory, states[row], query[row, m])
                slow = twin.read()
                assert chosen(reading)[row][m] == slow
                torch.testing.assert_close(reading.found[row, m], twin.joined(slow, 3, 4, 1))
                lengths.add(len(slow))
    assert lengths == ({0, 1, 2, 3} if stop else {3})


@pytest.mark.parametrize(("time", "stop", "match"), KINDS)
def test_scores_are_relative_to_what_was_read(time: bool, stop: bool, match: str) -> None:
    memory = make(time, stop, match, hops=2)
    torch.manual_seed(1)
    states, query = torch.randn(1, 5, 5, D), torch.randn(1, 1, 5, D)
    reading = memory.read(told(memory, states).state, query, teacher_slots=torch.tensor([[[3, 1]]]))
    slow = Slow(memory, states[0], query[0, 0])
    for hop, (before, right) in enumerate([([], 3), ([3], 1)]):
        heads = reading.scores[0, hop, :, 0]  # h s
        assert heads.shape == (1 + time, 5)
        for i in range(5):
            expected = [-slow.score(before, right, i), slow.score(before, i, right)]
            wanted = torch.tensor(expected[: 1 + time]) * (i != right)
            torch.testing.assert_close(heads[:, i], wanted)
        if stop:
            assert reading.nothing is not None
            none = -slow.score(before, right, 5)
            torch.testing.assert_close(reading.nothing[0, hop, 0, 0], torch.tensor(none))


def test_a_contest_is_the_loop_over_all_candidates() -> None:
    """With scores that no order of the slots explains, and slots that are not there."""
    dice = torch.Generator().manual_seed(0)
    for _ in range(200):
        count = int(torch.randint(1, 12, (), generator=dice))
        first, second = torch.randn(2, 1, 1, count, generator=dice)
        pairs = PairwiseScores(first, second, torch.randn(1, 1, 1, generator=dice))
        seen = torch.rand(1, 1, count, generator=dice) < 0.7
        winner = None
        for i in range(count):
            if not seen[0, 0, i]:
                continue
            if winner is None:
                winner = i
                continue
            older = float(pairs.older_bonus) * (i < count - 1)
            if float(first[0, 0, winner] - second[0, 0, i]) + older <= 0:
                winner = i
        assert find_winner(pairs, seen).item() == (count - 1 if winner is None else winner)


def test_the_chosen_one_is_ahead_of_itself_by_nothing() -> None:
    torch.manual_seed(0)
    pairs = PairwiseScores(torch.randn(2, 3, 6), torch.randn(2, 3, 6), torch.randn(2, 3, 1))
    one = torch.randint(6, (2, 3))
    found = margins_over(pairs, one).gather(-1, one[:, None, :, None].expand(-1, 2, -1, -1))
    assert found.eq(0).all()


def test_newer_facts_win_if_time_says_so() -> None:
    """All sentences alike: only their times can decide."""
    memory = make(True, False, "linear", hops=1)
    states = torch.ones(1, 6, 5, D)
    assert memory.times is not None
    for newer in (True, False):
        memory.times.vectors.data = torch.zeros(3, D)
        memory.times.vectors.data[2] = -1.0 if newer else 1.0
        reading = memory.read(told(memory, states).state, torch.ones(1, 1, 5, D))
        assert chosen(reading) == [[[5 if newer else 0]]]


# Following -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("time", "stop", "match"), KINDS)
def test_a_hop_follows_what_it_is_told_then_stops_or_stays(time: bool, stop: bool, match: str) -> None:
    memory = make(time, stop, match)
    torch.manual_seed(5)
    states, query = torch.randn(40, 7, 5, D), torch.randn(40, 1, 5, D)
    state = told(memory, states).state
    follow = torch.tensor([[[2, 4, IGNORE]]]).expand(40, -1, -1)
    reading = memory.read(state, query, teacher_slots=follow)
    for row, (hops,) in enumerate(chosen(reading)):
        assert hops[:2] == [2, 4]
        assert hops[2:] == ([] if stop else [4])
        said = Slow(memory, states[row], query[row, 0]).joined(hops, 3, 4, 1)
        torch.testing.assert_close(reading.found[row, 0], said)
    free = chosen(memory.read(state, query))
    assert sum(hops[:2] != [2, 4] for (hops,) in free) > 30


def test_a_first_hop_that_is_told_nothing_chooses() -> None:
    memory = make(True, False, "linear", hops=1)
    torch.manual_seed(0)
    states, query = torch.randn(20, 7, 5, D), torch.randn(20, 1, 5, D)
    state = told(memory, states).state
    follow = torch.full((20, 1, 1), IGNORE)
    assert chosen(memory.read(state, query, teacher_slots=follow)) == chosen(memory.read(state, query))


def test_a_followed_reading_ends_behind_the_longest_chain() -> None:
    memory = make(True, True, "linear", hops=10)
    state, query = told(memory, torch.randn(2, 7, 5, D)).state, torch.randn(2, 1, 5, D)
    follow = torch.tensor([[[2, 4]], [[1, IGNORE]]])
    assert memory.read(state, query, teacher_slots=follow).weights.shape[1] == 3
    assert memory.read(state, query).weights.shape[1] == 10


def test_no_hop_reads_after_a_stop() -> None:
    memory = make(True, True, "tanh", hops=6)
    torch.manual_seed(0)
    states, query = torch.randn(60, 5, 5, D), torch.randn(60, 1, 5, D)
    read = memory.read(told(memory, states).state, query).weights[:, :, 0, 0].sum(-1)  # b k
    assert torch.equal(read.cummin(1).values, read)
    assert read.sum(1).unique().numel() > 2


def test_sentences_are_found_in_their_slots() -> None:
    """Two were forgotten, one is padding: slots count from the oldest that is left."""
    memory = MemNN(D, slots=3)
    mask = torch.tensor([[True, True, False, True, True, True]])
    written = told(memory, torch.randn(1, 6, 5, D), mask)
    assert find_slots(torch.tensor([[[0, 1, 3, 4, 5, IGNORE]]]), written.weights).tolist() == [[[-1, -1, 0, 1, 2, -1]]]
    nothing = told(memory, torch.randn(1, 0, 5, D)).weights
    assert find_slots(torch.tensor([[[IGNORE]]]), nothing).tolist() == [[[-1]]]
