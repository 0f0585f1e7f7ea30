"""Wording of the generated lists of ``list_answers``: two pools that share no sentence.

A topic is (lead of a list, sentence with all items, sentence with one item, question, question with
their number, key, items). ``{name}`` is what the list belongs to, ``{items}`` are the items.
"""

# ruff: noqa: E501, C409

from typing import NamedTuple


class Topic(NamedTuple):
    """The wording of a kind of list."""

    lead: str
    together: str
    single: str
    question: str
    counted: str
    key: str
    items: tuple[str, ...]


class ListPool(NamedTuple):
    """All wording of a set."""

    names: tuple[str, ...]  # of places, so that each list belongs to something else
    topics: tuple[Topic, ...]
    fillers: tuple[str, ...]
    table: tuple[str, str, str]  # columns: what is asked for, what selects rows, another
    table_question: str
    table_values: tuple[tuple[str, ...], ...]


def make_topic(lead: str, together: str, single: str, question: str, counted: str, key: str, items: str) -> Topic:
    """Make a topic; the items have commas between them."""
    return Topic(lead, together, single, question, counted, key, tuple(item.strip() for item in items.split(",")))


DEV = ListPool(
    names=tuple(
        ["Alder", "Birch", "Cedar", "Dogwood", "Elm", "Fir", "Ginkgo", "Hazel", "Ivy", "Juniper", "Laurel", "Maple", "Nutmeg", "Oak", "Pine", "Rowan", "Spruce", "Willow"]
    ),
    topics=(
        make_topic(
            "Ingredients of the {name} soup", "The {name} soup is made of {items}.", "Into the {name} soup goes {items}.",
            "What are the ingredients of the {name} soup?", "Which {number} ingredients are in the {name} soup?", "Ingredient",
            "leeks, potatoes, cream, celery, white beans, smoked ham, pepper, carrots",
        ),
        make_topic(
            "Members of the {name} committee", "The members of the {name} committee are {items}.",
            "A member of the {name} committee is {items}.",
            "Who are the members of the {name} committee?", "Which {number} people are in the {name} committee?", "Member",
            "Anna Brandt, Ben Okoro, Clara Diaz, Dan Weiss, Eva Lind, Frank Moreau, Gita Rao, Henk de Vries",
        ),
        make_topic(
            "Cities of the {name} tour", "The {name} tour went to {items}.", "The {name} tour stopped in {items}.",
            "Which cities did the {name} tour visit?", "Which {number} cities did the {name} tour go to?", "City",
            "Lyon, Porto, Ghent, Turin, Leipzig, Malmo, Brno, Split",
        ),
        make_topic(
            "Tools in the {name} shed", "In the {name} shed there are {items}.", "The {name} shed also has {items}.",
            "What tools are in the {name} shed?", "What {number} tools are kept in the {name} shed?", "Tool",
            "a rake, a saw, a ladder, two spades, a wheelbarrow, a hammer, an axe, a drill",
        ),
        make_topic(
            "Languages taught at the {name} school", "The {name} school teaches {items}.", "One can learn {items} at the {name} school.",
            "List the languages that are taught at the {name} school.", "Name the {number} languages of the {name} school.", "Language",
            "Spanish, Latin, Welsh, Arabic, Finnish, Korean, Greek, Polish",
        ),
    ),
    fillers=(
        "The door was painted in spring.", "It rains a lot in this part of the country.", "Parking is free after six.",
        "A new roof is planned.", "Nobody complained about the noise.", "The neighbours have two dogs.",
        "The bill was paid in time.", "Keys are with the porter.",
    ),
    table=("Player", "Team", "Shirt"),
    table_question="Which players are in the {value} team?",
    table_values=(
        ("Ada", "Bo", "Cleo", "Dora", "Emil", "Finn", "Gus", "Hilda", "Ian", "Jo", "Kai", "Lea"),
        ("red", "blue", "green"),
        ("2", "4", "5", "7", "8", "10", "11"),
    ),
)  # fmt: skip

FINAL = ListPool(
    names=tuple(
        ["Amber", "Basalt", "Coral", "Diamond", "Emerald", "Flint", "Garnet", "Hematite", "Jade", "Kyanite", "Lapis", "Marble", "Onyx", "Pearl", "Quartz", "Ruby", "Slate", "Topaz"]
    ),
    topics=(
        make_topic(
            "What to bring to the {name} camp:", "Everyone has to bring {items} to the {name} camp.",
            "Do not forget {items} for the {name} camp.",
            "What things must one bring to the {name} camp?", "What {number} things should be brought to the {name} camp?", "Thing to bring",
            "a torch, warm socks, a sleeping bag, sun cream, a water bottle, rain boots, a whistle, insect spray",
        ),
        make_topic(
            "Sponsors of the {name} festival", "The {name} festival is paid for by its sponsors {items}.",
            "The {name} festival got money from {items}, another sponsor.",
            "Who were the sponsors of the {name} festival?", "Which {number} sponsors does the {name} festival have?", "Sponsor",
            "Nordbank, Hale & Sons, Bright Dairy, Zeta Motors, Olsen Foods, Palm Books, Rivet Tools, Kern Brewery",
        ),
        make_topic(
            "Side effects of {name}", "The side effects of {name} include {items}.", "Taking {name} may also have {items} as a side effect.",
            "What are the side effects of {name}?", "Which {number} side effects does {name} have?", "Side effect",
            "headache, nausea, a dry mouth, dizziness, blurred vision, back pain, hiccups, a rash",
        ),
        make_topic(
            "Animals of the {name} farm", "On the {name} farm live {items}.", "The {name} farm bought {items} at the fair.",
            "Which animals live on the {name} farm?", "Name {number} animals of the {name} farm.", "Animal",
            "goats, geese, donkeys, alpacas, turkeys, sheep, ponies, rabbits",
        ),
        make_topic(
            "Stations of the {name} line", "Trains of the {name} line call at {items}.", "The {name} line also calls at {items}.",
            "What are the stations of the {name} line?", "At which {number} stations do trains of the {name} line stop?", "Station",
            "Hill Road, Old Mill, Castle Park, West Quay, Museum, Market Street, Harbour, Kingsbridge",
        ),
    ),
    fillers=(
        "Visitors are asked to close the gate.", "The mayor came by on her bicycle.", "A photograph hangs in the hall.",
        "Prices have not changed for years.", "The committee meets when the moon is full.", "There is a bench in the shade.",
        "Somebody left an umbrella.", "The minutes were lost.",
    ),
    table=("Book", "Author", "Shelf"),
    table_question="Which books did {value} write?",
    table_values=(
        ("Night Ferry", "The Glass Bee", "Low Tide", "Salt", "A Quiet Year", "Ashes", "Blue Door", "The Ninth Wave", "Harvest", "Iron Lake"),
        ("Moreno", "Tanaka", "Lindqvist"),
        ("A1", "A2", "B1", "C3", "D2"),
    ),
)  # fmt: skip
