"""Tasks 4, 17 and 19: rooms or shapes next to each other on a grid.

A sentence is drawn by choosing a name and then one of its neighbors, until the pair is new: a name
at the edge has fewer neighbors, so its links are described earlier and more often with that name
first.
"""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple, TypeAlias

from mnemic.data.babi.tasks.story_builder import StoryBuilder
from mnemic.data.babi.tasks.world import HOUSE

Step: TypeAlias = tuple[int, int]  # (right, up)

UP, DOWN, RIGHT, LEFT = (0, 1), (0, -1), (1, 0), (-1, 0)
STEPS: tuple[Step, ...] = (UP, DOWN, RIGHT, LEFT)
DIRECTIONS = {UP: "north", DOWN: "south", RIGHT: "east", LEFT: "west"}
RELATIONS = {UP: "above", DOWN: "below", RIGHT: "to the right of", LEFT: "to the left of"}
SHAPES = ("blue square", "pink rectangle", "red sphere", "red square", "triangle", "yellow square")
NUM_SHAPE_QUESTIONS = 8


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


def write_two_arguments_story(story: StoryBuilder, generator: Random) -> None:
    """Write a story for task 4: "What is north of the kitchen?" or its inverse."""
    links = link_in_row(generator.sample(HOUSE, 3), generator, straight=True)
    lines = describe_rooms(story, draw_link_order(links, generator))
    link, line = generator.choice(list(lines.items()))
    if generator.random() < 0.5:
        text = f"What is {DIRECTIONS[opposite_of(link.step)]} of the {link.target}?"
    else:
        text = f"What is the {link.target} {DIRECTIONS[link.step]} of?"
    story.add_question(text, link.origin, (line,))


def write_path_finding_story(story: StoryBuilder, generator: Random) -> None:
    """Write a story for task 19, path finding between two rooms.

    "How do you go from the kitchen to the garden?" has two steps, answered as "s,e".
    """
    rooms = generator.sample(HOUSE, len(HOUSE))
    path = link_in_row(rooms[:3], generator)
    lines = describe_rooms(story, draw_link_order([*path, *attach_names(path, rooms[3:], generator)], generator))
    answer = ",".join(DIRECTIONS[link.step][0] for link in path)
    facts = tuple(lines[link] if link in lines else lines[link.reverse()] for link in path)
    story.add_question(f"How do you go from the {rooms[0]} to the {rooms[2]}?", answer, facts)


def describe_rooms(story: StoryBuilder, links: list[Link]) -> dict[Link, int]:
    """Write one sentence per link that locates its origin; return the line of each link."""
    return {
        link: story.add_sentence(f"The {link.origin} is {DIRECTIONS[opposite_of(link.step)]} of the {link.target}.")
        for link in links
    }


def write_shapes_story(story: StoryBuilder, generator: Random) -> None:
    """Write a story for task 17: "Is the triangle above the red square?".

    The question is about the two shapes that no sentence mentions together.
    """
    first, middle, last = generator.sample(SHAPES, 3)
    links = link_in_row((first, middle, last), generator)
    lines: dict[str, int] = {}  # outer shape -> the sentence that links it to the middle one
    for link in draw_link_order(links, generator):
        text = f"The {link.target} is {RELATIONS[link.step]} the {link.origin}."
        lines[link.target if link.origin == middle else link.origin] = story.add_sentence(text)
    displacement = (links[0].step[0] + links[1].step[0], links[0].step[1] + links[1].step[1])
    for _ in range(NUM_SHAPE_QUESTIONS):
        subject, reference, (right, up) = first, last, opposite_of(displacement)
        if generator.random() < 0.5:
            subject, reference, (right, up) = last, first, displacement
        is_true = generator.random() < 0.5
        step = generator.choice([step for step in RELATIONS if (right * step[0] + up * step[1] > 0) == is_true])
        text = f"Is the {subject} {RELATIONS[step]} the {reference}?"
        story.add_question(text, "yes" if is_true else "no", (lines[subject], lines[reference]))


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
