"""Task 17: shapes above, below and next to each other."""

from random import Random

from mnemic.data.babi.format import Story
from mnemic.data.babi.tasks.layout import DOWN, LEFT, RIGHT, UP, Step, draw_link_order, link_in_row
from mnemic.data.babi.tasks.page import CandidateQuestion, StoryBuilder

SHAPES = ("blue square", "pink rectangle", "red sphere", "red square", "triangle", "yellow square")
RELATIONS = {UP: "above", DOWN: "below", RIGHT: "to the right of", LEFT: "to the left of"}
NUM_QUESTIONS = 8


def make_positions_story(generator: Random) -> Story:
    """Generate a story for task 17: "Is the triangle above the red square?".

    The question is about the two shapes that no sentence mentions together.
    """
    builder = StoryBuilder()
    first, middle, last = generator.sample(SHAPES, 3)
    links = link_in_row((first, middle, last), generator)
    link_lines: dict[str, int] = {}  # outer shape -> the sentence that links it to the middle one
    for link in draw_link_order(links, generator):
        text = f"The {link.target} is {RELATIONS[link.step]} the {link.origin}."
        link_lines[link.target if link.origin == middle else link.origin] = builder.add_sentence(text)
    displacement = (links[0].step[0] + links[1].step[0], links[0].step[1] + links[1].step[1])
    for _ in range(NUM_QUESTIONS):
        subject, reference, offset = first, last, (-displacement[0], -displacement[1])
        if generator.random() < 0.5:
            subject, reference, offset = last, first, displacement
        is_true = generator.random() < 0.5
        step = generator.choice([step for step in RELATIONS if (project_offset(offset, step) > 0) == is_true])
        text = f"Is the {subject} {RELATIONS[step]} the {reference}?"
        builder.add_question(
            CandidateQuestion(text, "yes" if is_true else "no", (link_lines[subject], link_lines[reference]))
        )
    return builder.build()


def project_offset(offset: Step, step: Step) -> int:
    """Compute the length of an offset in the direction of a step."""
    return offset[0] * step[0] + offset[1] * step[1]
