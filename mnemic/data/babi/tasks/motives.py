"""Task 20: people go where their need is met, and fetch what meets it."""

from random import Random

from mnemic.data.babi.format import Story
from mnemic.data.babi.tasks.page import Inquiry, Page
from mnemic.data.babi.tasks.world import Event, describe

PEOPLE = ("Antoine", "Jason", "Sumit", "Yann")
NEEDS = {  # need -> where to go, what to get
    "hungry": ("kitchen", "apple"),
    "thirsty": ("kitchen", "milk"),
    "tired": ("bedroom", "pajamas"),
    "bored": ("garden", "football"),
}


def motivations(dice: Random) -> Story:
    """Task 20: "Where will sumit go?", "Why did sumit get the milk?"; a question a sentence.

    There is one thing for each need, so of several who share it only the first gets the thing.
    """
    page = Page()
    need: dict[str, tuple[str, int]] = {}  # person -> need, and the line
    gone: set[str] = set()
    met: set[str] = set()  # needs
    while True:
        busy = [person for person in PEOPLE if person not in gone or need[person][0] not in met]
        if not busy:
            return page.story()
        person = dice.choice(busy)
        name = person.lower()
        if person not in need:
            wish = dice.choice(tuple(NEEDS))
            need[person] = wish, page.tell(f"{person} is {wish}.")
            page.ask(Inquiry(f"Where will {name} go?", NEEDS[wish][0], (need[person][1],)))
            continue
        wish, line = need[person]
        place, thing = NEEDS[wish]
        if person not in gone:
            gone.add(person)
            page.tell(describe(Event("move", person, place), dice))
            page.ask(Inquiry(f"Why did {name} go to the {place}?", wish, (line,)))
        else:
            met.add(wish)
            page.tell(describe(Event("take", person, thing), dice))
            page.ask(Inquiry(f"Why did {name} get the {thing}?", wish, (line,)))
