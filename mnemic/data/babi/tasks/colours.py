"""Task 16: an animal has the colour of others of its kind."""

from random import Random

from mnemic.data.babi.format import Story
from mnemic.data.babi.tasks.page import Inquiry, Page

NAMES = ("Bernhard", "Brian", "Greg", "Julius", "Lily")
KINDS = ("frog", "lion", "rhino", "swan")
COLOURS = ("gray", "green", "white", "yellow")
ALIKE = (1, 3, 4)  # how many others of the kind there may be: with two the official files never ask


def induction(dice: Random) -> Story:
    """Task 16: "What color is Lily?"; where its kind has several colours the last named decides.

    A kind has one colour until another animal of that kind is named, which draws a new one.
    """
    while True:
        page = Page()
        named, coloured = describe_animals(page, dice)
        (name,) = named.keys() - coloured.keys()
        kind, line = named[name]
        alike = [other for other in named if other != name and named[other][0] == kind]
        if len(alike) in ALIKE:
            last = alike[-1]
            colour, seen = coloured[last]
            page.ask(Inquiry(f"What color is {name}?", colour, (line, named[last][1], seen)))
            return page.story()


def describe_animals(
    page: Page, dice: Random
) -> tuple[dict[str, tuple[str, int]], dict[str, tuple[str, int]]]:
    """Tell the kind of all animals and the colour of all but one, each with its line."""
    named: dict[str, tuple[str, int]] = {}
    coloured: dict[str, tuple[str, int]] = {}
    colour_of: dict[str, str] = {}  # kind -> its colour for now
    while len(named) + len(coloured) < 2 * len(NAMES) - 1:
        name = dice.choice(NAMES)
        if dice.random() < 0.5:
            if name not in named:
                kind = dice.choice(KINDS)
                named[name] = kind, page.tell(f"{name} is a {kind}.")
                colour_of[kind] = dice.choice(COLOURS)
        elif name in named and name not in coloured:
            colour = colour_of[named[name][0]]
            coloured[name] = colour, page.tell(f"{name} is {colour}.")
    return named, coloured
