"""Task 15: animals of a kind fear what their kind fears."""

from random import Random

from mnemic.data.babi.format import Story
from mnemic.data.babi.tasks.page import Inquiry, Page

KINDS = {"mouse": "mice", "cat": "cats", "wolf": "wolves", "sheep": "sheep"}
NAMES = ("Gertrude", "Winona", "Jessica", "Emily")
QUESTIONS = 4


def deduction(dice: Random) -> Story:
    """Task 15: "What is gertrude afraid of?"; one is named after its kind's fear was told."""
    page = Page()
    kinds = tuple(KINDS)
    fear: dict[str, tuple[str, int]] = {}  # kind -> the kind it fears, and the line
    kind_of: dict[str, tuple[str, int]] = {}  # name -> kind, and the line
    while len(fear) + len(kind_of) < len(KINDS) + len(NAMES):
        kind, name = dice.choice(kinds), dice.choice(NAMES)
        if dice.random() < 0.5:
            if kind not in fear:
                feared = dice.choice([other for other in kinds if other != kind])
                line = page.tell(f"{KINDS[kind].capitalize()} are afraid of {KINDS[feared]}.")
                fear[kind] = feared, line
        elif name not in kind_of and kind in fear:
            kind_of[name] = kind, page.tell(f"{name} is a {kind}.")
    for _ in range(QUESTIONS):
        name = dice.choice(NAMES)
        kind, named = kind_of[name]
        feared, told = fear[kind]
        page.ask(Inquiry(f"What is {name.lower()} afraid of?", feared, (named, told)))
    return page.story()
