"""Tasks 15 and 16: an animal's fears and color follow from its kind."""

from random import Random

from mnemic.data.babi.tasks.story_builder import StoryBuilder

PLURALS = {"mouse": "mice", "cat": "cats", "wolf": "wolves", "sheep": "sheep"}
DEDUCTION_NAMES = ("Gertrude", "Winona", "Jessica", "Emily")
NUM_DEDUCTIONS = 4  # questions per story

INDUCTION_KINDS = ("frog", "lion", "rhino", "swan")
INDUCTION_NAMES = ("Bernhard", "Brian", "Greg", "Julius", "Lily")
COLORS = ("gray", "green", "white", "yellow")
PEER_COUNTS = (1, 3, 4)  # possible numbers of peers: the official files never ask with two


def write_deduction_story(story: StoryBuilder, generator: Random) -> None:
    """Write a story for task 15: "What is gertrude afraid of?".

    An animal is named only after a sentence about the fear of its kind.
    """
    kinds = tuple(PLURALS)
    fears: dict[str, tuple[str, int]] = {}  # kind -> (the kind it fears, line)
    animals: dict[str, tuple[str, int]] = {}  # name -> (kind, line)
    while len(fears) + len(animals) < len(PLURALS) + len(DEDUCTION_NAMES):
        kind, name = generator.choice(kinds), generator.choice(DEDUCTION_NAMES)
        if generator.random() < 0.5:
            if kind not in fears:
                feared_kind = generator.choice([other_kind for other_kind in kinds if other_kind != kind])
                text = f"{PLURALS[kind].capitalize()} are afraid of {PLURALS[feared_kind]}."
                fears[kind] = feared_kind, story.add_sentence(text)
        elif name not in animals and kind in fears:
            animals[name] = kind, story.add_sentence(f"{name} is a {kind}.")
    for _ in range(NUM_DEDUCTIONS):
        name = generator.choice(DEDUCTION_NAMES)
        kind, line = animals[name]
        feared_kind, fear_line = fears[kind]
        story.add_question(f"What is {name.lower()} afraid of?", feared_kind, (line, fear_line))


def write_induction_story(story: StoryBuilder, generator: Random) -> None:
    """Write a story for task 16: "What color is Lily?".

    The answer is the color of the last named animal of the same kind. A kind keeps its color until
    another animal of that kind is named, which draws a new one.
    """
    peers: list[str] = []
    while len(peers) not in PEER_COUNTS:
        story.lines.clear()
        kinds, colors = describe_animals(story, generator)
        (name,) = kinds.keys() - colors.keys()
        kind, line = kinds[name]
        peers = [peer for peer in kinds if peer != name and kinds[peer][0] == kind]
    color, color_line = colors[peers[-1]]
    story.add_question(f"What color is {name}?", color, (line, kinds[peers[-1]][1], color_line))


def describe_animals(
    story: StoryBuilder, generator: Random
) -> tuple[dict[str, tuple[str, int]], dict[str, tuple[str, int]]]:
    """Write sentences about the kind of all animals and the color of all but one.

    Return name -> (kind, line) and name -> (color, line).
    """
    kinds: dict[str, tuple[str, int]] = {}
    colors: dict[str, tuple[str, int]] = {}
    current_color: dict[str, str] = {}  # kind -> its current color
    while len(kinds) + len(colors) < 2 * len(INDUCTION_NAMES) - 1:
        name = generator.choice(INDUCTION_NAMES)
        if generator.random() < 0.5:
            if name not in kinds:
                kind = generator.choice(INDUCTION_KINDS)
                kinds[name] = kind, story.add_sentence(f"{name} is a {kind}.")
                current_color[kind] = generator.choice(COLORS)
        elif name in kinds and name not in colors:
            color = current_color[kinds[name][0]]
            colors[name] = color, story.add_sentence(f"{name} is {color}.")
    return kinds, colors
