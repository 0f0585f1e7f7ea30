"""Trainings side by side: all of each, in order, as many at a time as there are lanes."""

from collections.abc import Generator

import pytest
import torch

from mnemic.reproduce.streams import STEPS_PER_TURN, interleave_trainings

CPU = torch.device("cpu")


@pytest.mark.parametrize("lanes", [1, 2, 3, 8])
def test_every_training_is_taken_to_its_end_in_its_own_order(lanes: int) -> None:
    lengths = [0, 1, STEPS_PER_TURN - 1, STEPS_PER_TURN, STEPS_PER_TURN + 1, 5 * STEPS_PER_TURN]
    open_now, max_open = set[int](), 0

    def training(number: int) -> Generator[tuple[int, int], None, None]:
        nonlocal max_open
        open_now.add(number)
        max_open = max(max_open, len(open_now))
        for step in range(lengths[number]):
            yield number, step
        open_now.remove(number)

    steps = list(interleave_trainings(map(training, range(len(lengths))), lanes=lanes, device=CPU))
    for number, length in enumerate(lengths):
        assert [step for owner, step in steps if owner == number] == list(range(length))
    assert len(steps) == sum(lengths)
    assert max_open <= lanes


def test_lanes_take_turns() -> None:
    def training(number: int) -> Generator[int, None, None]:
        yield from [number] * (2 * STEPS_PER_TURN)

    steps = list(interleave_trainings(map(training, range(2)), lanes=2, device=CPU))
    assert steps == [0] * STEPS_PER_TURN + [1] * STEPS_PER_TURN + [0] * STEPS_PER_TURN + [1] * STEPS_PER_TURN


def test_a_stop_closes_every_training_that_has_begun() -> None:
    closed = []

    def training(number: int) -> Generator[int, None, None]:
        try:
            for _ in range(3 * STEPS_PER_TURN):
                yield number
        finally:
            closed.append(number)

    steps = interleave_trainings(map(training, range(5)), lanes=2, device=CPU)
    for _ in range(STEPS_PER_TURN + 1):
        next(steps)
    steps.close()
    assert closed == [0, 1]
