"""A plan of neighbours on a grid, and the sentences that give it away.

Shared by tasks 4, 17 and 19. A sentence comes about by drawing an item and then one of its
neighbours, until a pair comes up that has not been told: an item at the rim has fewer neighbours,
so it is told earlier and more often as the one drawn first.
"""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple, TypeAlias

Step: TypeAlias = tuple[int, int]  # to the right, upwards

UP, DOWN, RIGHT, LEFT = (0, 1), (0, -1), (1, 0), (-1, 0)
STEPS: tuple[Step, ...] = (UP, DOWN, RIGHT, LEFT)


class Link(NamedTuple):
    """``far`` is one step away from ``near``."""

    near: str
    far: str
    step: Step

    def turned(self) -> "Link":
        return Link(self.far, self.near, back(self.step))


def back(step: Step) -> Step:
    """The step that undoes a step."""
    return (-step[0], -step[1])


def corridor(items: Sequence[str], dice: Random, *, straight: bool = False) -> list[Link]:
    """Link three items in a row that may bend but does not turn back."""
    first = dice.choice(STEPS)
    second = first if straight else dice.choice([step for step in STEPS if step != back(first)])
    return [Link(items[0], items[1], first), Link(items[1], items[2], second)]


def branch(links: Sequence[Link], items: Sequence[str], dice: Random) -> list[Link]:
    """Link more items to free sides of those that are linked already.

    As in the official files, two items may come to lie on the same spot of the grid; no sentence
    and no answer depends on it.
    """
    both = [*links, *(link.turned() for link in links)]
    taken = {(link.near, link.step) for link in both}
    linked = dict.fromkeys(link.near for link in both)
    free = [(item, step) for item in linked for step in STEPS if (item, step) not in taken]
    sides = dice.sample(free, len(items))
    return [Link(near, far, step) for (near, step), far in zip(sides, items, strict=True)]


def order_told(links: Sequence[Link], dice: Random) -> list[Link]:
    """The links in the order of telling, each turned so that ``near`` was drawn first."""
    both = [*links, *(link.turned() for link in links)]
    items = list(dict.fromkeys(link.near for link in both))
    told: list[Link] = []
    while len(told) < len(links):
        item = dice.choice(items)
        link = dice.choice([link for link in both if link.near == item])
        if link not in told and link.turned() not in told:
            told.append(link)
    return told
