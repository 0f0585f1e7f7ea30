"""Task 16: an animal has the color of others of its kind."""

from random import Random

from mnemic.data.babi.format import Story
from mnemic.data.babi.tasks.page import CandidateQuestion, StoryBuilder

NAMES = ("Bernhard", "Brian", "Greg", "Julius", "Lily")
KINDS = ("frog", "lion", "rhino", "swan")
COLORS = ("gray", "green", "white", "yellow")
PEER_COUNTS = (1, 3, 4)  # possible numbers of peers: the official files never ask with two


def make_induction_story(generator: Random) -> Story:
    """Generate a story for task 16: "What color is Lily?".

    The answer is the color of the last named animal of the same kind. A kind keeps its color until
    another animal of that kind is named, which draws a new one.
    """
    while True:
        builder = StoryBuilder()
        kinds, colors = describe_animals(builder, generator)
        (name,) = kinds.keys() - colors.keys()
        kind, line = kinds[name]
        peers = [peer for peer in kinds if peer != name and kinds[peer][0] == kind]
        if len(peers) in PEER_COUNTS:
            last_peer = peers[-1]
            color, color_line = colors[last_peer]
            builder.add_question(
                CandidateQuestion(f"What color is {name}?", color, (line, kinds[last_peer][1], color_line))
            )
            return builder.build()


def describe_animals(
    builder: StoryBuilder, generator: Random
) -> tuple[dict[str, tuple[str, int]], dict[str, tuple[str, int]]]:
    """Write sentences about the kind of all animals and the color of all but one.

    Return name -> (kind, line) and name -> (color, line).
    """
    kinds: dict[str, tuple[str, int]] = {}
    colors: dict[str, tuple[str, int]] = {}
    current_color: dict[str, str] = {}  # kind -> its current color
    while len(kinds) + len(colors) < 2 * len(NAMES) - 1:
        name = generator.choice(NAMES)
        if generator.random() < 0.5:
            if name not in kinds:
                kind = generator.choice(KINDS)
                kinds[name] = kind, builder.add_sentence(f"{name} is a {kind}.")
                current_color[kind] = generator.choice(COLORS)
        elif name in kinds and name not in colors:
            color = current_color[kinds[name][0]]
            colors[name] = color, builder.add_sentence(f"{name} is {color}.")
    return kinds, colors
