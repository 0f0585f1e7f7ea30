"""Tasks 4 and 19: rooms that lie north, south, east and west of each other."""

from random import Random

from mnemic.data.babi.format import Story
from mnemic.data.babi.tasks.layout import (
    DOWN,
    LEFT,
    RIGHT,
    UP,
    Link,
    back,
    branch,
    corridor,
    order_told,
)
from mnemic.data.babi.tasks.page import Inquiry, Page
from mnemic.data.babi.tasks.world import HOUSE

DIRECTIONS = {UP: "north", DOWN: "south", RIGHT: "east", LEFT: "west"}


def two_arguments(dice: Random) -> Story:
    """Task 4: "What is north of the kitchen?" or "What is the kitchen north of?"."""
    rooms = dice.sample(HOUSE, 3)
    page = Page()
    lines = tell(page, order_told(corridor(rooms, dice, straight=True), dice))
    link, line = dice.choice(list(lines.items()))
    if dice.random() < 0.5:
        text = f"What is {DIRECTIONS[back(link.step)]} of the {link.far}?"
    else:
        text = f"What is the {link.far} {DIRECTIONS[link.step]} of?"
    page.ask(Inquiry(text, link.near, (line,)))
    return page.story()


def path_finding(dice: Random) -> Story:
    """Task 19: "How do you go from the kitchen to the garden?"; two steps, answered "s,e"."""
    rooms = dice.sample(HOUSE, len(HOUSE))
    page = Page()
    path = corridor(rooms[:3], dice)
    lines = tell(page, order_told([*path, *branch(path, rooms[3:], dice)], dice))
    answer = ",".join(DIRECTIONS[link.step][0] for link in path)
    facts = tuple(lines[link] if link in lines else lines[link.turned()] for link in path)
    text = f"How do you go from the {path[0].near} to the {path[-1].far}?"
    page.ask(Inquiry(text, answer, facts))
    return page.story()


def tell(page: Page, links: list[Link]) -> dict[Link, int]:
    """Tell where ``near`` lies as seen from ``far``; return the line of each link."""
    return {
        link: page.tell(f"The {link.near} is {DIRECTIONS[back(link.step)]} of the {link.far}.")
        for link in links
    }
