"""Neighbors on a grid and the order in which sentences describe them.

Shared by tasks 4, 17 and 19. A sentence is drawn by choosing a name and then one of its neighbors,
until the pair is new: a name at the edge has fewer neighbors, so its links are described earlier
and more often with that name first.
"""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple, TypeAlias

Step: TypeAlias = tuple[int, int]  # (right, up)

UP, DOWN, RIGHT, LEFT = (0, 1), (0, -1), (1, 0), (-1, 0)
STEPS: tuple[Step, ...] = (UP, DOWN, RIGHT, LEFT)


class Link(NamedTuple):
    """A pair of neighbors: ``target`` is one ``step`` away from ``origin``."""

    origin: str
    target: str
    step: Step

    def reverse(self) -> "Link":
        """Return the same link seen from its target."""
        return Link(self.target, self.origin, opposite_of(self.step))


def opposite_of(step: Step) -> Step:
    """Return the step in the opposite direction."""
    return (-step[0], -step[1])


def link_in_row(names: Sequence[str], generator: Random, *, straight: bool = False) -> list[Link]:
    """Link three names in a row that may bend but not turn back."""
    first = generator.choice(STEPS)
    second = first if straight else generator.choice([step for step in STEPS if step != opposite_of(first)])
    return [Link(names[0], names[1], first), Link(names[1], names[2], second)]


def attach_names(links: Sequence[Link], names: Sequence[str], generator: Random) -> list[Link]:
    """Link more names to free sides of those that are already linked.

    As in the official files, two names may share a cell of the grid; no sentence and no answer
    depends on it.
    """
    both_ways = [*links, *(link.reverse() for link in links)]
    used_sides = {(link.origin, link.step) for link in both_ways}
    linked_names = dict.fromkeys(link.origin for link in both_ways)
    free_sides = [(name, step) for name in linked_names for step in STEPS if (name, step) not in used_sides]
    sides = generator.sample(free_sides, len(names))
    return [Link(origin, target, step) for (origin, step), target in zip(sides, names, strict=True)]


def draw_link_order(links: Sequence[Link], generator: Random) -> list[Link]:
    """Draw the order of links in the story, the first drawn name as origin."""
    both_ways = [*links, *(link.reverse() for link in links)]
    names = list(dict.fromkeys(link.origin for link in both_ways))
    ordered: list[Link] = []
    while len(ordered) < len(links):
        name = generator.choice(names)
        link = generator.choice([link for link in both_ways if link.origin == name])
        if link not in ordered and link.reverse() not in ordered:
            ordered.append(link)
    return ordered
