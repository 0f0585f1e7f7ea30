"""Task 17: shapes that lie above, below and beside each other."""

from random import Random

from mnemic.data.babi.format import Story
from mnemic.data.babi.tasks.layout import DOWN, LEFT, RIGHT, UP, Step, corridor, order_told
from mnemic.data.babi.tasks.page import Inquiry, Page

SHAPES = (
    "blue square",
    "pink rectangle",
    "red sphere",
    "red square",
    "triangle",
    "yellow square",
)
RELATIONS = {UP: "above", DOWN: "below", RIGHT: "to the right of", LEFT: "to the left of"}
QUESTIONS = 8


def positions(dice: Random) -> Story:
    """Task 17: "Is the triangle above the red square?", for the two shapes not told of together."""
    page = Page()
    first, middle, last = dice.sample(SHAPES, 3)
    links = corridor((first, middle, last), dice)
    line: dict[str, int] = {}  # outer shape -> the sentence that links it to the middle one
    for link in order_told(links, dice):
        text = f"The {link.far} is {RELATIONS[link.step]} the {link.near}."
        line[link.far if link.near == middle else link.near] = page.tell(text)
    apart = (links[0].step[0] + links[1].step[0], links[0].step[1] + links[1].step[1])
    for _ in range(QUESTIONS):
        one, other, offset = first, last, (-apart[0], -apart[1])
        if dice.random() < 0.5:
            one, other, offset = last, first, apart
        truth = dice.random() < 0.5
        step = dice.choice([step for step in RELATIONS if (towards(offset, step) > 0) == truth])
        text = f"Is the {one} {RELATIONS[step]} the {other}?"
        page.ask(Inquiry(text, "yes" if truth else "no", (line[one], line[other])))
    return page.story()


def towards(offset: Step, step: Step) -> int:
    """How far an offset goes in the direction of a step."""
    return offset[0] * step[0] + offset[1] * step[1]
