"""Tasks 1, 11, 12 and 13: people move alone or in pairs; "Where is Mary?"."""

from collections.abc import Sequence
from random import Random

from mnemic.data.babi.tasks.story_builder import CandidateQuestion, StoryBuilder
from mnemic.data.babi.tasks.world import FAMILY, MOVE_VERBS, NUM_RECENT_EVENTS, World, WorldEvent, moves_of

CONNECTIVES = ("Then", "Afterwards", "After that", "Following that")
PRONOUNS = {"John": "he", "Daniel": "he", "Mary": "she", "Sandra": "she"}


def write_moving_story(story: StoryBuilder, generator: Random, *, group_size: int, coreference: bool) -> None:
    """Write a story in which groups of ``group_size`` people move.

    With ``coreference`` every second sentence has a pronoun.
    """
    world = World(FAMILY, generator)
    history: list[WorldEvent] = []
    group: list[str] = []

    def add_move() -> None:
        """Move a group, and add a sentence about it."""
        nonlocal group
        num_sentences = len(story.lines) - story.num_questions
        if coreference and num_sentences % 2:
            current_location = world.locations[group[0]]
            location = generator.choice([location for location in FAMILY.locations if location != current_location])
            world.locations.update(dict.fromkeys(group, location))
            subject = f"{generator.choice(CONNECTIVES)} {'they' if group_size > 1 else PRONOUNS[group[0]]}"
        else:
            group, location = world.move_together(group_size)
            subject = " and ".join(group)
        line = story.add_sentence(f"{subject} {generator.choice(MOVE_VERBS)} to the {location}.")
        history.extend(WorldEvent("move", person, location, line=line) for person in group)

    story.fill(add_move, lambda: ask_where_person_is(history, generator, num_facts=1 + coreference))


def ask_where_person_is(history: Sequence[WorldEvent], generator: Random, *, num_facts: int) -> CandidateQuestion:
    """Ask where a recently moved person is; the last ``num_facts`` moves prove it."""
    person = generator.choice(history[-NUM_RECENT_EVENTS:]).actor
    moves = moves_of(history, person)[-num_facts:]
    return CandidateQuestion(f"Where is {person}? ", moves[-1].target, tuple(move.line for move in moves))
