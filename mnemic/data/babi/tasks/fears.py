"""Task 15: animals of a kind fear what their kind fears."""

from random import Random

from mnemic.data.babi.format import Story
from mnemic.data.babi.tasks.page import CandidateQuestion, StoryBuilder

PLURALS = {"mouse": "mice", "cat": "cats", "wolf": "wolves", "sheep": "sheep"}
NAMES = ("Gertrude", "Winona", "Jessica", "Emily")
NUM_QUESTIONS = 4


def make_deduction_story(generator: Random) -> Story:
    """Generate a story for task 15: "What is gertrude afraid of?".

    An animal is named only after a sentence about the fear of its kind.
    """
    builder = StoryBuilder()
    kinds = tuple(PLURALS)
    fears: dict[str, tuple[str, int]] = {}  # kind -> (the kind it fears, line)
    kinds_by_name: dict[str, tuple[str, int]] = {}  # name -> (kind, line)
    while len(fears) + len(kinds_by_name) < len(PLURALS) + len(NAMES):
        kind, name = generator.choice(kinds), generator.choice(NAMES)
        if generator.random() < 0.5:
            if kind not in fears:
                feared_kind = generator.choice([other_kind for other_kind in kinds if other_kind != kind])
                line = builder.add_sentence(f"{PLURALS[kind].capitalize()} are afraid of {PLURALS[feared_kind]}.")
                fears[kind] = feared_kind, line
        elif name not in kinds_by_name and kind in fears:
            kinds_by_name[name] = kind, builder.add_sentence(f"{name} is a {kind}.")
    for _ in range(NUM_QUESTIONS):
        name = generator.choice(NAMES)
        kind, name_line = kinds_by_name[name]
        feared_kind, fear_line = fears[kind]
        builder.add_question(
            CandidateQuestion(f"What is {name.lower()} afraid of?", feared_kind, (name_line, fear_line))
        )
    return builder.build()
