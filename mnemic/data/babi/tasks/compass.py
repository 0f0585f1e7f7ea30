"""Tasks 4 and 19: rooms that lie north, south, east and west of each other."""

from random import Random

from mnemic.data.babi.format import Story
from mnemic.data.babi.tasks.layout import (
    DOWN,
    LEFT,
    RIGHT,
    UP,
    Link,
    attach_names,
    draw_link_order,
    link_in_row,
    opposite_of,
)
from mnemic.data.babi.tasks.page import CandidateQuestion, StoryBuilder
from mnemic.data.babi.tasks.world import HOUSE

DIRECTIONS = {UP: "north", DOWN: "south", RIGHT: "east", LEFT: "west"}


def make_two_arguments_story(generator: Random) -> Story:
    """Generate a story for task 4: "What is north of the kitchen?" or its inverse."""
    rooms = generator.sample(HOUSE, 3)
    builder = StoryBuilder()
    lines = add_link_sentences(builder, draw_link_order(link_in_row(rooms, generator, straight=True), generator))
    link, line = generator.choice(list(lines.items()))
    if generator.random() < 0.5:
        text = f"What is {DIRECTIONS[opposite_of(link.step)]} of the {link.target}?"
    else:
        text = f"What is the {link.target} {DIRECTIONS[link.step]} of?"
    builder.add_question(CandidateQuestion(text, link.origin, (line,)))
    return builder.build()


def make_path_finding_story(generator: Random) -> Story:
    """Generate a story for task 19, path finding between two rooms.

    "How do you go from the kitchen to the garden?" has two steps, answered as "s,e".
    """
    rooms = generator.sample(HOUSE, len(HOUSE))
    builder = StoryBuilder()
    path = link_in_row(rooms[:3], generator)
    lines = add_link_sentences(builder, draw_link_order([*path, *attach_names(path, rooms[3:], generator)], generator))
    answer = ",".join(DIRECTIONS[link.step][0] for link in path)
    facts = tuple(lines[link] if link in lines else lines[link.reverse()] for link in path)
    text = f"How do you go from the {path[0].origin} to the {path[-1].target}?"
    builder.add_question(CandidateQuestion(text, answer, facts))
    return builder.build()


def add_link_sentences(builder: StoryBuilder, links: list[Link]) -> dict[Link, int]:
    """Write one sentence per link that locates its origin; return the line of each link."""
    return {
        link: builder.add_sentence(f"The {link.origin} is {DIRECTIONS[opposite_of(link.step)]} of the {link.target}.")
        for link in links
    }
