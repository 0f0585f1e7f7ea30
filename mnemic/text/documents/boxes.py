"""Boxes on a page: where the lines are that OCR has read."""

from collections.abc import Iterable
from math import ceil, floor
from typing import Any, NamedTuple

BOX_UNITS = 10_000  # a box is stored in these fractions of a page's width and height


class Box(NamedTuple):
    """A box on a page, in fractions of its width and height.

    They count from the upper left corner of the page as a viewer shows it, even if its text is
    turned.

    >>> box = Box(0.1, 0.25, 0.5, 0.3)
    >>> box.join([Box(0.05, 0.3, 0.4, 0.35)])
    Box(left=0.05, top=0.25, right=0.5, bottom=0.35)
    """

    left: float
    top: float
    right: float
    bottom: float

    def join(self, boxes: "Iterable[Box]") -> "Box":
        """Return the smallest box around this one and others."""
        x_mins, tops, x_maxs, bottoms = zip(self, *boxes)
        return Box(min(x_mins), min(tops), max(x_maxs), max(bottoms))

    def turn(self, num_turns: int) -> "Box":
        """Return the box on the page turned clockwise, by 90° for each turn."""
        box = self
        for _ in range(num_turns % 4):
            box = make_box(1 - box.bottom, box.left, 1 - box.top, box.right)
        return box

    def to_units(self) -> tuple[int, ...]:
        """Return the four numbers as integers, as they are stored."""
        return tuple(round(number * BOX_UNITS) for number in self)


def make_box(x_min: float, top: float, x_max: float, bottom: float) -> Box:
    """Make a box on the page around these fractions, which may lie outside of it."""
    (first, last), (first_row, last_row) = fit_range(x_min, x_max), fit_range(top, bottom)
    return from_units((first, first_row, last, last_row))


def fit_range(first: float, last: float) -> tuple[int, int]:
    """Return a range in whole units that is on the page and not empty."""
    start = min(max(floor(round(first * BOX_UNITS, 3)), 0), BOX_UNITS - 1)
    return start, max(min(ceil(round(last * BOX_UNITS, 3)), BOX_UNITS), start + 1)


def from_units(units: Iterable[int]) -> Box:
    """Make a box of the four integers of ``Box.to_units``."""
    return Box(*(unit / BOX_UNITS for unit in units))


def parse_box(values: Any) -> Box:
    """Make a box of what a file says is one; ``ValueError`` otherwise."""
    if not isinstance(values, list) or len(values) != 4 or not all(type(value) in (int, float) for value in values):
        raise ValueError("a box is not four numbers")
    if not all(0 <= value <= 1 for value in values):
        raise ValueError(f"the box {values} is not on the page: numbers from 0 to 1")
    box = from_units(Box(*values).to_units())
    if box.left >= box.right or box.top >= box.bottom:
        raise ValueError(f"the box {values} is empty; it is left, top, right, bottom")
    return box
