"""Trainings side by side: all of each, in order, as many at a time as there are lanes."""

from collections.abc import Generator

import pytest
import torch

from mnemic.reproduce.streams import TURN, side_by_side

CPU = torch.device("cpu")


@pytest.mark.parametrize("lanes", [1, 2, 3, 8])
def test_every_training_is_taken_to_its_end_in_its_own_order(lanes: int) -> None:
    lengths = [0, 1, TURN - 1, TURN, TURN + 1, 5 * TURN]
    open_now, most = set[int](), 0

    def training(number: int) -> Generator[tuple[int, int], None, None]:
        nonlocal most
        open_now.add(number)
        most = max(most, len(open_now))
        for step in range(lengths[number]):
            yield number, step
        open_now.remove(number)

    steps = list(side_by_side(map(training, range(len(lengths))), lanes=lanes, device=CPU))
    for number, length in enumerate(lengths):
        assert [step for own, step in steps if own == number] == list(range(length))
    assert len(steps) == sum(lengths)
    assert most <= lanes


def test_lanes_take_turns() -> None:
    def training(number: int) -> Generator[int, None, None]:
        yield from [number] * (2 * TURN)

    steps = list(side_by_side(map(training, range(2)), lanes=2, device=CPU))
    assert steps == [0] * TURN + [1] * TURN + [0] * TURN + [1] * TURN


def test_a_stop_closes_every_training_that_has_begun() -> None:
    closed = []

    def training(number: int) -> Generator[int, None, None]:
        try:
            for _ in range(3 * TURN):
                yield number
        finally:
            closed.append(number)

    steps = side_by_side(map(training, range(5)), lanes=2, device=CPU)
    for _ in range(TURN + 1):
        next(steps)
    steps.close()
    assert closed == [0, 1]
